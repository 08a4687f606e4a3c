/* Virtual memory management, as PyTorch's expandable segments use it. Argument: capacity in bytes. */
#include "cuda.h"
#include <unistd.h>
typedef uintptr_t address_t;
struct property { int type, handle, place, device; void *data; unsigned char flags[8]; };
int cuInit(unsigned);
int cuMemGetInfo_v2(size_t *, size_t *);
int cuMemAddressReserve(address_t *, size_t, size_t, address_t, unsigned long long);
int cuMemAddressFree(address_t, size_t);
int cuMemCreate(void **, size_t, const struct property *, unsigned long long);
int cuMemRelease(void *);
int cuMemExportToShareableHandle(int *, void *, int, unsigned long long);
int cuMemImportFromShareableHandle(void **, void *, int);
int cuMemMap(address_t, size_t, size_t, void *, unsigned long long);
int cuMemUnmap(address_t, size_t);
int cuMemSetAccess(address_t, size_t, const void *, size_t);
int cuMemsetD8_v2(address_t, unsigned char, size_t);
int cuMemsetD32_v2(address_t, unsigned, size_t);
int cuMemcpyDtoH_v2(void *, address_t, size_t);
int cuMemFree_v2(address_t);
int cuMemRetainAllocationHandle(void **, void *);
int cuMemGetAllocationGranularity(size_t *, const struct property *, int);
int cuDeviceGetAttribute(int *, int, int);
int cuGraphicsMapResources(unsigned, void *, stream_t);

static size_t free_memory(void) {
  size_t free, total;
  CHECK(cuMemGetInfo_v2(&free, &total));
  return free;
}

/* What goes beyond a mapping is an invalid value: neighbors keep their memory. */
static void beyond_a_mapping(const struct property *property) {
  address_t at, other;
  void *handles[3];
  char text[64];
  size_t available = free_memory();
  CHECK(cuMemAddressReserve(&at, 40 * MIB, 0, 0, 0));
  CHECK(cuMemAddressReserve(&other, 20 * MIB, 0, 0, 0));
  for (int i = 0; i < 3; i++) CHECK(cuMemCreate(&handles[i], 10 * MIB, property, 0));
  /* A gap of 10 MiB between the second and the third. */
  const size_t places[] = {0, 10, 30};
  FAILS(cuMemMap(at + 35 * MIB, 10 * MIB, 0, handles[0], 0), 1);
  for (int i = 0; i < 3; i++) CHECK(cuMemMap(at + places[i] * MIB, 10 * MIB, 0, handles[i], 0));
  CHECK(cuMemSetAccess(at, 20 * MIB, NULL, 0));
  FAILS(cuMemSetAccess(at, 21 * MIB, NULL, 0), 1);
  FAILS(cuMemSetAccess(other, 2 * MIB, NULL, 0), 1);
  CHECK(cuMemsetD8_v2(at + 5 * MIB, 1, 15 * MIB));
  CHECK(cuMemsetD8_v2(at + 30 * MIB, 7, 64));
  FAILS(cuMemsetD8_v2(at + 5 * MIB, 1, 16 * MIB), 1);
  FAILS(cuMemsetD8_v2(at + 20 * MIB, 1, 1), 1);
  FAILS(cuMemsetD32_v2(at, 1, 5 * MIB + 1), 1);
  FAILS(cuMemsetD32_v2(at, 1, ((size_t)1 << 62) + 1), 1);
  FAILS(cuMemcpyDtoH_v2(text, at + 40 * MIB - 16, 17), 1);
  FAILS(cuMemUnmap(at, 15 * MIB), 1);
  FAILS(cuMemUnmap(at, 30 * MIB), 1);
  FAILS(cuMemUnmap(at, 40 * MIB), 1);
  FAILS(cuMemUnmap(at, 64 * MIB), 1);
  FAILS(cuMemUnmap(at, (size_t)-1), 1);
  FAILS(cuMemUnmap(at - 2 * MIB, 12 * MIB), 1);
  FAILS(cuMemUnmap(at, 0), 1);
  CHECK(cuMemcpyDtoH_v2(text, at + 30 * MIB, 64));
  assert(text[0] == 7 && text[63] == 7);
  /* Addresses are no memory of their own, and stay while memory is mapped to them. */
  FAILS(cuMemFree_v2(other), 1);
  FAILS(cuMemAddressFree(at, 40 * MIB), 1);
  /* A handle that is released twice while it is mapped. */
  CHECK(cuMemRelease(handles[0]));
  FAILS(cuMemRelease(handles[0]), 1);
  FAILS(cuMemMap(other, 10 * MIB, 0, handles[0], 0), 1);
  CHECK(cuMemUnmap(at, 20 * MIB));
  FAILS(cuMemUnmap(at, 20 * MIB), 1);
  CHECK(cuMemUnmap(at + 30 * MIB, 10 * MIB));
  CHECK(cuMemRelease(handles[1]));
  CHECK(cuMemRelease(handles[2]));
  FAILS(cuMemRelease(handles[2]), 1);
  CHECK(cuMemAddressFree(at, 40 * MIB));
  CHECK(cuMemAddressFree(other, 20 * MIB));
  assert(free_memory() == available);
}

int main(int count, char **arguments) {
  assert(count == 2);
  size_t available = strtoull(arguments[1], NULL, 10), step;
  struct property property = {.type = 1, .place = 1};
  CHECK(cuInit(0));
  CHECK(cuMemGetAllocationGranularity(&step, &property, 0));
  assert(step == 2 * MIB);
  /* Addresses cost nothing: more of them than there is memory. */
  address_t segment;
  size_t reserved = 2 * available / step * step;
  CHECK(cuMemAddressReserve(&segment, reserved, 0, 0, 0));
  assert(free_memory() == available);
  void *handles[3], *none;
  for (int i = 0; i < 3; i++) {
    CHECK(cuMemCreate(&handles[i], 20 * MIB, &property, 0));
    CHECK(cuMemMap(segment + i * 20 * MIB, 20 * MIB, 0, handles[i], 0));
  }
  assert(free_memory() == available - 60 * MIB);
  FAILS(cuMemMap(segment + 10 * MIB, 20 * MIB, 0, handles[0], 0), 1);
  FAILS(cuMemCreate(&none, available / step * step, &property, 0), 2);
  FAILS(cuMemCreate(&none, MIB, &property, 0), 1);
  /* A handle that is mapped keeps its memory after the release, and one that is not released, too. */
  CHECK(cuMemRelease(handles[0]));
  assert(free_memory() == available - 60 * MIB);
  CHECK(cuMemUnmap(segment, 20 * MIB));
  assert(free_memory() == available - 40 * MIB);
  FAILS(cuMemRelease(handles[0]), 1);
  void *again;
  CHECK(cuMemRetainAllocationHandle(&again, (void *)(segment + 25 * MIB)));
  assert(again == handles[1]);
  FAILS(cuMemRetainAllocationHandle(&again, (void *)segment), 1);
  FAILS(cuMemUnmap(segment + 30 * MIB, 10 * MIB), 1);
  CHECK(cuMemUnmap(segment + 20 * MIB, 40 * MIB));
  assert(free_memory() == available - 40 * MIB);
  CHECK(cuMemRelease(handles[1]));
  CHECK(cuMemRelease(handles[1]));
  CHECK(cuMemRelease(handles[2]));
  assert(free_memory() == available);
  /* A file says whose handle it is; a copy of the file says the same, and keeps the memory. */
  int file, copy;
  CHECK(cuMemCreate(&handles[0], 20 * MIB, &property, 0));
  CHECK(cuMemExportToShareableHandle(&file, handles[0], 1, 0));
  copy = dup(file);
  CHECK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)copy, 1));
  assert(again == handles[0]);
  close(file), close(copy);
  CHECK(cuMemRelease(handles[0]));
  assert(free_memory() == available - 20 * MIB);
  CHECK(cuMemRelease(again));
  assert(free_memory() == available);
  FAILS(cuMemExportToShareableHandle(&file, again, 1, 0), 1);
  FAILS(cuMemExportToShareableHandle(&file, again, 8, 0), 801);
  beyond_a_mapping(&property);
  CHECK(cuMemAddressFree(segment, reserved));
  FAILS(cuMemAddressFree(segment, reserved), 1);
  int value;
  CHECK(cuDeviceGetAttribute(&value, 102, 0));
  assert(value == 1);
  FAILS(cuDeviceGetAttribute(&value, 102, 7), 101);
  FAILS(cuGraphicsMapResources(0, NULL, NULL), 801);
  return 0;
}
