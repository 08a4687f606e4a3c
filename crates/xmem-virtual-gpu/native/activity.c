// The log of what streams are told, for those who model how long it takes: work, copies, collectives, events, waits.
//
// Kernels are opaque here; who reads the log knows from the operators of the trace what they do. Of them only the first
// on another stream than before is in the log, for each thread.
#define _GNU_SOURCE
#include "vgpu.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Entries after which the log ends: 1.5 GB of them.
#define MOST ((size_t)32 << 20)

// As Python reads it (xmem_recorder/virtual/activity.py). Time is that of the system's clock, ns.
struct activity { uint64_t time, stream, value, address; uint32_t thread, ranks; char kind; };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct activity *entries;
static size_t count, space;
static int is_on;
static __thread uint32_t thread;
static __thread uint64_t last_stream;
static __thread int has_stream;

// Returns the number of entries, -1 if the log is not complete, and the entries.
API(long, activity)(const struct activity **at) {
  pthread_mutex_lock(&mutex);
  *at = entries;
  long result = count < MOST ? (long)count : -1;
  pthread_mutex_unlock(&mutex);
  return result;
}

API(void, log_activity)(int on) { __atomic_store_n(&is_on, on, __ATOMIC_RELEASE); }

static void add(char kind, uint64_t stream, uint64_t value, uint64_t address, uint32_t ranks) {
  struct timespec time;
  if (!thread) thread = (uint32_t)syscall(SYS_gettid);
  pthread_mutex_lock(&mutex);
  // The time is taken under the lock: entries are in its order.
  clock_gettime(CLOCK_REALTIME, &time);
  if (count == space && space < MOST) {
    size_t more = space ? space * 2 : 1024;
    struct activity *moved = realloc(entries, more * sizeof *moved);
    if (moved) entries = moved, space = more;
  }
  if (count < space) {
    uint64_t ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    entries[count++] = (struct activity){ns, stream, value, address, thread, ranks, kind};
  } else count = MOST;
  pthread_mutex_unlock(&mutex);
}

static int is_logged(void) { return __atomic_load_n(&is_on, __ATOMIC_ACQUIRE); }

void vgpu_log_work(const struct stream *stream) {
  uint64_t handle = (uintptr_t)stream;
  if (!is_logged() || (has_stream && handle == last_stream)) return;
  has_stream = 1;
  last_stream = handle;
  add('w', handle, 0, 0, 0);
}

void vgpu_log_copy(const struct stream *stream, size_t size) {
  if (is_logged()) add('c', (uintptr_t)stream, size, 0, 0);
}

void vgpu_log_collective(char kind, const struct stream *stream, const void *address, size_t size, int ranks) {
  if (is_logged()) add(kind, (uintptr_t)stream, size, (uintptr_t)address, (uint32_t)ranks);
}

// Returns whether an address is in the library of CUDA's caching allocator.
static int is_allocator(const void *address) {
  static const void *known;
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return 0;
  if (info.dli_fbase == __atomic_load_n(&known, __ATOMIC_RELAXED)) return 1;
  if (!strstr(info.dli_fname, "libc10_cuda")) return 0;
  __atomic_store_n(&known, info.dli_fbase, __ATOMIC_RELAXED);
  return 1;
}

uint64_t vgpu_log_record(const struct stream *stream, const void *caller) {
  static uint64_t moments;
  if (!is_logged()) return 0;
  uint64_t moment = __atomic_add_fetch(&moments, 1, __ATOMIC_RELAXED);
  add(is_allocator(caller) ? 'a' : 'r', (uintptr_t)stream, moment, 0, 0);
  return moment;
}

void vgpu_log_wait(const struct stream *stream, uint64_t moment) {
  if (is_logged() && moment) add('s', (uintptr_t)stream, moment, 0, 0);
}

void vgpu_log_host_waits(char kind, const struct stream *stream, uint64_t moment) {
  if (is_logged()) add(kind, (uintptr_t)stream, moment, 0, 0);
}
