// What PyTorch and the hook of xmem call.
#include "failure.h"
#include "observed.h"
#include "planned.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_found, is_debug;
// The device and the stream that the plan is for: those of the first request of PyTorch.
static int plan_device = -1;
static stream_t plan_stream;
static bool has_stream;
static struct plan opened; // until the device is there
static bool has_opened;

// The capture that a stream is in; 0 if none.
static uint64_t capture_of(stream_t stream) {
    int status = 0;
    if (cuda.is_capturing(stream, &status)) {
        cuda.last_error();
        return 0;
    }
    if (!status)
        return 0;
    unsigned long long id = 0;
    if (!cuda.capture_info || cuda.capture_info(stream, &status, &id, NULL, NULL, NULL, NULL))
        cuda.last_error();
    return id ? id : 1;
}

// Waits until what was freed is in use nowhere.
static void wait_for_device(void) {
    deferred_process(true);
    cuda.synchronize();
}

// Gives memory back for pages of the plan: free segments at first, then free pages of the arenas, once the device is done with
// them. Returns whether there was any.
static bool give_back(int attempt) {
    if (attempt)
        wait_for_device();
    bool is_any = attempt ? arena_trim() : caching_release(plan_device);
    counters.retries += is_any;
    return is_any;
}

static void *planned_place(stream_t stream, uint64_t size) {
    bool is_known;
    const struct planned *request = following_next(size, &is_known);
    if (is_known && !request)
        return NULL;
    if (!has_stream) {
        plan_stream = stream;
        has_stream = true;
    }
    if (stream != plan_stream) {
        counters.other_stream += request != NULL;
        return NULL;
    }
    if (request && following_is_free(request, size)) {
        void *pointer = following_place(request, size);
        for (int attempt = 0; !pointer && attempt < 2; attempt++)
            pointer = give_back(attempt) ? following_place(request, size) : NULL;
        // Not in a gap: others are planned there, and memory is short.
        if (!pointer)
            counters.no_memory++;
        return pointer;
    }
    uint64_t gap = following_find_gap(size);
    if (gap == NOWHERE)
        return NULL;
    void *pointer = following_fit(gap, size);
    for (int attempt = 0; !pointer && attempt < 2; attempt++)
        pointer = give_back(attempt) ? following_fit(gap, size) : NULL;
    return pointer;
}

static void *elsewhere(int device, stream_t stream, uint64_t graph, uint64_t requested, uint64_t size) {
    void *pointer = caching_malloc(device, stream, graph, requested, size);
    if (pointer || graph)
        return pointer;
    // As PyTorch's allocator: wait for what is in use elsewhere, give back what is free, and try again.
    counters.retries++;
    wait_for_device();
    caching_release(device);
    if (device == plan_device)
        arena_trim();
    return caching_malloc(device, stream, graph, requested, size);
}

static const char *amount(uint64_t bytes, char *text, size_t length) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    int unit = bytes >= 1024 * MIB ? 3 : bytes >= MIB ? 2 : bytes >= 1024 ? 1 : 0;
    if (!unit)
        snprintf(text, length, "%llu bytes", (unsigned long long)bytes);
    else
        snprintf(text, length, "%.2f %s", (double)bytes / (double)((uint64_t)1 << 10 * unit), units[unit]);
    return text;
}

static char *failure(int device, uint64_t requested) {
    char tried[32], capacity[32], left[32], allocated[32], planned[32];
    size_t available = 0, total = 0;
    cuda.mem_info(&available, &total);
    char *text = NULL;
    size_t length = 512;
    text = malloc(length);
    if (text)
        snprintf(text, length,
            "CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of which %s is free. Of the "
            "allocated memory %s is allocated by PyTorch, and %s of the memory is that of a plan (xmem run --plan).",
            amount(requested, tried, sizeof tried), device, amount(total, capacity, sizeof capacity),
            amount(available, left, sizeof left), amount(counters.allocated, allocated, sizeof allocated),
            amount(arena_mapped(), planned, sizeof planned));
    return text;
}

EXPORT void *xmem_plan_malloc(ssize_t requested, int device, stream_t stream) {
    if (requested <= 0 || device < 0 || device >= MAX_DEVICES)
        return NULL;
    pthread_mutex_lock(&lock);
    if (!is_found) {
        is_found = cuda_find();
        if (!is_found)
            abort();
    }
    if (plan_device < 0)
        plan_device = device;
    if (has_opened) {
        has_opened = false;
        following_open(&opened, is_debug);
    }
    uint64_t size = following_rounded((uint64_t)requested), graph = capture_of(stream);
    if (!graph)
        deferred_process(false);
    counters.requests++;
    void *pointer = device == plan_device && !graph ? planned_place(stream, size) : NULL;
    if (!pointer)
        pointer = elsewhere(device, stream, graph, (uint64_t)requested, size);
    char *message = NULL;
    if (pointer) {
        counters.allocated += size;
        if (counters.allocated > counters.allocated_peak)
            counters.allocated_peak = counters.allocated;
        if (device == plan_device && !graph)
            observed_add(pointer, size);
    } else {
        counters.failures++;
        message = failure(device, (uint64_t)requested);
    }
    pthread_mutex_unlock(&lock);
    if (!pointer && message)
        raise_out_of_memory(message);
    return pointer;
}

// Frees a block that no stream uses.
void free_now(void *pointer) {
    int arena;
    uint64_t size;
    stream_t stream;
    if (arena_find(pointer, &arena, &size)) {
        following_clear(arena, pointer, size);
        return;
    }
    caching_free(pointer, &stream);
}

EXPORT void xmem_plan_free(void *pointer, ssize_t size, int device, stream_t stream) {
    (void)size;
    if (!pointer)
        return;
    pthread_mutex_lock(&lock);
    int arena;
    uint64_t bytes;
    stream_t own;
    if (arena_find(pointer, &arena, &bytes) || caching_find(pointer, &own, &bytes))
        counters.allocated -= bytes;
    observed_add(pointer, 0);
    if (deferred_has_uses(pointer))
        deferred_add(pointer, device, capture_of(stream) != 0);
    else
        free_now(pointer);
    pthread_mutex_unlock(&lock);
}

EXPORT void xmem_plan_record_stream(void *pointer, stream_t stream) {
    pthread_mutex_lock(&lock);
    int arena;
    uint64_t size;
    stream_t own = plan_stream;
    if ((arena_find(pointer, &arena, &size) || caching_find(pointer, &own, &size)) && own != stream)
        deferred_note_use(pointer, stream);
    pthread_mutex_unlock(&lock);
}

// torch.cuda.empty_cache.
EXPORT void xmem_plan_empty_cache(void) {
    pthread_mutex_lock(&lock);
    if (is_found) {
        wait_for_device();
        for (int device = 0; device < MAX_DEVICES; device++)
            caching_release(device);
        arena_trim();
    }
    pthread_mutex_unlock(&lock);
}

// torch.cuda.set_per_process_memory_fraction.
EXPORT void xmem_plan_set_fraction(double fraction, int device) {
    size_t available, total;
    pthread_mutex_lock(&lock);
    if ((is_found || (is_found = cuda_find())) && device >= 0 && device < MAX_DEVICES
        && !cuda.mem_info(&available, &total)) {
        memory_fraction[device] = fraction;
        memory_total[device] = total;
    }
    pthread_mutex_unlock(&lock);
}

// Reads a plan, to be followed from here on. Returns 0, or 1 if the file is no plan.
EXPORT int xmem_plan_open(const char *path, int debug) {
    struct plan plan;
    if (!plan_read(path, &plan))
        return 1;
    pthread_mutex_lock(&lock);
    is_debug = debug;
    observed_start();
    if (plan_device < 0) {
        plan_free(&opened);
        opened = plan;
        has_opened = true;
    } else {
        counters.replans++;
        // What the plan before left to others is free now, and the pages of its arenas.
        wait_for_device();
        caching_release(plan_device);
        arena_trim();
        following_open(&plan, is_debug);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

// An iteration has ended. Returns the requests so far that the plan did not have, or whose place was not free.
EXPORT uint64_t xmem_plan_mark(void) {
    pthread_mutex_lock(&lock);
    counters.iterations++;
    sequence_mark();
    observed_mark();
    uint64_t misses = counters.unknown + counters.occupied;
    pthread_mutex_unlock(&lock);
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
    *reserved = memory_reserved();
    pthread_mutex_unlock(&lock);
}

EXPORT void xmem_plan_reset_peaks(void) {
    pthread_mutex_lock(&lock);
    counters.allocated_peak = counters.allocated;
    counters.reserved_peak = memory_reserved();
    pthread_mutex_unlock(&lock);
}
