// What the plan has no place for, served as PyTorch's caching allocator serves it with its default options
// (c10/cuda/CUDACachingAllocator.cpp: `malloc`, `get_free_block`, `alloc_block`, `should_split`, `free_block`,
// `release_cached_blocks`): blocks in segments of 2 MiB, 20 MiB or the size of the request, the smallest free one of
// the stream that is large enough, split and joined again.
#include "planned.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL = 1 << 20, SMALL_SEGMENT = 2 << 20, LARGE_SEGMENT = 20 << 20, OWN_SEGMENT = 10 << 20 };

struct block {
    char *pointer;
    uint64_t size, requested;
    struct block *before, *behind; // neighbors in the segment
    stream_t stream;
    uint64_t graph; // the capture that it belongs to; 0: none
    int device;
    bool is_small, is_used;
};

// Free blocks by capture, stream, size and address.
static struct pool {
    struct block **free;
    size_t count, capacity;
} pools[MAX_DEVICES][2];
static uint64_t reserved[MAX_DEVICES];

// Used blocks by address: open addressing, a tombstone where one was.
static struct block **table;
static size_t table_size, table_filled;
#define TOMBSTONE ((struct block *)1)

static size_t slot_of(const void *pointer) {
    return (size_t)(((uint64_t)pointer >> 9) * 0x9E3779B97F4A7C15u >> 20) & (table_size - 1);
}

static struct block **find(const void *pointer) {
    if (!table_size)
        return NULL;
    for (size_t at = slot_of(pointer); table[at]; at = (at + 1) & (table_size - 1))
        if (table[at] != TOMBSTONE && table[at]->pointer == pointer)
            return &table[at];
    return NULL;
}

static void put(struct block *block) {
    size_t at = slot_of(block->pointer);
    while (table[at] && table[at] != TOMBSTONE)
        at = (at + 1) & (table_size - 1);
    table_filled += !table[at];
    table[at] = block;
}

static bool make_room(void) {
    if (table_size && table_filled * 2 < table_size)
        return true;
    struct block **old = table;
    size_t old_size = table_size, used = 0;
    for (size_t at = 0; at < old_size; at++)
        used += old[at] && old[at] != TOMBSTONE;
    size_t size = 1024;
    while (size < used * 4)
        size *= 2;
    struct block **now = calloc(size, sizeof *now);
    if (!now)
        return false;
    table = now;
    table_size = size;
    table_filled = 0;
    for (size_t at = 0; at < old_size; at++)
        if (old[at] && old[at] != TOMBSTONE)
            put(old[at]);
    free(old);
    return true;
}

static int compare(const struct block *one, const struct block *other) {
#define BY(field)                  \
    if (one->field != other->field) \
    return one->field < other->field ? -1 : 1
    BY(graph);
    BY(stream);
    BY(size);
    BY(pointer);
#undef BY
    return 0;
}

// The first free block that is not less than `key`.
static size_t lower_bound(const struct pool *pool, const struct block *key) {
    size_t low = 0, high = pool->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare(pool->free[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct pool *pool_of(const struct block *block) { return &pools[block->device][!block->is_small]; }

static void take_out(struct block *block) {
    struct pool *pool = pool_of(block);
    size_t at = lower_bound(pool, block);
    pool->count--;
    memmove(&pool->free[at], &pool->free[at + 1], (pool->count - at) * sizeof *pool->free);
}

static void add_free(struct block *block) {
    struct pool *pool = pool_of(block);
    // Room was made when the block was.
    size_t at = lower_bound(pool, block);
    memmove(&pool->free[at + 1], &pool->free[at], (pool->count - at) * sizeof *pool->free);
    pool->free[at] = block;
    pool->count++;
}

// A new block; null if the process has no memory. There is room for it among the free ones.
static struct block *new_block(struct block like) {
    static size_t blocks[MAX_DEVICES][2];
    struct pool *pool = pool_of(&like);
    size_t *count = &blocks[like.device][!like.is_small];
    struct block *block = malloc(sizeof *block);
    if (!block || !xmem_grow(&pool->free, &pool->capacity, *count + 1, sizeof(struct block *))) {
        free(block);
        return NULL;
    }
    ++*count;
    *block = like;
    return block;
}

static struct block *new_segment(struct block like) {
    uint64_t size = like.is_small ? SMALL_SEGMENT
        : like.size < OWN_SEGMENT ? LARGE_SEGMENT
                                  : (like.size + SMALL_SEGMENT - 1) / SMALL_SEGMENT * SMALL_SEGMENT;
    if (!memory_fits(like.device, size))
        return NULL;
    void *pointer = NULL;
    int relaxed = 2;
    if (like.graph)
        cuda.exchange_capture_mode(&relaxed);
    int error = cuda.malloc(&pointer, size);
    if (like.graph)
        cuda.exchange_capture_mode(&relaxed);
    if (error) {
        cuda.last_error();
        return NULL;
    }
    like.pointer = pointer;
    like.size = size;
    struct block *block = new_block(like);
    if (!block) {
        cuda.free(pointer);
        return NULL;
    }
    reserved[like.device] += size;
    memory_note_peak();
    return block;
}

// Cuts what a request leaves off a block.
static void split(struct block *block, uint64_t size) {
    uint64_t rest = block->size - size;
    if (block->is_small ? rest < ROUNDING : rest <= SMALL)
        return;
    struct block *behind = new_block(*block);
    if (!behind)
        return;
    behind->pointer += size;
    behind->size = rest;
    behind->before = block;
    if (behind->behind)
        behind->behind->before = behind;
    block->behind = behind;
    block->size = size;
    add_free(behind);
}

void *caching_malloc(int device, stream_t stream, uint64_t graph, uint64_t requested, uint64_t size) {
    if (!make_room())
        return NULL;
    struct block key = {
        .size = size, .stream = stream, .graph = graph, .device = device, .is_small = size <= SMALL};
    const struct pool *pool = pool_of(&key);
    size_t at = lower_bound(pool, &key);
    struct block *block = at < pool->count ? pool->free[at] : NULL;
    if (block && block->stream == stream && block->graph == graph)
        take_out(block);
    else
        block = new_segment(key);
    if (!block)
        return NULL;
    split(block, size);
    block->is_used = true;
    block->requested = requested;
    put(block);
    return block->pointer;
}

static void join(struct block *block, struct block *other) {
    if (!other || other->is_used)
        return;
    take_out(other);
    if (other == block->before) {
        block->pointer = other->pointer;
        block->before = other->before;
        if (block->before)
            block->before->behind = block;
    } else {
        block->behind = other->behind;
        if (block->behind)
            block->behind->before = block;
    }
    block->size += other->size;
    free(other);
}

bool caching_free(const void *pointer, stream_t *stream) {
    struct block **found = find(pointer);
    if (!found)
        return false;
    struct block *block = *found;
    *found = TOMBSTONE;
    *stream = block->stream;
    block->is_used = false;
    join(block, block->before);
    join(block, block->behind);
    add_free(block);
    return true;
}

bool caching_find(const void *pointer, stream_t *stream, uint64_t *size) {
    struct block **found = find(pointer);
    if (!found)
        return false;
    *stream = (*found)->stream;
    *size = (*found)->size;
    return true;
}

// Gives back the segments that are free as a whole, of work that the device has finished. Returns their bytes.
uint64_t caching_release(int device) {
    uint64_t bytes = 0;
    for (int which = 0; which < 2; which++) {
        struct pool *pool = &pools[device][which];
        size_t kept = 0;
        for (size_t at = 0; at < pool->count; at++) {
            struct block *block = pool->free[at];
            // The memory of a capture is that of its graph for good.
            if (block->before || block->behind || block->graph) {
                pool->free[kept++] = block;
                continue;
            }
            cuda.free(block->pointer);
            bytes += block->size;
            free(block);
        }
        pool->count = kept;
    }
    reserved[device] -= bytes;
    return bytes;
}

uint64_t caching_reserved(int device) { return reserved[device]; }
