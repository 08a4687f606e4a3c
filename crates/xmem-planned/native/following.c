// Requests at their planned places, with the counters of what becomes of them.
#include "plan.h"
#include "shadow.h"

enum { SMALL = 1 << 20 };

static bool is_debug;

uint64_t following_rounded(uint64_t size) {
    return size < ROUNDING ? ROUNDING : (size + ROUNDING - 1) / ROUNDING * ROUNDING;
}

// Follows another plan from here on, whose arenas are opened.
void following_open(struct plan *plan, bool debug) {
    is_debug = debug;
    for (int arena = 0; arena < MAX_ARENAS; arena++) {
        uint64_t bytes = plan->arena_bytes[arena];
        // Requests that differ from the plan have their place there in any case.
        if (arena == ITERATION && !bytes && plan->arena_bytes[LASTING])
            bytes = ROUNDING;
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

// The request of the plan that is the next one, if that is planned; `is_known`: the plan has it.
const struct planned *following_next(uint64_t size, bool *is_known) {
    const struct planned *request = sequence_next(size);
    *is_known = request != NULL;
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

// Looks for room in the arena of iterations for a request that differs from the plan: the smallest gap that is large enough, and
// of such gaps the lowest, else the end of the blocks. Whether its pages have memory makes no difference: they get it once,
// and a gap that fits better leaves larger ones whole. Returns NOWHERE if there is no room.
uint64_t following_find_gap(uint64_t size) {
    // Small requests share segments of 2 MiB elsewhere; here each could keep a page, or the place of a large one.
    if (size <= SMALL || size > arena_size(ITERATION))
        return NOWHERE;
    uint64_t offset = arena_gap(ITERATION, size);
    return offset <= arena_size(ITERATION) - size ? offset : NOWHERE;
}

// A block at the place that was found for a request that differs from the plan; null if there is no memory for it.
void *following_fit(uint64_t offset, uint64_t size) {
    void *pointer = arena_place(ITERATION, offset, size);
    if (!pointer)
        return NULL;
    if (is_debug)
        shadow_set(ITERATION, offset, size, true);
    counters.fitted++;
    return pointer;
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
