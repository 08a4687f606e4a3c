// Requests at their planned places, with the counters of what becomes of them.
#include "plan.h"
#include "shadow.h"

static bool is_debug;

uint64_t following_rounded(uint64_t size) {
    return size < ROUNDING ? ROUNDING : (size + ROUNDING - 1) / ROUNDING * ROUNDING;
}

// Follows another plan from here on, whose arenas are opened.
void following_open(struct plan *plan, bool debug) {
    is_debug = debug;
    for (int arena = 0; arena < MAX_ARENAS; arena++) {
        uint64_t bytes = plan->arena_bytes[arena];
        if (!bytes || arena_open(arena, bytes)) {
            if (is_debug && bytes)
                shadow_open(arena, arena_size(arena));
            continue;
        }
        // No addresses: what was planned there is served elsewhere.
        struct sequence *sequences[] = {&plan->warm_up, &plan->iteration};
        for (int which = 0; which < 2; which++)
            for (size_t at = 0; at < sequences[which]->count; at++)
                if (sequences[which]->requests[at].arena == arena)
                    sequences[which]->requests[at].offset = NOWHERE;
    }
    sequence_use(plan);
}

// The request of the plan that is the next one, if that is planned.
const struct planned *following_next(uint64_t size) {
    const struct planned *request = sequence_next(size);
    if (!request)
        counters.unknown++;
    else if (request->offset == NOWHERE)
        counters.outside++;
    return request && request->offset != NOWHERE ? request : NULL;
}

// Whether nothing is live at the place of a request.
bool following_is_free(const struct planned *request, uint64_t size) {
    bool is_free = arena_is_free(request->arena, request->offset, size);
    if (!is_free)
        counters.occupied++;
    return is_free;
}

// The place of a request; null if there is no memory for it.
void *following_place(const struct planned *request, uint64_t size) {
    void *pointer = arena_place(request->arena, request->offset, size);
    if (!pointer)
        return NULL;
    if (is_debug)
        shadow_set(request->arena, request->offset, size, true);
    counters.planned++;
    return pointer;
}

// The block at `pointer` is free.
void following_clear(int arena, const void *pointer, uint64_t size) {
    if (is_debug)
        shadow_set(arena, (uint64_t)pointer - arena_base(arena), size, false);
    arena_clear(arena, pointer);
}
