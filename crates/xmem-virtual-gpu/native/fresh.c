// What the caching allocator of PyTorch gives out reads as zeros, as memory of the driver does. It reuses blocks, and a
// kernel that would have written its result there did not run: without this, the host would read what was there before, such
// as a count of elements.
//
// The allocator reports each block that it gives out and takes back (c10/core/Allocator.cpp, `reportMemoryUsageToProfiler`,
// called by c10/cuda/CUDACachingAllocator.cpp, `alloc_found_block`). The function here has the same name, is found before that
// one, and calls it.
#define _GNU_SOURCE
#include "vgpu.h"
#include <dlfcn.h>

#define REPORT _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)

// c10/core/Device.h: two bytes, which are passed by value.
struct device { int8_t kind, index; };
typedef void report_function(void *address, int64_t size, size_t allocated, size_t reserved, struct device device);

// The function of c10, which is loaded with the names of no other library.
static report_function *original(void) {
  static report_function *found;
  static int is_looked_up;
  report_function *function = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
  if (function || __atomic_load_n(&is_looked_up, __ATOMIC_ACQUIRE)) return function;
  void *library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library) function = (report_function *)dlsym(library, NAME_OF(REPORT));
  if (!function) vgpu_log("error libc10.so has no reportMemoryUsageToProfiler: memory is not reported to the profiler");
  __atomic_store_n(&found, function, __ATOMIC_RELEASE);
  __atomic_store_n(&is_looked_up, 1, __ATOMIC_RELEASE);
  return function;
}

__attribute__((visibility("default"))) void REPORT(void *address, int64_t size, size_t allocated, size_t reserved, struct device device) {
  if (size > 0) vgpu_clear_block(address, (size_t)size);
  report_function *report = original();
  if (report && report != REPORT) report(address, size, allocated, reserved, device);
}
