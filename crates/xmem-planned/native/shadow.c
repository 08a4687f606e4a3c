// A second record of what is live in the arenas, for debugging: a bit for each 512 bytes.
#include "shadow.h"
#include "plan.h"

#include <stdlib.h>

static uint8_t *bits[MAX_ARENAS];
static uint64_t granules[MAX_ARENAS];

void shadow_open(int arena, uint64_t bytes) {
    if (bits[arena])
        return;
    granules[arena] = bytes / ROUNDING + 1;
    bits[arena] = calloc(granules[arena] / 8 + 1, 1);
}

// Sets or clears the granules of a block; counts a collision for each that was so before.
void shadow_set(int arena, uint64_t offset, uint64_t size, bool live) {
    if (!bits[arena])
        return;
    for (uint64_t at = offset / ROUNDING; at < (offset + size + ROUNDING - 1) / ROUNDING && at < granules[arena]; at++) {
        uint8_t mask = (uint8_t)(1 << at % 8);
        if (!!(bits[arena][at / 8] & mask) == live)
            counters.collisions++;
        bits[arena][at / 8] ^= mask;
    }
}
