// The stream-ordered allocator: what a pool's users hold, and what the pool has of the device's memory.
//
// A pool grows in steps of 32 MiB and keeps what is freed, up to its release threshold, until a
// synchronization. Fragmentation within a pool is not modeled: it grows when the sum of its allocations does.
#include "numbers.h"
#include "vgpu.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH (32 * MIB)
#define PAGE (2 * MIB)
#define STEP ((size_t)512)

struct pool {
  int device, is_closed;
  size_t used, used_peak, reserved, reserved_peak;
  uint64_t threshold;
  struct pool *next;
};
struct entry { char *address; size_t size; struct pool *pool; };
static struct pool defaults[MAX_DEVICES];
static struct pool *current[MAX_DEVICES], *all;
static struct entry *entries;
static size_t count, room;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

struct pool *vgpu_default_pool(int device) {
  if (device < 0 || device >= MAX_DEVICES) return NULL;
  defaults[device].device = device;
  return &defaults[device];
}
struct pool *vgpu_current_pool(int device) {
  if (device < 0 || device >= MAX_DEVICES) return NULL;
  return current[device] ? current[device] : vgpu_default_pool(device);
}
void vgpu_set_current_pool(int device, struct pool *pool) {
  if (device >= 0 && device < MAX_DEVICES) current[device] = pool;
}
int vgpu_is_pool(const struct pool *pool) {
  uintptr_t at = (uintptr_t)pool, first = (uintptr_t)defaults;
  int is_default = at >= first && at < first + sizeof defaults && (at - first) % sizeof *defaults == 0;
  return is_default || vgpu_handle_exists(HANDLE_POOL, pool);
}
struct pool *vgpu_create_pool(int device) {
  struct pool *pool = calloc(1, sizeof *pool);
  if (pool && vgpu_handle_add(HANDLE_POOL, pool)) {
    free(pool);
    pool = NULL;
  }
  if (!pool) return NULL;
  pool->device = device;
  pthread_mutex_lock(&mutex);
  pool->next = all;
  all = pool;
  pthread_mutex_unlock(&mutex);
  return pool;
}

static void shrink(struct pool *pool, size_t keep) {
  size_t least = round_up(pool->used, PAGE);
  if (keep < least) keep = least;
  if (pool->reserved <= keep) return;
  vgpu_give_memory(pool->device, pool->reserved - keep);
  pool->reserved = keep;
}

// The structure stays: what is allocated from it may be freed later.
int vgpu_destroy_pool(struct pool *pool) {
  if (!vgpu_handle_remove(HANDLE_POOL, pool)) return CUDA_INVALID_VALUE;
  pthread_mutex_lock(&mutex);
  pool->is_closed = 1;
  shrink(pool, 0);
  for (int i = 0; i < MAX_DEVICES; i++) if (current[i] == pool) current[i] = NULL;
  pthread_mutex_unlock(&mutex);
  return CUDA_OK;
}

static int reserve(struct pool *pool, size_t needed) {
  if (needed <= pool->reserved) return 1;
  size_t steps[] = {GROWTH, PAGE};
  for (int i = 0; i < 2; i++) {
    size_t more = round_up(needed - pool->reserved, steps[i]);
    if (vgpu_take_memory(pool->device, more)) continue;
    pool->reserved += more;
    if (pool->reserved > pool->reserved_peak) pool->reserved_peak = pool->reserved;
    return 1;
  }
  return 0;
}

void *vgpu_pool_allocate(struct pool *pool, size_t size) {
  if (!pool || !size || size > (size_t)1 << 50) return NULL;
  pthread_mutex_lock(&mutex);
  if (count == room) {
    size_t more = room ? 2 * room : 256;
    struct entry *grown = realloc(entries, more * sizeof *entries);
    if (grown) entries = grown, room = more;
  }
  size_t taken = round_up(size, STEP);
  char *address = NULL;
  if (count < room && reserve(pool, pool->used + taken)) {
    address = vgpu_reserve_addresses(pool->device, taken, 0, size);
    if (address) {
      pool->used += taken;
      if (pool->used > pool->used_peak) pool->used_peak = pool->used;
      entries[count++] = (struct entry){address, taken, pool};
    }
  }
  pthread_mutex_unlock(&mutex);
  return address;
}

int vgpu_pool_release(void *address) {
  int is_other = 1;
  pthread_mutex_lock(&mutex);
  for (size_t i = count; i-- > 0;) {
    if (entries[i].address != address) continue;
    struct entry entry = entries[i];
    entries[i] = entries[--count];
    vgpu_release_addresses(address, entry.size);
    entry.pool->used -= entry.size;
    if (entry.pool->is_closed) shrink(entry.pool, 0);
    is_other = 0;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return is_other;
}

void vgpu_pool_trim(struct pool *pool, size_t keep) {
  pthread_mutex_lock(&mutex);
  shrink(pool, keep);
  pthread_mutex_unlock(&mutex);
}

void vgpu_pools_synchronize(void) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < MAX_DEVICES; i++) if (defaults[i].reserved) shrink(&defaults[i], defaults[i].threshold);
  for (struct pool *pool = all; pool; pool = pool->next) shrink(pool, pool->threshold);
  pthread_mutex_unlock(&mutex);
}

// Numbers of cudaMemPoolAttr. The first three say what is reused, and are ints.
enum { REUSE_FIRST = 1, REUSE_LAST = 3, THRESHOLD = 4, RESERVED, RESERVED_PEAK, USED, USED_PEAK };

int vgpu_pool_get(struct pool *pool, int attribute, void *value) {
  if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST) {
    *(int *)value = 1;
    return 0;
  }
  pthread_mutex_lock(&mutex);
  uint64_t numbers[] = {pool->threshold, pool->reserved, pool->reserved_peak, pool->used, pool->used_peak};
  pthread_mutex_unlock(&mutex);
  if (attribute < THRESHOLD || attribute > USED_PEAK) return -1;
  memcpy(value, &numbers[attribute - THRESHOLD], sizeof *numbers);
  return 0;
}

int vgpu_pool_set(struct pool *pool, int attribute, const void *value) {
  int status = 0;
  pthread_mutex_lock(&mutex);
  if (attribute == THRESHOLD) memcpy(&pool->threshold, value, sizeof pool->threshold);
  // The peaks can be set to zero only: they start anew.
  else if (attribute == RESERVED_PEAK) pool->reserved_peak = pool->reserved;
  else if (attribute == USED_PEAK) pool->used_peak = pool->used;
  else if (attribute < REUSE_FIRST || attribute > REUSE_LAST) status = -1;
  pthread_mutex_unlock(&mutex);
  return status;
}
