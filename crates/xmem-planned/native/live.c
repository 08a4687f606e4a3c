// The blocks of an arena that are live, and the gaps between them.
#include "live.h"

// The first block that ends behind `offset`; null if there is none.
static const struct pair *first_behind(const struct live *live, uint64_t offset) {
    const struct pair *before = tree_before(&live->blocks, offset, UINT64_MAX);
    return before && before->second > offset ? before : tree_from(&live->blocks, offset, 0);
}

// The end of the last block that begins before `offset`.
static uint64_t end_before(const struct live *live, uint64_t offset) {
    const struct pair *before = tree_before(&live->blocks, offset, 0);
    return before ? before->second : 0;
}

static void add_gap(struct live *live, uint64_t start, uint64_t end) {
    if (start < end)
        tree_add(&live->gaps, end - start, start);
}

bool live_is_free(const struct live *live, uint64_t offset, uint64_t size) {
    const struct pair *behind = first_behind(live, offset);
    return !behind || behind->first >= offset + size;
}

// Adds a block where nothing is live. Returns false if there is no memory for the list.
bool live_add(struct live *live, uint64_t offset, uint64_t size) {
    // The block, and a gap more than before.
    if (!tree_reserve(2))
        return false;
    uint64_t start = end_before(live, offset), end = offset + size;
    const struct pair *behind = tree_from(&live->blocks, offset, 0);
    if (behind) {
        tree_remove(&live->gaps, behind->first - start, start);
        add_gap(live, end, behind->first);
    }
    add_gap(live, start, offset);
    tree_add(&live->blocks, offset, end);
    live->count++;
    return true;
}

// The bytes of the block that begins at `offset`; 0 if there is none.
uint64_t live_find(const struct live *live, uint64_t offset) {
    const struct pair *block = tree_from(&live->blocks, offset, 0);
    return block && block->first == offset ? block->second - offset : 0;
}

// Removes the block that begins at `offset`.
void live_remove(struct live *live, uint64_t offset) {
    uint64_t start = end_before(live, offset), end = offset + live_find(live, offset);
    tree_remove(&live->blocks, offset, end);
    live->count--;
    if (start < offset)
        tree_remove(&live->gaps, offset - start, start);
    const struct pair *behind = tree_from(&live->blocks, end, 0);
    if (!behind)
        return;
    if (end < behind->first)
        tree_remove(&live->gaps, behind->first - end, end);
    add_gap(live, start, behind->first);
}

// The start of the smallest gap between blocks that has at least these bytes, and of such gaps the lowest; the end of the blocks
// if there is none.
uint64_t live_gap(const struct live *live, uint64_t size) {
    const struct pair *gap = tree_from(&live->gaps, size, 0);
    return gap ? gap->second : end_before(live, UINT64_MAX);
}
