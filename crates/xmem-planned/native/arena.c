// Arenas: ranges of virtual addresses, whose pages have memory from their first use on until memory is short
// (CUDA's virtual memory management, as PyTorch's expandable segments use it).
#include "planned.h"

#include <stdlib.h>

enum { PAGE = 2 << 20, READ_WRITE = 3 };

// CUmemAllocationProp: pinned memory of one device, without handles for other processes.
struct property {
    int type, handles, location, device;
    void *windows;
    unsigned char flags[8];
};

// CUmemAccessDesc.
struct access {
    int location, device, flags;
};

static struct arena {
    uint64_t base;
    uint64_t bytes;
    uint64_t *pages; // the handle of each page; 0: no memory
    size_t count;
    struct live live;
} arenas[MAX_ARENAS];
static uint64_t mapped;
static int device;

bool arena_open(int number, uint64_t bytes) {
    struct arena *arena = &arenas[number];
    if (bytes <= arena->bytes)
        return true;
    if (!cuda.reserve || !cuda.create || !cuda.map || !cuda.set_access || !cuda.unmap || !cuda.release)
        return false;
    size_t available = 0, total = 0;
    if (arena->live.count || cuda.get_device(&device) || cuda.mem_info(&available, &total))
        return false;
    // Addresses cost nothing: a later plan may need more of them.
    uint64_t base = 0, size = (bytes + total + PAGE - 1) / PAGE * PAGE;
    if (cuda.reserve(&base, size, 0, 0, 0))
        return false;
    uint64_t *pages = calloc(size / PAGE, sizeof *pages);
    if (!pages)
        return false;
    // A larger plan: the pages of the smaller range go back, and its addresses are not used again.
    arena_trim();
    free(arena->pages);
    arena->pages = pages;
    arena->base = base;
    arena->bytes = size;
    arena->count = size / PAGE;
    return true;
}

bool arena_is_free(int number, uint64_t offset, uint64_t size) {
    const struct arena *arena = &arenas[number];
    return offset + size <= arena->bytes && live_is_free(&arena->live, offset, size);
}

uint64_t arena_gap(int number, uint64_t size) { return live_gap(&arenas[number].live, size); }

uint64_t arena_base(int number) { return arenas[number].base; }

uint64_t arena_size(int number) { return arenas[number].bytes; }

static bool back(struct arena *arena, size_t page) {
    if (arena->pages[page])
        return true;
    struct property property = {.type = 1, .location = 1, .device = device};
    struct access access = {.location = 1, .device = device, .flags = READ_WRITE};
    uint64_t handle = 0, address = arena->base + page * PAGE;
    if (!memory_fits(device, PAGE) || cuda.create(&handle, PAGE, &property, 0))
        return false;
    if (cuda.map(address, PAGE, 0, handle, 0)) {
        cuda.release(handle);
        return false;
    }
    if (cuda.set_access(address, PAGE, &access, 1)) {
        cuda.unmap(address, PAGE);
        cuda.release(handle);
        return false;
    }
    // Zero is no handle here.
    arena->pages[page] = handle + 1;
    mapped += PAGE;
    memory_note_peak();
    return true;
}

void *arena_place(int number, uint64_t offset, uint64_t size) {
    struct arena *arena = &arenas[number];
    for (size_t page = offset / PAGE; page <= (offset + size - 1) / PAGE; page++)
        if (!back(arena, page))
            return NULL;
    if (!live_add(&arena->live, offset, size))
        return NULL;
    return (void *)(arena->base + offset);
}

bool arena_find(const void *pointer, int *number, uint64_t *size) {
    uint64_t address = (uint64_t)pointer;
    for (int at = 0; at < MAX_ARENAS; at++) {
        const struct arena *arena = &arenas[at];
        if (address < arena->base || address >= arena->base + arena->bytes)
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

// Gives back pages without a live block; the device has finished its work. Returns their bytes.
uint64_t arena_trim(void) {
    uint64_t bytes = 0;
    for (struct arena *arena = arenas; arena < arenas + MAX_ARENAS; arena++)
        for (size_t page = 0; page < arena->count; page++) {
            if (!arena->pages[page] || !arena_is_free((int)(arena - arenas), page * PAGE, PAGE))
                continue;
            cuda.unmap(arena->base + page * PAGE, PAGE);
            cuda.release(arena->pages[page] - 1);
            arena->pages[page] = 0;
            bytes += PAGE;
        }
    mapped -= bytes;
    return bytes;
}

uint64_t arena_mapped(void) { return mapped; }
