// A static memory plan that requests follow: what the allocators of the GPU (`planned.h`) and of the CPU (`cpu/`) share.
#pragma once

#include "live.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The unit of sizes and addresses: of PyTorch's allocator of the GPU kMinBlockSize (c10/core/AllocatorConfig.h), of that of the
// CPU gAlignment (c10/core/alignment.h).
#ifdef XMEM_PLANNED_CPU
enum { ROUNDING = 64 };
#else
enum { ROUNDING = 512 };
#endif

// The arenas: of what iterations make and free, and of what the job keeps.
enum { ITERATION, LASTING, MAX_ARENAS };
#define MIB ((uint64_t)1 << 20)
#define NOWHERE UINT64_MAX

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
bool sequence_is_planned(void);
const struct planned *sequence_next(uint64_t size);

// following.c
uint64_t following_rounded(uint64_t size);
void following_open(struct plan *plan, bool debug);
const struct planned *following_next(uint64_t size, bool *is_known);
bool following_is_free(const struct planned *request, uint64_t size);
void *following_place(const struct planned *request, uint64_t size);
uint64_t following_find_gap(uint64_t size);
void *following_fit(uint64_t offset, uint64_t size);
void following_clear(int arena, const void *pointer, uint64_t size);

// arena.c, of either memory
bool arena_open(int arena, uint64_t bytes);
void *arena_place(int arena, uint64_t offset, uint64_t size);
bool arena_is_free(int arena, uint64_t offset, uint64_t size);
uint64_t arena_gap(int arena, uint64_t size);
uint64_t arena_base(int arena);
uint64_t arena_size(int arena);
bool arena_find(const void *pointer, int *arena, uint64_t *size);
void arena_clear(int arena, const void *pointer);
uint64_t arena_trim(void);
uint64_t arena_mapped(void);

// counters.c
struct counters {
    uint64_t requests, planned, outside, unknown, occupied, other_stream, no_memory;
    uint64_t iterations, replans, collisions;
    uint64_t allocated, allocated_peak, driver_peak, reserved_peak;
    uint64_t retries, failures;
    uint64_t fitted;
};
extern struct counters counters;
void *xmem_grow(void *array, size_t *capacity, size_t wanted, size_t item);
