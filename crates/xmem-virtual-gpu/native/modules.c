// Modules and their kernels: loaded and launched without an effect. What a compiled kernel needs of registers and local
// memory is in its image, and torch.compile decides by it which configurations it measures.
//
// The image is a cubin: ELF of 64 bits with a section `.nv.info`, whose entries have a format, an attribute, a size and a
// value. Not documented; as ptxas of CUDA 12.8 and 13.0 writes them. Of other images (PTX, fat binaries) nothing is known.
#include "vgpu.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUDA_MACHINE = 190 };
// An entry with a value of its own size, and attributes whose value is a symbol and a number (cuobjdump -elf names them).
enum { SIZED = 4, REGISTERS = 0x2f, FRAME = 0x11 };
// CUfunction_attribute
enum { MAX_THREADS_PER_BLOCK = 0, LOCAL_SIZE_BYTES = 3, NUM_REGS = 4 };
enum { REGISTERS_OF_OTHERS = 32 };

struct kernel { char *name; uint32_t registers, local; };
struct module { size_t count; struct kernel **kernels; };

static char unknown_kernel;

static struct kernel *kernel_of(struct module *module, const char *name) {
  for (size_t i = 0; i < module->count; i++) if (!strcmp(module->kernels[i]->name, name)) return module->kernels[i];
  struct kernel **grown = realloc(module->kernels, (module->count + 1) * sizeof *grown);
  if (!grown) return NULL;
  module->kernels = grown;
  struct kernel *kernel = vgpu_handle_make(HANDLE_KERNEL, sizeof *kernel);
  if (!kernel) return NULL;
  kernel->name = strdup(name);
  if (!kernel->name) {
    vgpu_handle_drop(HANDLE_KERNEL, kernel);
    return NULL;
  }
  kernel->registers = REGISTERS_OF_OTHERS;
  return module->kernels[module->count++] = kernel;
}

// Reads the entries of a section `.nv.info`.
static void read_info(struct module *module, const char *at, const char *end, const Elf64_Sym *symbols, size_t count, const char *names) {
  while (end - at >= 4) {
    uint16_t size;
    memcpy(&size, at + 2, sizeof size);
    int format = at[0], attribute = (unsigned char)at[1];
    at += 4;
    if (format != SIZED) continue;
    if (size > end - at) return;
    uint32_t value[2];
    if (size == sizeof value && (attribute == REGISTERS || attribute == FRAME)) {
      memcpy(value, at, sizeof value);
      struct kernel *kernel = value[0] < count ? kernel_of(module, names + symbols[value[0]].st_name) : NULL;
      if (kernel && attribute == REGISTERS) kernel->registers = value[1];
      if (kernel && attribute == FRAME) kernel->local = value[1];
    }
    at += size;
  }
}

static void read_image(struct module *module, const char *image) {
  const Elf64_Ehdr *head = (const Elf64_Ehdr *)image;
  if (!image || memcmp(image, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != CUDA_MACHINE) return;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + head->e_shoff);
  if (head->e_shstrndx >= head->e_shnum) return;
  const char *names = image + sections[head->e_shstrndx].sh_offset;
  const Elf64_Shdr *symbols = NULL, *info = NULL;
  for (int i = 0; i < head->e_shnum; i++) {
    if (sections[i].sh_type == SHT_SYMTAB) symbols = &sections[i];
    if (!strcmp(names + sections[i].sh_name, ".nv.info")) info = &sections[i];
  }
  if (!symbols || !info || symbols->sh_link >= head->e_shnum) return;
  const char *at = image + info->sh_offset, *symbol_names = image + sections[symbols->sh_link].sh_offset;
  read_info(module, at, at + info->sh_size, (const Elf64_Sym *)(image + symbols->sh_offset), symbols->sh_size / sizeof(Elf64_Sym), symbol_names);
}

static int load(void **handle, const void *image) {
  struct module *module = vgpu_handle_make(HANDLE_MODULE, sizeof *module);
  if (!module) return CUDA_OUT_OF_MEMORY;
  read_image(module, image);
  *handle = module;
  return CUDA_OK;
}

// torch.compile's own launcher (torch/csrc/inductor/static_launcher) names files.
static int load_file(void **handle, const char *path) {
  char *content = NULL;
  long size = -1;
  FILE *file = fopen(path, "rb");
  if (!file) return CUDA_FILE_NOT_FOUND;
  if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) > (long)sizeof(Elf64_Ehdr)) {
    rewind(file);
    content = malloc((size_t)size);
    if (content && fread(content, (size_t)size, 1, file) != 1) content[0] = 0;
  }
  fclose(file);
  int status = load(handle, content);
  free(content);
  return status;
}

static int unload(void *handle) {
  if (!vgpu_handle_remove(HANDLE_MODULE, handle)) return CUDA_INVALID_HANDLE;
  struct module *module = handle;
  for (size_t i = 0; i < module->count; i++) {
    free(module->kernels[i]->name);
    vgpu_handle_drop(HANDLE_KERNEL, module->kernels[i]);
  }
  free(module->kernels);
  free(module);
  return CUDA_OK;
}

static int find(void **function, void *handle, const char *name) {
  *function = &unknown_kernel;
  if (!vgpu_handle_exists(HANDLE_MODULE, handle)) return CUDA_INVALID_HANDLE;
  struct module *module = handle;
  for (size_t i = 0; i < module->count; i++) if (!strcmp(module->kernels[i]->name, name)) *function = module->kernels[i];
  return CUDA_OK;
}

static int attribute_of(int *value, int attribute, void *function) {
  const struct kernel *kernel = vgpu_handle_exists(HANDLE_KERNEL, function) ? function : NULL;
  *value = 0;
  if (attribute == MAX_THREADS_PER_BLOCK) *value = 1024;
  if (attribute == NUM_REGS) *value = kernel ? (int)kernel->registers : REGISTERS_OF_OTHERS;
  if (attribute == LOCAL_SIZE_BYTES && kernel) *value = (int)kernel->local;
  return CUDA_OK;
}

API(int, cuModuleLoad)(void **handle, const char *path) { return load_file(handle, path); }
API(int, cuModuleLoadData)(void **handle, const void *image) { return load(handle, image); }
API(int, cuModuleLoadDataEx)(void **handle, const void *image) { return load(handle, image); }
API(int, cuModuleLoadFatBinary)(void **handle, const void *image) { (void)image; return load(handle, NULL); }
API(int, cuModuleUnload)(void *handle) { return unload(handle); }
API(int, cuModuleGetFunction)(void **function, void *handle, const char *name) { return find(function, handle, name); }
API(int, cuModuleGetGlobal_v2)(uintptr_t *address, size_t *size, void *handle, const char *name) {
  (void)handle, (void)name;
  if (address) *address = (uintptr_t)vgpu_symbols;
  if (size) *size = 4;
  return CUDA_OK;
}
API(int, cuLibraryLoadData)(void **handle, const void *image) { return load(handle, image); }
API(int, cuLibraryLoadFromFile)(void **handle, const char *path) { return load_file(handle, path); }
API(int, cuLibraryUnload)(void *handle) { return unload(handle); }
API(int, cuLibraryGetKernel)(void **function, void *handle, const char *name) { return find(function, handle, name); }
API(int, cuLibraryGetModule)(void **handle, void *from) { *handle = from; return CUDA_OK; }
API(int, cuKernelGetFunction)(void **function, void *from) { *function = from; return CUDA_OK; }
API(int, cuKernelGetAttribute)(int *value, int attribute, void *function, int device) { (void)device; return attribute_of(value, attribute, function); }
API(int, cuKernelSetAttribute)(int attribute, int value, void *function, int device) { (void)attribute, (void)value, (void)function, (void)device; return CUDA_OK; }
API(int, cuFuncGetAttribute)(int *value, int attribute, void *function) { return attribute_of(value, attribute, function); }
API(int, cuFuncSetAttribute)(void *function, int attribute, int value) { (void)function, (void)attribute, (void)value; return CUDA_OK; }
API(int, cuFuncSetCacheConfig)(void *function, int config) { (void)function, (void)config; return CUDA_OK; }
