// An allocator for PyTorch (torch.cuda.CUDAPluggableAllocator) that gives requests the addresses of a static memory plan.
//
// Requests of a training job come in the same order in each iteration. The plan (`sequence.c`) has a place for most of
// them in an arena (`arena.c`), a range of virtual addresses whose pages are backed by memory as they are used. All
// others are served as PyTorch's own caching allocator serves them (`caching.c`). A request gets its planned place only
// if nothing live is there, on the stream that the place is for, so that a plan that is wrong costs memory and never
// correctness. `deferred.c` keeps what other streams still use; `entry.c` is what PyTorch calls, under one lock.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *stream_t;

enum { MAX_DEVICES = 64, MAX_ARENAS = 2, ROUNDING = 512 };
#define MIB ((uint64_t)1 << 20)
#define NOWHERE UINT64_MAX

// CUDA, by the libraries that PyTorch has loaded (cuda.c). Functions return 0 on success.
struct cuda {
    int (*malloc)(void **, size_t);
    int (*free)(void *);
    int (*synchronize)(void);
    int (*get_device)(int *);
    int (*set_device)(int);
    int (*last_error)(void);
    int (*mem_info)(size_t *, size_t *);
    int (*is_capturing)(stream_t, int *);
    int (*exchange_capture_mode)(int *);
    int (*event_create)(void **, unsigned);
    int (*event_record)(void *, stream_t);
    int (*event_query)(void *);
    int (*event_synchronize)(void *);
    int (*event_destroy)(void *);
    // Functions of several releases by one signature: the older ones take the first three arguments.
    int (*capture_info)(stream_t, int *, unsigned long long *, void *, void *, void *, void *);
    // The driver's; null where it has no virtual memory management.
    int (*reserve)(uint64_t *, size_t, size_t, uint64_t, uint64_t);
    int (*create)(uint64_t *, size_t, const void *, uint64_t);
    int (*map)(uint64_t, size_t, size_t, uint64_t, uint64_t);
    int (*set_access)(uint64_t, size_t, const void *, size_t);
    int (*unmap)(uint64_t, size_t);
    int (*release)(uint64_t);
};
extern struct cuda cuda;
bool cuda_find(void);

// A request of the plan.
struct planned {
    uint64_t least, most; // rounded bytes for which the place is good
    uint64_t offset;      // NOWHERE: not planned
    int arena;
};

// A part of the job: what it allocates up to a mark, in order.
struct sequence {
    struct planned *requests;
    size_t count;
};

struct plan {
    uint64_t arena_bytes[MAX_ARENAS];
    struct sequence warm_up, iteration;
};

// sequence.c
bool plan_read(const char *path, struct plan *plan);
void plan_free(struct plan *plan);
void sequence_mark(void);
void sequence_use(struct plan *plan);
const struct planned *sequence_next(uint64_t size);

// arena.c
bool arena_open(int arena, uint64_t bytes);
void *arena_place(int arena, uint64_t offset, uint64_t size);
bool arena_is_free(int arena, uint64_t offset, uint64_t size);
uint64_t arena_base(int arena);
uint64_t arena_size(int arena);
bool arena_find(const void *pointer, int *arena, uint64_t *size);
void arena_clear(int arena, const void *pointer);
uint64_t arena_trim(void);
uint64_t arena_mapped(void);

// caching.c
void *caching_malloc(int device, stream_t stream, uint64_t graph, uint64_t requested, uint64_t size);
bool caching_free(const void *pointer, stream_t *stream);
uint64_t caching_release(int device);
bool caching_find(const void *pointer, stream_t *stream, uint64_t *size);
uint64_t caching_reserved(int device);

// deferred.c
void deferred_note_use(void *pointer, stream_t stream);
bool deferred_has_uses(const void *pointer);
void deferred_add(void *pointer, int device, bool capturing);
void deferred_process(bool wait);
void free_now(void *pointer);

// memory.c
struct counters {
    uint64_t requests, planned, outside, unknown, occupied, other_stream, no_memory;
    uint64_t iterations, replans, collisions;
    uint64_t allocated, allocated_peak, driver_peak, reserved_peak;
    uint64_t retries, failures;
};
extern struct counters counters;
// The share of a device that the process may have, and the bytes of the device; 0: no limit.
extern double memory_fraction[MAX_DEVICES];
extern uint64_t memory_total[MAX_DEVICES];
bool memory_fits(int device, uint64_t more);
void memory_note_peak(void);
uint64_t memory_reserved(void);
void *xmem_grow(void *array, size_t *capacity, size_t wanted, size_t item);
