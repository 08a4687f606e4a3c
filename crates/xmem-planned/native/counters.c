// What is counted, and arrays that grow.
#include "plan.h"

#include <stdlib.h>
#include <string.h>

struct counters counters;

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
