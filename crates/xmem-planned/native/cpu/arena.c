// Arenas: ranges of virtual addresses, whose pages the kernel backs at their first use.
#define _GNU_SOURCE
#include "cpu.h"

#include <sys/mman.h>
#include <unistd.h>

static struct arena {
    uint64_t base;
    uint64_t bytes;
    uint64_t top; // the end of the highest page that has been used
    struct live live;
} arenas[MAX_ARENAS];
static uint64_t mapped;

static uint64_t page_size(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

static uint64_t whole_pages(uint64_t bytes) { return (bytes + page_size() - 1) / page_size() * page_size(); }

static void *reserve(uint64_t bytes) {
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

bool arena_open(int number, uint64_t bytes) {
    struct arena *arena = &arenas[number];
    if (bytes <= arena->bytes)
        return true;
    if (arena->live.count)
        return false;
    // Addresses cost nothing, where they are not limited: a later plan may need more of them.
    uint64_t wanted = whole_pages(bytes), more = whole_pages(wanted + (uint64_t)sysconf(_SC_PHYS_PAGES) * page_size());
    void *base = reserve(more);
    if (base)
        wanted = more;
    else
        base = reserve(wanted);
    if (!base)
        return false;
    if (arena->base) {
        munmap((void *)arena->base, arena->bytes);
        mapped -= arena->top;
    }
    *arena = (struct arena){(uint64_t)base, wanted, 0, arena->live};
    return true;
}

bool arena_is_free(int number, uint64_t offset, uint64_t size) {
    const struct arena *arena = &arenas[number];
    return offset + size <= arena->bytes && live_is_free(&arena->live, offset, size);
}

uint64_t arena_gap(int number, uint64_t size) { return live_gap(&arenas[number].live, size); }

uint64_t arena_base(int number) { return arenas[number].base; }

uint64_t arena_size(int number) { return arenas[number].bytes; }

void *arena_place(int number, uint64_t offset, uint64_t size) {
    struct arena *arena = &arenas[number];
    if (!live_add(&arena->live, offset, size))
        return NULL;
    if (offset + size > arena->top) {
        uint64_t top = whole_pages(offset + size);
        mapped += top - arena->top;
        arena->top = top;
    }
    return (void *)(arena->base + offset);
}

bool arena_find(const void *pointer, int *number, uint64_t *size) {
    uint64_t address = (uint64_t)pointer;
    for (int at = 0; at < MAX_ARENAS; at++) {
        const struct arena *arena = &arenas[at];
        if (address - arena->base >= arena->bytes)
            continue;
        *number = at;
        *size = live_find(&arena->live, address - arena->base);
        return *size;
    }
    return false;
}

void arena_clear(int number, const void *pointer) {
    live_remove(&arenas[number].live, (uint64_t)pointer - arenas[number].base);
}

static void discard(const struct arena *arena, uint64_t from, uint64_t to) {
    if (from < to)
        madvise((void *)(arena->base + from), to - from, MADV_DONTNEED);
}

// Gives back the pages between live blocks. Returns the bytes above the last of them: the others were not counted apart.
uint64_t arena_trim(void) {
    uint64_t bytes = 0;
    for (struct arena *arena = arenas; arena < arenas + MAX_ARENAS; arena++) {
        uint64_t from = 0, top = 0;
        const struct pair *block = tree_from(&arena->live.blocks, 0, 0);
        for (; block; block = tree_from(&arena->live.blocks, block->first, block->second + 1)) {
            discard(arena, from, block->first / page_size() * page_size());
            from = top = whole_pages(block->second);
        }
        discard(arena, from, arena->top);
        bytes += arena->top - top;
        arena->top = top;
    }
    mapped -= bytes;
    return bytes;
}

// The bytes up to the highest page of each arena: plans are dense.
uint64_t arena_mapped(void) { return mapped; }
