// The plan, and the place in it: requests are recognized by their order and their sizes.
//
// A request that the plan does not have is served elsewhere, and the next one is expected at the same place. One that
// does not come leaves the place behind: after `SURE` requests in a row with the sizes of a run elsewhere in the
// plan, the place moves there.
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SURE = 4, REACH = 8192 };

static struct plan current;
static bool is_warm; // the warm-up is over
static size_t place;
static uint64_t recent[SURE]; // sizes of the last requests, the newest last
static size_t unexpected;     // requests in a row that were not those at the place

static const struct sequence *sequence(void) { return is_warm ? &current.iteration : &current.warm_up; }

// Whether the plan says anything about the present part of the job.
bool sequence_is_planned(void) { return sequence()->count; }

static bool read_sequence(FILE *file, const char *name, struct sequence *sequence) {
    char word[16];
    size_t count;
    if (fscanf(file, "%15s %zu", word, &count) != 2 || strcmp(word, name) || count > (size_t)1 << 28)
        return false;
    sequence->requests = calloc(count ? count : 1, sizeof *sequence->requests);
    sequence->count = sequence->requests ? count : 0;
    for (size_t at = 0; at < sequence->count; at++) {
        struct planned *request = &sequence->requests[at];
        long long offset;
        unsigned long long least, most;
        if (fscanf(file, "%llu %llu %d %lld", &least, &most, &request->arena, &offset) != 4)
            return false;
        if (request->arena < 0 || request->arena >= MAX_ARENAS || least > most)
            return false;
        request->least = least;
        request->most = most;
        request->offset = offset < 0 ? NOWHERE : (uint64_t)offset;
    }
    return sequence->requests != NULL;
}

bool plan_read(const char *path, struct plan *plan) {
    *plan = (struct plan){0};
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    unsigned long long first, second;
    bool good = fscanf(file, "xmem-plan 2 %llu %llu", &first, &second) == 2
        && read_sequence(file, "warm-up", &plan->warm_up) && read_sequence(file, "iteration", &plan->iteration);
    fclose(file);
    if (!good) {
        plan_free(plan);
        return false;
    }
    plan->arena_bytes[0] = first;
    plan->arena_bytes[1] = second;
    return true;
}

void plan_free(struct plan *plan) {
    free(plan->warm_up.requests);
    free(plan->iteration.requests);
    *plan = (struct plan){0};
}

// Follows another plan from here on; its warm-up is not that of the running job if marks have passed.
void sequence_use(struct plan *plan) {
    plan_free(&current);
    current = *plan;
    *plan = (struct plan){0};
    place = 0;
    unexpected = 0;
}

// An iteration has ended.
void sequence_mark(void) {
    is_warm = true;
    place = 0;
    unexpected = 0;
}

static bool is_good(const struct planned *request, uint64_t size) {
    return size >= request->least && size <= request->most;
}

// Whether the recent sizes are those of the requests up to `last`.
static bool is_run(const struct sequence *sequence, size_t last) {
    for (size_t back = 0; back < SURE; back++)
        if (last < back || !is_good(&sequence->requests[last - back], recent[SURE - 1 - back]))
            return false;
    return true;
}

// The request of the plan that a request of this rounded size is; null if none.
const struct planned *sequence_next(uint64_t size) {
    const struct sequence *now = sequence();
    memmove(recent, recent + 1, sizeof recent - sizeof *recent);
    recent[SURE - 1] = size;
    if (place < now->count && is_good(&now->requests[place], size)) {
        unexpected = 0;
        return &now->requests[place++];
    }
    unexpected++;
    if (unexpected < SURE)
        return NULL;
    // The nearest of those ahead, then of those behind.
    for (size_t away = 1; away <= REACH && (away <= place || place + away < now->count); away++)
        for (int ahead = 1; ahead >= 0; ahead--) {
            size_t at = ahead ? place + away : place - away;
            if ((ahead || away <= place) && at < now->count && is_run(now, at)) {
                place = at + 1;
                unexpected = 0;
                return &now->requests[at];
            }
        }
    return NULL;
}
