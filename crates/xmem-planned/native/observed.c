// What the job did in its last two iterations: requests and frees, for a new plan.
#include "observed.h"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Events of an iteration that are kept.
enum { MOST = 4 << 20 };

struct event {
    uint64_t pointer;
    uint64_t size; // 0: a free
};

static struct iteration {
    struct event *events;
    size_t count, capacity;
    bool is_whole;
} kept[3]; // two complete ones and the present one, by `first`
static int first;
static bool is_on;

static struct iteration *iteration(int number) { return &kept[(first + number) % 3]; }

void observed_start(void) { is_on = true; }

void observed_add(const void *pointer, uint64_t size) {
    struct iteration *now = iteration(2);
    if (!is_on || now->count == MOST || !xmem_grow(&now->events, &now->capacity, now->count + 1, sizeof *now->events)) {
        now->is_whole = false;
        return;
    }
    now->events[now->count++] = (struct event){(uint64_t)pointer, size};
}

void observed_mark(void) {
    first = (first + 1) % 3;
    struct iteration *now = iteration(2);
    now->count = 0;
    now->is_whole = is_on;
}

// Lines: `a ADDRESS BYTES`, `f ADDRESS`, `mark` behind each iteration.
bool observed_write(const char *path) {
    if (!iteration(0)->is_whole || !iteration(1)->is_whole)
        return false;
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    for (int number = 0; number < 2; number++) {
        const struct iteration *now = iteration(number);
        for (size_t at = 0; at < now->count; at++) {
            const struct event *event = &now->events[at];
            if (event->size)
                fprintf(file, "a %llx %llu\n", (unsigned long long)event->pointer, (unsigned long long)event->size);
            else
                fprintf(file, "f %llx\n", (unsigned long long)event->pointer);
        }
        fputs("mark\n", file);
    }
    return fclose(file) == 0;
}
