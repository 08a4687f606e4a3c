/* Several devices: counts, accounts, peers. Arguments: the visible devices, the capacity. */
#include "cuda.h"
#include <dlfcn.h>

int main(int count, char **arguments) {
  assert(count == 3);
  int wanted = atoi(arguments[1]), devices = -1, can, value;
  size_t available = strtoull(arguments[2], NULL, 10), free, total;
  FAILS(cudaGetDeviceCount(&devices), wanted ? 0 : 100);
  assert(devices == wanted);
  /* NVML counts all devices of the machine. */
  void *management = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  assert(management);
  int (*nvmlDeviceGetCount)(unsigned *) = (int (*)(unsigned *))dlsym(management, "nvmlDeviceGetCount_v2");
  unsigned on_machine;
  CHECK(nvmlDeviceGetCount(&on_machine));
  assert(on_machine == 4);
  FAILS(cudaSetDevice(wanted), wanted ? 101 : 100);
  if (wanted < 2) return 0;
  void *first, *second;
  struct pointer p;
  CHECK(cudaMalloc(&first, 10 * MIB));
  CHECK(cudaSetDevice(1));
  CHECK(cudaMemGetInfo(&free, &total));
  assert(free == available);
  CHECK(cudaMalloc(&second, 20 * MIB));
  CHECK(cudaMemGetInfo(&free, &total));
  assert(free == available - 20 * MIB);
  CHECK(cudaPointerGetAttributes(&p, first));
  assert(p.type == 2 && p.device == 0);
  CHECK(cudaPointerGetAttributes(&p, second));
  assert(p.type == 2 && p.device == 1);
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  assert(can == 1);
  CHECK(cudaDeviceEnablePeerAccess(0, 0));
  FAILS(cudaDeviceEnablePeerAccess(0, 0), 704);
  /* Each device has a bus of its own. */
  int buses[2];
  for (int i = 0; i < 2; i++) CHECK(cudaDeviceGetAttribute(&buses[i], 33, i));
  assert(buses[0] != buses[1]);
  CHECK(cudaDeviceGetAttribute(&value, 16, 1));
  assert(value > 0);
  return 0;
}
