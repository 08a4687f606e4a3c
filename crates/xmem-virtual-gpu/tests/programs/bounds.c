/* What goes beyond an allocation is an invalid value, and touches nothing. */
#include "cuda.h"

static char text[256];

static void memory_of_one_allocation(void) {
  char *large, *small, *next;
  CHECK(cudaMalloc((void **)&large, 3 * MIB + 100));
  CHECK(cudaMalloc((void **)&small, 1000));
  CHECK(cudaMalloc((void **)&next, 1000));
  CHECK(cudaMemset(next, 5, 1000));
  const struct { char *at; size_t size; } allocations[] = {{large, 3 * MIB + 100}, {small, 1000}};
  for (int i = 0; i < 2; i++) {
    char *at = allocations[i].at;
    size_t size = allocations[i].size;
    CHECK(cudaMemset(at, 1, size));
    CHECK(cudaMemset(at + size - 1, 1, 1));
    CHECK(cudaMemcpy(text, at + size - 16, 16, 2));
    CHECK(cudaMemcpyAsync(at + size - 16, text, 16, 1, NULL));
    FAILS(cudaMemset(at, 1, size + 1), 1);
    FAILS(cudaMemset(at + size, 1, 1), 1);
    FAILS(cudaMemset(at, 1, (size_t)-1), 1);
    FAILS(cudaMemset(at + 1, 1, (size_t)-1), 1);
    FAILS(cudaMemcpy(text, at + size - 16, 17, 2), 1);
    FAILS(cudaMemcpy(at + size - 16, text, 17, 1), 1);
    FAILS(cudaMemcpyAsync(text, at + size, 1, 2, NULL), 1);
    FAILS(cudaMemcpy(at, at + 1, size, 3), 1);
  }
  CHECK(cudaMemcpy(text, next, 16, 2));
  assert(text[0] == 5 && text[15] == 5);
  assert(cudaGetLastError() == 1);
  CHECK(cudaFree(large));
  FAILS(cudaMemset(large, 1, 1), 1);
  FAILS(cudaMemcpy(text, large, 1, 2), 1);
  CHECK(cudaFree(small));
  FAILS(cudaMemset(small, 1, 1), 1);
  CHECK(cudaMemset(next, 1, 1000));
  CHECK(cudaFree(next));
}

static void rows(void) {
  char *at;
  size_t pitch;
  CHECK(cudaMallocPitch((void **)&at, &pitch, 100, 8));
  assert(pitch == 512);
  CHECK(cudaMemset2D(at, pitch, 1, 512, 8));
  FAILS(cudaMemset2D(at, pitch, 1, 513, 8), 12);
  FAILS(cudaMemset2D(at, pitch, 1, 512, 9), 1);
  CHECK(cudaMemcpy2D(text, 16, at, pitch, 16, 8, 2));
  FAILS(cudaMemcpy2D(text, 16, at, pitch, 16, 9, 2), 1);
  FAILS(cudaMemcpy2D(text, 8, at, pitch, 16, 8, 2), 12);
  FAILS(cudaMemcpy2D(at, (size_t)1 << 62, text, 16, 16, 8, 1), 1);
  CHECK(cudaFree(at));
  /* A size that no number of bytes holds. */
  void *none = NULL;
  FAILS(cudaMallocPitch(&none, &pitch, (size_t)-1, 1), 1);
  FAILS(cudaMallocPitch(&none, &pitch, 512, ((size_t)1 << 55) + 1), 1);
  FAILS(cudaMalloc(&none, (size_t)-100), 2);
  FAILS(cudaMalloc(NULL, 1), 1);
  assert(!none);
}

static void memory_of_the_host(void) {
  char *pinned, *plain = malloc(64);
  CHECK(cudaHostAlloc((void **)&pinned, 100, 0));
  CHECK(cudaMemset(pinned, 1, 100));
  FAILS(cudaMemset(pinned, 1, 101), 1);
  /* Memory that CUDA does not know cannot be filled by it. */
  FAILS(cudaMemset(plain, 1, 64), 1);
  FAILS(cudaMemset(NULL, 1, 1), 1);
  FAILS(cudaMemcpy(NULL, pinned, 1, 0), 1);
  CHECK(cudaMemset(NULL, 1, 0));
  CHECK(cudaMemcpy(NULL, NULL, 0, 0));
  CHECK(cudaMemcpy(plain, pinned, 64, 0));
  assert(plain[63] == 1);
  CHECK(cudaFreeHost(pinned));
  FAILS(cudaFreeHost(pinned), 1);
  FAILS(cudaFreeHost(plain), 1);
  free(plain);
}

static void memory_of_pools(void) {
  char *at;
  CHECK(cudaMallocAsync((void **)&at, 1000, NULL));
  CHECK(cudaMemset(at, 1, 1000));
  FAILS(cudaMemset(at, 1, 1001), 1);
  CHECK(cudaFreeAsync(at, NULL));
  FAILS(cudaMemset(at, 1, 1), 1);
  FAILS(cudaFreeAsync(at, NULL), 1);
  FAILS(cudaFree(at), 1);
}

int main(void) {
  memory_of_one_allocation();
  rows();
  memory_of_the_host();
  memory_of_pools();
  return 0;
}
