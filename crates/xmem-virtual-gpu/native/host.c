// Pinned host memory: ordinary memory that is remembered.
#define _GNU_SOURCE
#include "vgpu.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

struct block { char *start; size_t size; int is_ours; };
static struct block *blocks;
static size_t count, room;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int remember(char *start, size_t size, int is_ours) {
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < count; i++) {
    if (start >= blocks[i].start + blocks[i].size || blocks[i].start >= start + size) continue;
    pthread_mutex_unlock(&mutex);
    return CUDA_HOST_ALREADY_REGISTERED;
  }
  if (count == room) {
    size_t more = room ? 2 * room : 64;
    struct block *grown = realloc(blocks, more * sizeof *blocks);
    if (grown) blocks = grown, room = more;
  }
  int fits = count < room;
  if (fits) blocks[count++] = (struct block){start, size, is_ours};
  pthread_mutex_unlock(&mutex);
  return fits ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

static int forget(void *start, int is_ours, size_t *size) {
  int found = 0;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < count && !found; i++) {
    if (blocks[i].start != start || blocks[i].is_ours != is_ours) continue;
    *size = blocks[i].size;
    blocks[i] = blocks[--count];
    found = 1;
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

void *vgpu_host_allocate(size_t size) {
  if (!size) size = 1;
  void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return NULL;
  if (!remember(start, size, 1)) return start;
  munmap(start, size);
  return NULL;
}

int vgpu_host_release(void *start) {
  size_t size;
  if (!start) return CUDA_OK;
  if (!forget(start, 1, &size)) return CUDA_INVALID_VALUE;
  munmap(start, size);
  return CUDA_OK;
}

int vgpu_host_register(void *start, size_t size) {
  if (!start || !size || size > UINTPTR_MAX - (uintptr_t)start) return CUDA_INVALID_VALUE;
  return remember(start, size, 0);
}

int vgpu_host_unregister(void *start) {
  size_t size;
  return forget(start, 0, &size) ? CUDA_OK : CUDA_HOST_NOT_REGISTERED;
}

size_t vgpu_pinned_from(const void *address) {
  size_t size = SIZE_MAX;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < count && size == SIZE_MAX; i++) {
    size_t before = (size_t)((char *)address - blocks[i].start);
    if (blocks[i].is_ours && (char *)address >= blocks[i].start && before < blocks[i].size) size = blocks[i].size - before;
  }
  pthread_mutex_unlock(&mutex);
  return size;
}

int vgpu_is_pinned(const void *address) {
  int found = 0;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < count && !found; i++)
    found = (char *)address >= blocks[i].start && (size_t)((char *)address - blocks[i].start) < blocks[i].size;
  pthread_mutex_unlock(&mutex);
  return found;
}
