/* The stream-ordered allocator. Argument: capacity in bytes. */
#include "cuda.h"
enum { THRESHOLD = 4, RESERVED = 5, RESERVED_PEAK = 6, USED = 7, USED_PEAK = 8 };
static pool_t pool;
static uint64_t get(int attribute) {
  uint64_t value;
  CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}
static size_t free_memory(void) {
  size_t free, total;
  CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

int main(int count, char **arguments) {
  assert(count == 2);
  size_t available = strtoull(arguments[1], NULL, 10);
  void *a, *b, *c;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMallocAsync(&a, 10 * MIB, NULL));
  assert(get(USED) == 10 * MIB && get(RESERVED) == 32 * MIB && free_memory() == available - 32 * MIB);
  CHECK(cudaMallocAsync(&b, 30 * MIB, NULL));
  assert(get(USED) == 40 * MIB && get(RESERVED) == 64 * MIB);
  FAILS(cudaMallocAsync(&c, available, NULL), 2);
  cudaGetLastError();
  /* Without a threshold a synchronization gives everything back that is not used. */
  CHECK(cudaFreeAsync(b, NULL));
  assert(get(USED) == 10 * MIB && get(RESERVED) == 64 * MIB);
  CHECK(cudaStreamSynchronize(NULL));
  assert(get(RESERVED) == 10 * MIB);
  uint64_t all = UINT64_MAX;
  CHECK(cudaMemPoolSetAttribute(pool, THRESHOLD, &all));
  CHECK(cudaMallocAsync(&b, 100 * MIB, NULL));
  CHECK(cudaFree(b));
  CHECK(cudaDeviceSynchronize());
  assert(get(RESERVED) >= 110 * MIB && get(USED) == 10 * MIB && get(USED_PEAK) == 110 * MIB);
  CHECK(cudaMemPoolTrimTo(pool, 0));
  assert(get(RESERVED) == 10 * MIB && get(RESERVED_PEAK) >= 110 * MIB);
  uint64_t zero = 0;
  CHECK(cudaMemPoolSetAttribute(pool, USED_PEAK, &zero));
  assert(get(USED_PEAK) == 10 * MIB);
  CHECK(cudaFreeAsync(a, NULL));
  CHECK(cudaMemPoolTrimTo(pool, 0));
  assert(free_memory() == available);
  return 0;
}
