// Device memory: an address space for each device that is mapped and never filled, and the account of what
// is allocated in it.
//
// Addresses come in the order of NVIDIA's driver, as it was read from public memory snapshots of real GPUs: an
// allocation takes a chunk of whole granules of 32 MiB, the highest that are free, and sits at its start. The
// rest of a chunk serves later allocations that fit, the lowest address first; so does what is released inside
// of it. A chunk is free again when nothing in it is in use.
#define _GNU_SOURCE
#include "numbers.h"
#include "vgpu.h"
#include <errno.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// The driver's page, and the unit of its chunks.
#define PAGE (2 * MIB)
#define GRANULE (32 * MIB)
// Requests below this share pages, in steps of 512 bytes.
#define SMALL MIB
#define STEP ((size_t)512)
#define SYSTEM_PAGE ((uintptr_t)4096)
// Address space of a device. Expandable segments reserve 9/8 of the memory for each stream and pool.
#define MIN_SPAN ((size_t)8 << 40)

// Taken addresses: whole pages. A shared one is cut into pieces. `usable` bytes of a range were asked for.
enum kind { ALLOCATED, SHARED, RESERVED };
struct range { char *start; size_t size, usable; enum kind kind; };
struct piece { char *start; size_t size, usable; };
struct chunk { char *start, *end; };
struct arena {
  char *base;
  size_t span, used;
  struct chunk *chunks; size_t chunk_count, chunk_room;
  struct range *ranges; size_t range_count, range_room;
  struct piece *pieces; size_t piece_count, piece_room;
  int state;                // 0: not mapped yet, 1: usable, -1: cannot be mapped.
  int is_file;              // Mapped from a file in memory.
};
static struct arena arenas[MAX_DEVICES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t device_capacity(void) {
  const struct config *config = vgpu_config();
  return config->memory > config->context ? config->memory - config->context : 0;
}
static size_t capacity(void) { return vgpu_config()->capacity ? vgpu_config()->capacity : device_capacity(); }

// A file in memory. The function of this name came with glibc 2.27.
int vgpu_memory_file(const char *name) { return (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC); }

static void *map(uintptr_t hint, size_t span, int *is_file) {
  int protection = PROT_READ | PROT_WRITE;
  void *at = mmap((void *)hint, span, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *is_file = 0;
  if (at != MAP_FAILED) return at;
  // A kernel that counts all private memory (vm.overcommit_memory=2) does not count a shared file.
  int file = vgpu_memory_file("xmem-vgpu");
  if (file < 0) return MAP_FAILED;
  if (!ftruncate(file, (off_t)span)) at = mmap((void *)hint, span, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  *is_file = 1;
  return at;
}

static void open_arena(int device) {
  struct arena *a = &arenas[device];
  if (a->state) return;
  a->state = -1;
  size_t span = round_up(4 * (size_t)vgpu_config()->memory, GRANULE), least = span;
  if (span < MIN_SPAN) span = MIN_SPAN;
  // Far from where Linux maps libraries, and the same in each run.
  uintptr_t hint = 0x100000000000 + (uintptr_t)device * MIN_SPAN;
  void *at = MAP_FAILED;
  for (; at == MAP_FAILED && span >= least; span /= 2) {
    at = map(hint, span, &a->is_file);
    if (at != MAP_FAILED) break;
  }
  if (at == MAP_FAILED) {
    struct rlimit limit = {0};
    getrlimit(RLIMIT_AS, &limit);
    const char *hint_text = limit.rlim_cur != RLIM_INFINITY
      ? "the process has a limit of address space: run it without `ulimit -v`"
      : "see vm.overcommit_memory and vm.max_map_count";
    vgpu_log("error the virtual GPU needs %zu GiB of address space, which is not filled: %s (%s)", least >> 30, strerror(errno), hint_text);
    fprintf(stderr, "xmem: the virtual GPU needs %zu GiB of address space, which is not filled: %s (%s)\n", least >> 30, strerror(errno), hint_text);
    return;
  }
  // Small copies touch pages here and there: no huge pages for them, and none in core dumps.
  madvise(at, span, MADV_NOHUGEPAGE);
  madvise(at, span, MADV_DONTDUMP);
  a->base = (char *)round_up((uintptr_t)at, GRANULE);
  a->span = (span - (size_t)(a->base - (char *)at)) / GRANULE * GRANULE;
  a->state = 1;
}

static struct arena *arena(int device) {
  if (device < 0 || device >= vgpu_config()->devices) return NULL;
  open_arena(device);
  return arenas[device].state == 1 ? &arenas[device] : NULL;
}

static struct arena *arena_of(const void *address) {
  for (int i = 0; i < vgpu_config()->devices; i++) {
    struct arena *a = &arenas[i];
    if (a->state == 1 && (char *)address >= a->base && (char *)address < a->base + a->span) return a;
  }
  return NULL;
}

// Room for one more element; the old block if there is no memory.
static int grow(void **block, size_t count, size_t *room, size_t size) {
  if (count < *room) return 1;
  size_t more = *room ? 2 * *room : 256;
  void *grown = realloc(*block, more * size);
  if (!grown) return 0;
  *block = grown;
  *room = more;
  return 1;
}

static char *align(char *address, size_t alignment) { return (char *)round_up((uintptr_t)address, alignment); }

// The first gap in a chunk. `at` becomes the place in the list of ranges.
static char *find_gap(struct arena *a, size_t size, size_t alignment, size_t *at) {
  *at = 0;
  for (size_t i = 0; i < a->chunk_count; i++) {
    for (char *start = a->chunks[i].start;; ++*at) {
      int is_inside = *at < a->range_count && a->ranges[*at].start < a->chunks[i].end;
      char *aligned = align(start, alignment), *end = is_inside ? a->ranges[*at].start : a->chunks[i].end;
      if (aligned <= end && (size_t)(end - aligned) >= size) return aligned;
      if (!is_inside) break;
      start = a->ranges[*at].start + a->ranges[*at].size;
    }
  }
  return NULL;
}

// Takes the highest free granules that hold `size`.
static int open_chunk(struct arena *a, size_t size, size_t alignment) {
  size_t span = round_up(size, GRANULE) + (alignment > GRANULE ? alignment : 0);
  if (!grow((void **)&a->chunks, a->chunk_count, &a->chunk_room, sizeof *a->chunks)) return 0;
  char *top = a->base + a->span;
  for (size_t i = a->chunk_count;; top = a->chunks[--i].start) {
    char *bottom = i ? a->chunks[i - 1].end : a->base;
    if ((size_t)(top - bottom) >= span) {
      memmove(a->chunks + i + 1, a->chunks + i, (a->chunk_count - i) * sizeof *a->chunks);
      a->chunks[i] = (struct chunk){top - span, top};
      a->chunk_count++;
      return 1;
    }
    if (!i) return 0;
  }
}

// Gives the chunk of an address back if none of it is in use. `next` is the first range above the address.
static void close_chunk(struct arena *a, char *address, size_t next) {
  size_t i = 0;
  while (i < a->chunk_count && a->chunks[i].end <= address) i++;
  if (i == a->chunk_count) return;
  if (next && a->ranges[next - 1].start >= a->chunks[i].start) return;
  if (next < a->range_count && a->ranges[next].start < a->chunks[i].end) return;
  memmove(a->chunks + i, a->chunks + i + 1, (a->chunk_count - i - 1) * sizeof *a->chunks);
  a->chunk_count--;
}

static char *take_range(struct arena *a, size_t size, size_t alignment, enum kind kind, size_t usable) {
  if (size > a->span || alignment > a->span) return NULL;
  size = round_up(size, PAGE);
  alignment = round_up(alignment ? alignment : 1, PAGE);
  size_t at;
  if (!grow((void **)&a->ranges, a->range_count, &a->range_room, sizeof *a->ranges)) return NULL;
  char *start = find_gap(a, size, alignment, &at);
  if (!start && open_chunk(a, size, alignment)) start = find_gap(a, size, alignment, &at);
  if (!start) return NULL;
  memmove(a->ranges + at + 1, a->ranges + at, (a->range_count - at) * sizeof *a->ranges);
  a->ranges[at] = (struct range){start, size, usable, kind};
  a->range_count++;
  return start;
}

// The range that holds an address.
static struct range *find_range(struct arena *a, const void *address) {
  size_t low = 0, high = a->range_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    struct range *range = &a->ranges[middle];
    if ((char *)address < range->start) high = middle;
    else if ((char *)address >= range->start + range->size) low = middle + 1;
    else return range;
  }
  return NULL;
}

static void drop_pages(struct arena *a, char *start, size_t size) {
  madvise(start, size, a->is_file ? MADV_REMOVE : MADV_DONTNEED);
}

static void drop_range(struct arena *a, struct range *range) {
  char *start = range->start;
  drop_pages(a, start, range->size);
  size_t at = (size_t)(range - a->ranges);
  memmove(range, range + 1, (a->range_count - at - 1) * sizeof *range);
  a->range_count--;
  close_chunk(a, start, at);
}

// The first piece at or after an address.
static size_t find_piece(struct arena *a, const char *address) {
  size_t low = 0, high = a->piece_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (a->pieces[middle].start < address) low = middle + 1;
    else high = middle;
  }
  return low;
}

static char *piece_in(struct arena *a, char *page, size_t size, size_t usable) {
  char *start = page, *end = page + PAGE;
  for (size_t i = find_piece(a, page);; i++) {
    int is_inside = i < a->piece_count && a->pieces[i].start < end;
    char *limit = is_inside ? a->pieces[i].start : end;
    if ((size_t)(limit - start) >= size) {
      if (!grow((void **)&a->pieces, a->piece_count, &a->piece_room, sizeof *a->pieces)) return NULL;
      memmove(a->pieces + i + 1, a->pieces + i, (a->piece_count - i) * sizeof *a->pieces);
      a->pieces[i] = (struct piece){start, size, usable};
      a->piece_count++;
      return start;
    }
    if (!is_inside) return NULL;
    start = a->pieces[i].start + a->pieces[i].size;
  }
}

static void *allocate_small(struct arena *a, size_t usable) {
  size_t size = round_up(usable, STEP);
  for (size_t i = 0; i < a->range_count; i++) {
    if (a->ranges[i].kind != SHARED) continue;
    char *piece = piece_in(a, a->ranges[i].start, size, usable);
    if (piece) return piece;
  }
  if (capacity() - a->used < PAGE) return NULL;
  char *page = take_range(a, PAGE, PAGE, SHARED, 0);
  if (!page) return NULL;
  a->used += PAGE;
  return piece_in(a, page, size, usable);
}

void *vgpu_allocate(int device, size_t size) {
  if (!size) return NULL;
  pthread_mutex_lock(&mutex);
  struct arena *a = arena(device);
  void *address = NULL;
  if (a && size < SMALL) address = allocate_small(a, size);
  else if (a && size <= capacity() && size <= a->span) {
    size_t pages = round_up(size, PAGE);
    if (pages <= capacity() - a->used && (address = take_range(a, pages, PAGE, ALLOCATED, size))) a->used += pages;
  }
  pthread_mutex_unlock(&mutex);
  return address;
}

static int release_small(struct arena *a, struct range *range, void *address) {
  size_t i = find_piece(a, address);
  if (i == a->piece_count || a->pieces[i].start != address) return -1;
  memmove(a->pieces + i, a->pieces + i + 1, (a->piece_count - i - 1) * sizeof *a->pieces);
  a->piece_count--;
  size_t first = find_piece(a, range->start);
  if (first == a->piece_count || a->pieces[first].start >= range->start + range->size) {
    a->used -= range->size;
    drop_range(a, range);
  }
  return 0;
}

int vgpu_release(void *address) {
  if (!address) return 0;
  pthread_mutex_lock(&mutex);
  int status = -1;
  struct arena *a = arena_of(address);
  struct range *range = a ? find_range(a, address) : NULL;
  if (range && range->kind == SHARED) status = release_small(a, range, address);
  else if (range && range->kind == ALLOCATED && range->start == address) {
    a->used -= range->size;
    drop_range(a, range);
    status = 0;
  }
  pthread_mutex_unlock(&mutex);
  return status;
}

void *vgpu_reserve_addresses(int device, size_t size, size_t alignment, size_t usable) {
  pthread_mutex_lock(&mutex);
  struct arena *a = arena(device);
  void *address = a && size ? take_range(a, size, alignment, RESERVED, usable) : NULL;
  pthread_mutex_unlock(&mutex);
  return address;
}

int vgpu_release_addresses(void *address, size_t size) {
  pthread_mutex_lock(&mutex);
  struct arena *a = arena_of(address);
  struct range *range = a ? find_range(a, address) : NULL;
  int is_one = range && range->kind == RESERVED && range->start == address && size <= range->size && range->size == round_up(size, PAGE);
  if (is_one) drop_range(a, range);
  pthread_mutex_unlock(&mutex);
  return is_one ? 0 : -1;
}

int vgpu_take_memory(int device, size_t size) {
  pthread_mutex_lock(&mutex);
  struct arena *a = arena(device);
  int fits = a && size <= capacity() && size <= capacity() - a->used;
  if (fits) a->used += size;
  pthread_mutex_unlock(&mutex);
  return fits ? 0 : -1;
}

void vgpu_give_memory(int device, size_t size) {
  pthread_mutex_lock(&mutex);
  struct arena *a = arena(device);
  if (a) a->used -= size;
  pthread_mutex_unlock(&mutex);
}

size_t vgpu_free_memory(int device) {
  pthread_mutex_lock(&mutex);
  struct arena *a = arena(device);
  size_t free = a && a->used < device_capacity() ? device_capacity() - a->used : 0;
  pthread_mutex_unlock(&mutex);
  return free;
}

size_t vgpu_allocation_size(const void *address) {
  size_t size = 0;
  pthread_mutex_lock(&mutex);
  struct arena *a = arena_of(address);
  struct range *range = a ? find_range(a, address) : NULL;
  if (range && range->kind == SHARED) {
    size_t i = find_piece(a, address);
    if (i < a->piece_count && a->pieces[i].start == address) size = a->pieces[i].size;
  } else if (range && range->start == address) size = range->size;
  pthread_mutex_unlock(&mutex);
  return size;
}

size_t vgpu_allocated_from(const void *address) {
  size_t size = 0;
  pthread_mutex_lock(&mutex);
  struct arena *a = arena_of(address);
  struct range *range = a ? find_range(a, address) : NULL;
  char *start = range ? range->start : NULL;
  size_t usable = range ? range->usable : 0;
  if (range && range->kind == SHARED) {
    // The last piece that begins at the address or before.
    size_t i = find_piece(a, (const char *)address + 1);
    int is_inside = i && a->pieces[i - 1].start >= range->start;
    start = is_inside ? a->pieces[i - 1].start : NULL;
    usable = is_inside ? a->pieces[i - 1].usable : 0;
  }
  size_t before = start ? (size_t)((const char *)address - start) : 0;
  if (start && before < usable) size = usable - before;
  pthread_mutex_unlock(&mutex);
  return a ? size : SIZE_MAX;
}

int vgpu_is_reserved(const void *address, size_t size) {
  pthread_mutex_lock(&mutex);
  struct arena *a = arena_of(address);
  struct range *range = a ? find_range(a, address) : NULL;
  int is_reserved = range && range->kind == RESERVED && !range->usable
    && size <= range->size - (size_t)((const char *)address - range->start);
  pthread_mutex_unlock(&mutex);
  return is_reserved;
}

int vgpu_device_of(const void *address) {
  pthread_mutex_lock(&mutex);
  struct arena *a = arena_of(address);
  pthread_mutex_unlock(&mutex);
  return a ? (int)(a - arenas) : -1;
}

int vgpu_memory_usable(int device) {
  pthread_mutex_lock(&mutex);
  int is_usable = arena(device) != NULL;
  pthread_mutex_unlock(&mutex);
  return is_usable;
}

// Zeros without filling memory: whole pages are given back.
static void clear(char *start, size_t size) {
  char *first = align(start, SYSTEM_PAGE), *last = (char *)((uintptr_t)(start + size) & ~(SYSTEM_PAGE - 1));
  if (size <= MIB / 4 || last <= first) {
    memset(start, 0, size);
    return;
  }
  struct arena *a = arena_of(start);
  memset(start, 0, (size_t)(first - start));
  memset(last, 0, (size_t)(start + size - last));
  // Shared memory keeps its content. Locked memory cannot be given back.
  if (madvise(first, (size_t)(last - first), a && a->is_file ? MADV_REMOVE : MADV_DONTNEED)) memset(first, 0, (size_t)(last - first));
}

// A large block of device memory whose content is no longer known: it reads as zeros.
static void forget(char *start, size_t size) {
  if (size > MIB / 4) clear(start, size);
  else memset(start, 0, size);
}

// The bytes of a block that were written: pages that were not are zeros already, and stay without memory.
static void clear_written(char *start, size_t size) {
  unsigned char is_resident[SMALL / SYSTEM_PAGE + 1];
  char *first = (char *)((uintptr_t)start & ~(SYSTEM_PAGE - 1)), *end = start + size;
  size_t pages = round_up((size_t)(end - first), SYSTEM_PAGE) / SYSTEM_PAGE;
  if (pages > sizeof is_resident || mincore(first, pages * SYSTEM_PAGE, is_resident)) {
    clear(start, size);
    return;
  }
  for (size_t i = 0; i < pages; i++) {
    if (!(is_resident[i] & 1)) continue;
    char *from = first + i * SYSTEM_PAGE, *to = from + SYSTEM_PAGE;
    if (from < start) from = start;
    if (to > end) to = end;
    memset(from, 0, (size_t)(to - from));
  }
}

void vgpu_clear_block(void *start, size_t size) {
  if (vgpu_device_of(start) < 0) return;
  if (size <= SMALL) clear_written(start, size);
  else clear(start, size);
}

// How often the host has read memory of a device.
static long host_reads;
API(long, host_reads)(void) { return __atomic_load_n(&host_reads, __ATOMIC_RELAXED); }

void vgpu_copy(void *to, const void *from, size_t size) {
  if (!to || !from || !size) return;
  int to_device = vgpu_device_of(to) >= 0, from_device = vgpu_device_of(from) >= 0;
  if (from_device && !to_device) __atomic_add_fetch(&host_reads, 1, __ATOMIC_RELAXED);
  if ((!to_device && !from_device) || size <= vgpu_config()->copy_limit) memmove(to, from, size);
  else if (to_device) forget(to, size);
  else clear(to, size);
}

void vgpu_copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows) {
  int is_large = rows && width > vgpu_config()->copy_limit / rows;
  int to_device = vgpu_device_of(to) >= 0;
  if (is_large && to_device) return;
  for (size_t i = 0; i < rows; i++) {
    char *row = (char *)to + i * to_pitch;
    if (is_large && vgpu_device_of(from) >= 0) clear(row, width);
    else vgpu_copy(row, (const char *)from + i * from_pitch, width);
  }
}

void vgpu_fill(void *to, int value, size_t size) {
  if (!to || !size) return;
  if (size <= vgpu_config()->copy_limit || vgpu_device_of(to) < 0) memset(to, value, size);
  else forget(to, size);
}
