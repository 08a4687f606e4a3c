#pragma once

#include "tree.h"

struct live {
    struct tree blocks; // start and end
    struct tree gaps;   // bytes and start of what is free below the last block
    size_t count;       // of blocks
};

bool live_is_free(const struct live *live, uint64_t offset, uint64_t size);
bool live_add(struct live *live, uint64_t offset, uint64_t size);
uint64_t live_find(const struct live *live, uint64_t offset);
void live_remove(struct live *live, uint64_t offset);
uint64_t live_gap(const struct live *live, uint64_t size);
