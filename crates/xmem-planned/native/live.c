// The blocks of an arena that are live, by address.
#include "plan.h"

#include <string.h>

// The first block that ends behind `offset`.
static size_t first_behind(const struct live *live, uint64_t offset) {
    size_t low = 0, high = live->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (live->blocks[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool live_is_free(const struct live *live, uint64_t offset, uint64_t size) {
    size_t at = first_behind(live, offset);
    return at == live->count || live->blocks[at].start >= offset + size;
}

// Adds a block where nothing is live. Returns false if there is no memory for the list.
bool live_add(struct live *live, uint64_t offset, uint64_t size) {
    if (!xmem_grow(&live->blocks, &live->capacity, live->count + 1, sizeof *live->blocks))
        return false;
    size_t at = first_behind(live, offset);
    memmove(&live->blocks[at + 1], &live->blocks[at], (live->count - at) * sizeof *live->blocks);
    live->blocks[at] = (struct interval){offset, offset + size};
    live->count++;
    return true;
}

// The bytes of the block that begins at `offset`; 0 if there is none.
uint64_t live_find(const struct live *live, uint64_t offset) {
    size_t at = first_behind(live, offset);
    return at < live->count && live->blocks[at].start == offset ? live->blocks[at].end - offset : 0;
}

// Removes the block that begins at `offset`.
void live_remove(struct live *live, uint64_t offset) {
    size_t at = first_behind(live, offset);
    live->count--;
    memmove(&live->blocks[at], &live->blocks[at + 1], (live->count - at) * sizeof *live->blocks);
}
