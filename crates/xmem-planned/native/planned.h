// An allocator for PyTorch (torch.cuda.CUDAPluggableAllocator) that gives requests the addresses of a static memory plan.
//
// Requests of a training job come in the same order in each iteration. The plan (`sequence.c`) has a place for most of
// them in an arena (`arena.c`), a range of virtual addresses whose pages are backed by memory as they are used. All
// others are served as PyTorch's own caching allocator serves them (`caching.c`). A request gets its planned place only
// if nothing live is there, on the stream that the place is for, so that a plan that is wrong costs memory and never
// correctness. `deferred.c` keeps what other streams still use; `entry.c` is what PyTorch calls, under one lock.
#pragma once

#include "plan.h"

typedef void *stream_t;

enum { MAX_DEVICES = 64 };

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
// The share of a device that the process may have, and the bytes of the device; 0: no limit.
extern double memory_fraction[MAX_DEVICES];
extern uint64_t memory_total[MAX_DEVICES];
bool memory_fits(int device, uint64_t more);
void memory_note_peak(void);
uint64_t memory_reserved(void);
