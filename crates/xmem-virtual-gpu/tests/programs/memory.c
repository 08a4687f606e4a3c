/* Capacity, the order of addresses, shared pages, copies. Arguments: memory and capacity in bytes. */
#include "cuda.h"

static void *take(size_t mib) {
  void *address;
  CHECK(cudaMalloc(&address, mib * MIB));
  return address;
}

/* The sizes and places of segments in a public memory snapshot of a real GPU. */
static void order(void) {
  const size_t sizes[] = {44, 44, 44, 20, 16, 20};
  const long places[] = {5568, 5504, 5440, 5484, 5548, 5612};
  char *at[6];
  for (int i = 0; i < 6; i++) {
    at[i] = take(sizes[i]);
    assert((at[i] - at[0]) / (long)MIB == places[i] - places[0]);
  }
  /* The tails of these are in use: holes are used again, the lowest first. */
  CHECK(cudaFree(at[1]));
  CHECK(cudaFree(at[2]));
  assert(take(44) == at[2]);
  assert(take(44) == at[1]);
  for (int i = 0; i < 6; i++) CHECK(cudaFree(at[i]));
  /* Chunks with nothing in use are free, and taken again from the top. */
  char *three[3];
  for (int i = 0; i < 3; i++) three[i] = take(20);
  assert(three[0] == at[0] + 32 * MIB && three[1] == at[0] && three[2] == three[1] - 32 * MIB);
  CHECK(cudaFree(three[0]));
  CHECK(cudaFree(three[1]));
  assert(take(20) == three[0]);
  assert(take(30) == three[1]);
  char *tail = take(10);
  assert(tail == three[2] + 20 * MIB);
  CHECK(cudaFree(three[0]));
  CHECK(cudaFree(three[1]));
  CHECK(cudaFree(three[2]));
  /* The chunk of the tail is not free, nor joined with the free ones above. */
  assert(take(64) == three[1]);
  assert(take(22) == three[2] - 32 * MIB);
  assert(take(20) == three[2]);
  CHECK(cudaFree(three[1]));
  CHECK(cudaFree(three[2] - 32 * MIB));
  CHECK(cudaFree(three[2]));
  CHECK(cudaFree(tail));
}

static void capacity(size_t memory, size_t available) {
  size_t free, total;
  CHECK(cudaMemGetInfo(&free, &total));
  assert(total == memory && free == available);
  void *most, *more;
  FAILS(cudaMalloc(&more, available + 1), 2);
  assert(!more && cudaPeekAtLastError() == 2 && cudaGetLastError() == 2 && cudaGetLastError() == 0);
  FAILS(cudaMalloc(&more, (size_t)-1), 2);
  cudaGetLastError();
  size_t pages = available / (2 * MIB) * (2 * MIB);
  CHECK(cudaMalloc(&most, pages));
  CHECK(cudaMemGetInfo(&free, &total));
  assert(free == available - pages);
  FAILS(cudaMalloc(&more, 2 * MIB), 2);
  FAILS(cudaMalloc(&more, 1), 2);
  cudaGetLastError();
  CHECK(cudaFree(most));
  CHECK(cudaMemGetInfo(&free, &total));
  assert(free == available);
  FAILS(cudaFree((char *)most + 512), 1);
  cudaGetLastError();
  CHECK(cudaFree(NULL));
  CHECK(cudaMalloc(&more, 0));
  assert(!more);
}

/* Small requests share a page, which goes back with the last of them. */
static void small(size_t available) {
  size_t free, total;
  char *pieces[5000];
  for (int i = 0; i < 5000; i++) CHECK(cudaMalloc((void **)&pieces[i], 100));
  assert(pieces[1] == pieces[0] + 512 && (uintptr_t)pieces[0] % 512 == 0);
  CHECK(cudaMemGetInfo(&free, &total));
  assert(free == available - 4 * MIB); /* 4,096 pieces of 512 bytes in a page */
  for (int i = 0; i < 5000; i += 2) CHECK(cudaFree(pieces[i]));
  void *again;
  CHECK(cudaMalloc(&again, 512));
  assert(again == pieces[0]);
  CHECK(cudaFree(again));
  for (int i = 1; i < 5000; i += 2) CHECK(cudaFree(pieces[i]));
  CHECK(cudaMemGetInfo(&free, &total));
  assert(free == available);
}

static void copies(void) {
  char *device = take(64), text[1 << 16], *large = malloc(8 * MIB);
  memset(text, 7, sizeof text);
  CHECK(cudaMemcpy(device, text, sizeof text, 1));
  memset(text, 0, sizeof text);
  CHECK(cudaMemcpy(text, device, sizeof text, 2));
  assert(text[0] == 7 && text[sizeof text - 1] == 7);
  CHECK(cudaMemset(device, 1, 16));
  CHECK(cudaMemcpy(text, device, 32, 2));
  assert(text[15] == 1 && text[16] == 7);
  /* Large copies leave nothing, and read back as zeros. */
  memset(large, 9, 8 * MIB);
  CHECK(cudaMemcpy(device, large, 8 * MIB, 1));
  CHECK(cudaMemcpy(text, device, 32, 2));
  assert(text[0] == 0 && text[31] == 0);
  CHECK(cudaMemcpy(large + 1, device, 8 * MIB - 2, 2));
  assert(large[0] == 9 && large[8 * MIB - 1] == 9);
  for (size_t i = 1; i < 8 * MIB - 1; i++) assert(large[i] == 0);
  /* Freed memory does not keep what was in it. */
  CHECK(cudaMemset(device, 5, 64));
  CHECK(cudaFree(device));
  assert(take(64) == (void *)device);
  CHECK(cudaMemcpy(text, device, 64, 2));
  assert(text[0] == 0);
  CHECK(cudaFree(device));
  free(large);
}

static void pointers(void) {
  struct pointer p;
  void *device = take(2), *host, *plain = malloc(8);
  CHECK(cudaPointerGetAttributes(&p, (char *)device + 100));
  assert(p.type == 2 && p.device == 0);
  CHECK(cudaHostAlloc(&host, 100, 0));
  memset(host, 1, 100);
  CHECK(cudaPointerGetAttributes(&p, host));
  assert(p.type == 1 && p.host_address == host);
  CHECK(cudaFreeHost(host));
  CHECK(cudaPointerGetAttributes(&p, plain));
  assert(p.type == 0 && p.device == -1);
  CHECK(cudaFree(device));
}

int main(int count, char **arguments) {
  assert(count == 3);
  size_t memory = strtoull(arguments[1], NULL, 10), available = strtoull(arguments[2], NULL, 10);
  order();
  capacity(memory, available);
  small(available);
  copies();
  pointers();
  char handle[64];
  FAILS(cudaIpcGetMemHandle(handle, NULL), 801);
  FAILS(cudaImportExternalMemory(handle, NULL), 801);
  return 0;
}
