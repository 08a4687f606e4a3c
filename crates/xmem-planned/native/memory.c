// The memory of the process on its devices, and its counters.
#include "planned.h"

#include <stdlib.h>
#include <string.h>

struct counters counters;
double memory_fraction[MAX_DEVICES];
uint64_t memory_total[MAX_DEVICES];

uint64_t memory_reserved(void) {
    uint64_t bytes = arena_mapped();
    for (int device = 0; device < MAX_DEVICES; device++)
        bytes += caching_reserved(device);
    return bytes;
}

void memory_note_peak(void) {
    uint64_t now = memory_reserved();
    if (now > counters.reserved_peak)
        counters.reserved_peak = now;
    if (now > counters.driver_peak)
        counters.driver_peak = now;
}

// Whether a process limit (torch.cuda.set_per_process_memory_fraction) leaves room for more bytes.
bool memory_fits(int device, uint64_t more) {
    if (!memory_fraction[device])
        return true;
    return memory_reserved() + more <= (uint64_t)(memory_fraction[device] * (double)memory_total[device]);
}

// The array with room for `wanted` items of `item` bytes; null, and the array as it was, if there is no memory. `array` points
// to the pointer to the array.
void *xmem_grow(void *array, size_t *capacity, size_t wanted, size_t item) {
    void *now;
    memcpy(&now, array, sizeof now);
    if (wanted <= *capacity)
        return now;
    size_t size = *capacity ? *capacity * 2 : 64;
    if (size < wanted)
        size = wanted;
    now = realloc(now, size * item);
    if (!now)
        return NULL;
    memcpy(array, &now, sizeof now);
    *capacity = size;
    return now;
}
