/* Blocks that PyTorch's allocator gives out read as zeros, and its profiler still hears of them. The argument is the path
   of a stand-in for libc10.so, which is loaded with the names of no other library. */
#define _GNU_SOURCE
#include "cuda.h"
#include <dlfcn.h>
#include <string.h>

struct device { signed char kind, index; };
static void (*to_profiler)(void *, long, size_t, size_t, struct device);
static void report(void *address, long size) { to_profiler(address, size, 512, 1024, (struct device){1, 0}); }

/* A block that held ones, and its neighbors. */
static void reuse(char *segment, size_t at, size_t size) {
  char *ones = malloc(size + 2), read[3];
  memset(ones, 1, size + 2);
  /* What is copied at once is not kept beyond 1 MiB. */
  for (size_t done = 0; done < size + 2; done += 4096)
    CHECK(cudaMemcpy(segment + at - 1 + done, ones + done, size + 2 - done < 4096 ? size + 2 - done : 4096, 1));
  report(segment + at, -(long)size);
  CHECK(cudaMemcpy(read, segment + at, 1, 2));
  assert(read[0] == 1);
  report(segment + at, (long)size);
  for (size_t i = 0; i < size; i += size > 4096 ? 4095 : 1) {
    CHECK(cudaMemcpy(read, segment + at + i, 1, 2));
    assert(read[0] == 0);
  }
  CHECK(cudaMemcpy(read, segment + at - 1, 1, 2));
  CHECK(cudaMemcpy(read + 1, segment + at + size - 1, 2, 2));
  assert(read[0] == 1 && read[1] == 0 && read[2] == 1);
  free(ones);
}

int main(int count, char **arguments) {
  assert(count > 1);
  void *c10 = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  assert(c10);
  long *heard = dlsym(c10, "heard");
  to_profiler = (void (*)(void *, long, size_t, size_t, struct device))dlsym(RTLD_DEFAULT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  assert(heard && to_profiler);
  char *segment;
  CHECK(cudaMalloc((void **)&segment, 20 << 20));
  reuse(segment, 512, 512);
  reuse(segment, 4096 - 512, 1024);
  reuse(segment, 1024, 1 << 20);
  reuse(segment, 1536, 3 << 20);
  reuse(segment, 2 << 20, 4 << 20);
  assert(*heard == 0);

  /* Memory of the host is as it was. */
  char host[64] = "text";
  report(host, sizeof host);
  assert(!strcmp(host, "text") && *heard == sizeof host);
  return 0;
}
