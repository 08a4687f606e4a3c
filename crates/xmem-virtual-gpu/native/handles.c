// The handles that exist: pointers that were given out and not taken back. A handle of another kind, one that was
// destroyed, and what never was a handle are told from them without being looked at.
#include "vgpu.h"
#include <pthread.h>
#include <stdlib.h>

// A table with open addressing; each place is empty, or has a handle with its kind in the lowest bits.
#define KINDS ((uintptr_t)16)
static uintptr_t *places;
static size_t count, room;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// Handles come from `malloc`, which aligns them to 16 bytes.
static uintptr_t entry(int kind, const void *handle) { return (uintptr_t)handle | (uintptr_t)kind; }
static size_t home(uintptr_t entry) { return (size_t)((entry >> 4) * 0x9e3779b97f4a7c15u >> 20) & (room - 1); }

// The place of an entry, or the empty one in which it would be.
static size_t find(uintptr_t entry) {
  size_t at = home(entry);
  while (places[at] && places[at] != entry) at = (at + 1) & (room - 1);
  return at;
}

static int grow(void) {
  uintptr_t *old = places;
  size_t old_room = room, more = room ? 2 * room : 1024;
  uintptr_t *grown = calloc(more, sizeof *grown);
  if (!grown) return 0;
  places = grown, room = more;
  for (size_t i = 0; i < old_room; i++) if (old[i]) places[find(old[i])] = old[i];
  free(old);
  return 1;
}

int vgpu_handle_add(int kind, const void *handle) {
  if (!handle || (uintptr_t)handle % KINDS) return -1;
  pthread_mutex_lock(&mutex);
  int fits = 4 * (count + 1) <= 3 * room || grow();
  if (fits) {
    uintptr_t added = entry(kind, handle);
    size_t at = find(added);
    count += !places[at];
    places[at] = added;
  }
  pthread_mutex_unlock(&mutex);
  return fits ? 0 : -1;
}

int vgpu_handle_exists(int kind, const void *handle) {
  if (!handle || (uintptr_t)handle % KINDS) return 0;
  pthread_mutex_lock(&mutex);
  int found = room && places[find(entry(kind, handle))];
  pthread_mutex_unlock(&mutex);
  return found;
}

int vgpu_handle_remove(int kind, const void *handle) {
  if (!handle || (uintptr_t)handle % KINDS) return 0;
  pthread_mutex_lock(&mutex);
  size_t at = room ? find(entry(kind, handle)) : 0;
  int found = room && places[at];
  if (found) {
    count--;
    // Later entries of the same run move up, so that none is behind an empty place.
    for (size_t next = (at + 1) & (room - 1); places[next]; next = (next + 1) & (room - 1)) {
      size_t from = home(places[next]);
      if (((next - from) & (room - 1)) < ((next - at) & (room - 1))) continue;
      places[at] = places[next];
      at = next;
    }
    places[at] = 0;
  }
  pthread_mutex_unlock(&mutex);
  return found;
}

void *vgpu_handle_make(int kind, size_t size) {
  void *handle = calloc(1, size);
  if (handle && !vgpu_handle_add(kind, handle)) return handle;
  free(handle);
  return NULL;
}

int vgpu_handle_drop(int kind, void *handle) {
  if (!vgpu_handle_remove(kind, handle)) return 0;
  free(handle);
  return 1;
}
