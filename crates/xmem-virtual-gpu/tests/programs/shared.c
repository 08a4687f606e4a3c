/* Device memory on a machine that counts all private memory (vm.overcommit_memory=2): memory.c itself, with
   a kernel that refuses anonymous mappings. */
#define _GNU_SOURCE
#include "cuda.h"
#include <sys/mman.h>
static int refused, shared;
static void *refusing_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
  if (flags & MAP_ANONYMOUS) {
    refused++;
    return MAP_FAILED;
  }
  shared++;
  return mmap(at, size, protection, flags, file, offset);
}
#define mmap refusing_mmap
#include "memory.c"
#undef mmap

static struct config config = {.memory = (size_t)80 << 30, .devices = 1, .copy_limit = 1 << 16};
const struct config *vgpu_config(void) { return &config; }
void vgpu_log(const char *format, ...) { (void)format; }

static long resident(void) {
  long pages = 0, unused;
  FILE *file = fopen("/proc/self/statm", "r");
  assert(file && fscanf(file, "%ld %ld", &unused, &pages) == 2);
  fclose(file);
  return pages;
}

int main(void) {
  char *address = vgpu_allocate(0, 64 * MIB);
  assert(address && refused == 1 && shared == 1);
  memset(address, 7, 32 * MIB);
  long before = resident();
  vgpu_fill(address + 1, 0, 32 * MIB - 2);
  assert(address[0] == 7 && address[32 * MIB - 1] == 7);
  for (size_t i = 1; i < 32 * MIB - 1; i++) assert(address[i] == 0);
  memset(address, 7, 32 * MIB);
  assert(!vgpu_release(address));
  assert(resident() < before - 4096); /* 16 of 32 MiB at least are given back */
  assert(vgpu_allocate(0, 64 * MIB) == (void *)address && address[0] == 0);
  return 0;
}
