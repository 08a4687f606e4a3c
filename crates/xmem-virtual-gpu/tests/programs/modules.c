/* Modules: what a cubin says about registers and local memory, and images of which nothing is known. */
#include "cuda.h"
#include <elf.h>
#include <string.h>
#include <unistd.h>
#define FILE_NOT_FOUND 301
#define INVALID_HANDLE 400
enum { MAX_THREADS = 0, LOCAL = 3, REGISTERS = 4 };

struct entry { unsigned char format, attribute; uint16_t size; uint32_t symbol, number; };
/* A cubin of two kernels, as ptxas of CUDA 13.0 writes it. */
static struct {
  Elf64_Ehdr head;
  Elf64_Shdr sections[4];
  Elf64_Sym symbols[3];
  struct entry info[4];
  char names[64];
} cubin;

static void write_cubin(void) {
  memcpy(cubin.names, "\0.nv.info\0.symtab\0.strtab\0first\0second", 39);
  memcpy(cubin.head.e_ident, "\177ELF\2\1\1\101\10", 9);
  cubin.head.e_machine = 190;
  cubin.head.e_shoff = (char *)cubin.sections - (char *)&cubin;
  cubin.head.e_shnum = 4, cubin.head.e_shstrndx = 3;
  cubin.sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_offset = (char *)cubin.info - (char *)&cubin, .sh_size = sizeof cubin.info};
  cubin.sections[2] = (Elf64_Shdr){.sh_name = 10, .sh_type = SHT_SYMTAB, .sh_offset = (char *)cubin.symbols - (char *)&cubin, .sh_size = sizeof cubin.symbols, .sh_link = 3};
  cubin.sections[3] = (Elf64_Shdr){.sh_name = 18, .sh_type = SHT_STRTAB, .sh_offset = cubin.names - (char *)&cubin, .sh_size = sizeof cubin.names};
  cubin.symbols[1].st_name = 26, cubin.symbols[2].st_name = 32;
  cubin.info[0] = (struct entry){4, 0x2f, 8, 1, 56};
  cubin.info[1] = (struct entry){4, 0x2f, 8, 2, 255};
  cubin.info[2] = (struct entry){4, 0x11, 8, 2, 96};
  /* A symbol that there is not. */
  cubin.info[3] = (struct entry){4, 0x2f, 8, 9, 1};
}

static int attribute(int which, void *kernel) {
  int value = -1;
  CHECK(cuFuncGetAttribute(&value, which, kernel));
  return value;
}

int main(void) {
  void *module, *other, *first, *second, *none;
  write_cubin();
  CHECK(cuModuleLoadData(&module, &cubin));
  CHECK(cuModuleGetFunction(&first, module, "first"));
  CHECK(cuModuleGetFunction(&second, module, "second"));
  FAILS(attribute(REGISTERS, first), 56);
  FAILS(attribute(LOCAL, first), 0);
  FAILS(attribute(REGISTERS, second), 255);
  FAILS(attribute(LOCAL, second), 96);
  FAILS(attribute(MAX_THREADS, second), 1024);
  CHECK(cuModuleGetFunction(&none, module, "third"));
  FAILS(attribute(REGISTERS, none), 32);
  CHECK(cuModuleLoadData(&other, ".version 8.7"));
  CHECK(cuModuleGetFunction(&none, other, "first"));
  FAILS(attribute(REGISTERS, none), 32);
  CHECK(cuModuleUnload(module));
  FAILS(cuModuleUnload(module), INVALID_HANDLE);
  FAILS(cuModuleGetFunction(&none, module, "first"), INVALID_HANDLE);
  CHECK(cuModuleUnload(other));
  /* From a file. */
  char path[] = "/tmp/xmem-cubin-XXXXXX";
  int file = mkstemp(path);
  FAILS((int)write(file, &cubin, sizeof cubin), (int)sizeof cubin);
  close(file);
  CHECK(cuModuleLoad(&other, path));
  unlink(path);
  CHECK(cuModuleGetFunction(&second, other, "second"));
  FAILS(attribute(REGISTERS, second), 255);
  CHECK(cuModuleUnload(other));
  FAILS(cuModuleLoad(&other, path), FILE_NOT_FOUND);
  return 0;
}
