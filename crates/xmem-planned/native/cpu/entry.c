// What libc10.so calls in place of `posix_memalign` and `free`, and what the hook of xmem calls.
#define _GNU_SOURCE
#include "../observed.h"
#include "cpu.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { POISON = 0xdd };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// The thread whose requests follow the plan.
static pthread_t plan_thread;
static bool has_marks, has_plan, is_debug;
// Marks until the C library gives back what it keeps of the iterations before the plan: gradients live into the next one.
static int marks_to_trim;
// In a process that was forked, requests are those of another program.
static bool is_child;
// Bytes of the C library's blocks, as far as they were requested here.
static uint64_t elsewhere;

static void note_peaks(void) {
    uint64_t now = arena_mapped() + elsewhere;
    if (counters.allocated > counters.allocated_peak)
        counters.allocated_peak = counters.allocated;
    if (now > counters.reserved_peak)
        counters.reserved_peak = now;
    if (now > counters.driver_peak)
        counters.driver_peak = now;
}

static uint64_t less(uint64_t bytes, uint64_t by) { return bytes > by ? bytes - by : 0; }

static bool is_plan_thread(void) { return !is_child && pthread_equal(plan_thread, pthread_self()); }

// Transparent huge pages (THP_MEM_ALLOC_ENABLE) ask for more than the plan's unit.
static bool is_aligned(int arena, uint64_t offset, size_t alignment) {
    return (arena_base(arena) + offset) % alignment == 0;
}

static void *planned_place(uint64_t size, size_t alignment) {
    bool is_known;
    const struct planned *request = following_next(size, &is_known);
    if (is_known && !request)
        return NULL;
    if (request && following_is_free(request, size)) {
        void *pointer = is_aligned(request->arena, request->offset, alignment) ? following_place(request, size) : NULL;
        if (!pointer)
            counters.no_memory++;
        return pointer;
    }
    uint64_t gap = following_find_gap(size);
    return gap == NOWHERE || !is_aligned(ITERATION, gap, alignment) ? NULL : following_fit(gap, size);
}

static int allocate(void **into, size_t alignment, size_t bytes) {
    uint64_t size = following_rounded(bytes);
    void *pointer = NULL;
    pthread_mutex_lock(&lock);
    counters.requests++;
    if (!is_plan_thread())
        counters.other_stream++;
    else if (!sequence_is_planned())
        counters.outside++;
    else
        pointer = planned_place(size, alignment);
    if (pointer) {
        counters.allocated += size;
        note_peaks();
        observed_add(pointer, size);
    }
    pthread_mutex_unlock(&lock);
    if (pointer) {
        *into = pointer;
        return 0;
    }
    int error = posix_memalign(&pointer, alignment, bytes);
    pthread_mutex_lock(&lock);
    if (error == ENOMEM && arena_trim()) {
        counters.retries++;
        error = posix_memalign(&pointer, alignment, bytes);
    }
    if (error) {
        counters.failures++;
    } else {
        uint64_t usable = malloc_usable_size(pointer);
        elsewhere += usable;
        counters.allocated += usable;
        note_peaks();
        if (is_plan_thread())
            observed_add(pointer, size);
        *into = pointer;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

static void release(void *pointer) {
    if (!pointer)
        return;
    int arena;
    uint64_t size;
    pthread_mutex_lock(&lock);
    // Before another thread can get the same address.
    observed_add(pointer, 0);
    bool is_planned = arena_find(pointer, &arena, &size);
    if (is_planned) {
        counters.allocated = less(counters.allocated, size);
        if (is_debug)
            memset(pointer, POISON, size);
        following_clear(arena, pointer, size);
    } else {
        // Blocks from before the table was changed were not counted.
        uint64_t usable = malloc_usable_size(pointer);
        elsewhere = less(elsewhere, usable);
        counters.allocated = less(counters.allocated, usable);
    }
    pthread_mutex_unlock(&lock);
    if (!is_planned)
        free(pointer);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void in_parent(void) { pthread_mutex_unlock(&lock); }

static void in_child(void) {
    is_child = true;
    pthread_mutex_unlock(&lock);
}

// Takes the place of the C library in a library of PyTorch, by the name of its file. Returns 0, or 1 if that calls other
// functions.
EXPORT int xmem_plan_install(const char *library) {
    static const char *const names[] = {"free", "posix_memalign"};
    static void *functions[2];
    *(void (**)(void *)) & functions[0] = release;
    *(int (**)(void **, size_t, size_t)) & functions[1] = allocate;
    static bool is_watching;
    plan_thread = pthread_self();
    if (!is_watching && pthread_atfork(before_fork, in_parent, in_child))
        return 1;
    is_watching = true;
    // `free` first: what is planned must come back here.
    return table_replace(library, &names[0], &functions[0], 1) != 1 || table_replace(library, &names[1], &functions[1], 1) != 1;
}

// Reads a plan, to be followed from here on. Returns 0, or 1 if the file is no plan.
EXPORT int xmem_plan_open(const char *path, int debug) {
    struct plan plan;
    if (!plan_read(path, &plan))
        return 1;
    pthread_mutex_lock(&lock);
    is_debug = debug;
    // The pages of the plan before are free now; the first plan of a job that was observed takes none's place.
    if (has_plan) {
        counters.replans++;
        arena_trim();
    }
    has_plan = true;
    following_open(&plan, debug);
    marks_to_trim = 2;
    pthread_mutex_unlock(&lock);
    return 0;
}

// An iteration of the calling thread has ended; those of other threads than the first one that marks are not followed. Returns
// the requests so far that the plan did not have, or whose place was not free.
EXPORT uint64_t xmem_plan_mark(void) {
    pthread_mutex_lock(&lock);
    if (!has_marks)
        plan_thread = pthread_self();
    has_marks = true;
    observed_start();
    if (is_plan_thread()) {
        counters.iterations++;
        sequence_mark();
        observed_mark();
    }
    uint64_t misses = counters.unknown + counters.occupied;
    bool trims = is_plan_thread() && marks_to_trim && !--marks_to_trim;
    pthread_mutex_unlock(&lock);
    if (trims)
        malloc_trim(0);
    return misses;
}

// Writes what the last two iterations did. Returns 0, or 1 if they are not known.
EXPORT int xmem_plan_write_observed(const char *path) {
    pthread_mutex_lock(&lock);
    bool good = observed_write(path);
    pthread_mutex_unlock(&lock);
    return !good;
}

EXPORT void xmem_plan_counters(struct counters *into, uint64_t *reserved) {
    pthread_mutex_lock(&lock);
    *into = counters;
    *reserved = arena_mapped() + elsewhere;
    pthread_mutex_unlock(&lock);
}
