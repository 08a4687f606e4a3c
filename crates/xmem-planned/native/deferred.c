// Blocks that other streams have used (`record_stream`): their memory is given out again once these streams have done what
// they were asked for before the block was freed, as `insert_events` and `process_events` of PyTorch's allocator.
#include "planned.h"

#include <stdlib.h>

enum { DISABLE_TIMING = 2 };

struct use {
    void *pointer;
    stream_t stream;
};

struct waiting {
    void *pointer, *event;
    stream_t stream;
    int device;
};

static struct use *uses;
static size_t use_count, use_capacity;
static struct waiting *waiting;
static size_t waiting_count, waiting_capacity;

void deferred_note_use(void *pointer, stream_t stream) {
    for (size_t at = 0; at < use_count; at++)
        if (uses[at].pointer == pointer && uses[at].stream == stream)
            return;
    if (xmem_grow(&uses, &use_capacity, use_count + 1, sizeof *uses))
        uses[use_count++] = (struct use){pointer, stream};
}

bool deferred_has_uses(const void *pointer) {
    for (size_t at = 0; at < use_count; at++)
        if (uses[at].pointer == pointer)
            return true;
    return false;
}

static bool record(struct waiting *entry) {
    int before;
    bool good = !cuda.get_device(&before) && !cuda.set_device(entry->device)
        && !cuda.event_create(&entry->event, DISABLE_TIMING) && !cuda.event_record(entry->event, entry->stream);
    cuda.set_device(before);
    return good;
}

// A block that is freed: its uses become events. During a capture events are recorded later.
void deferred_add(void *pointer, int device, bool capturing) {
    for (size_t at = 0; at < use_count;) {
        if (uses[at].pointer != pointer) {
            at++;
            continue;
        }
        struct waiting entry = {pointer, NULL, uses[at].stream, device};
        uses[at] = uses[--use_count];
        if (!capturing && !record(&entry))
            cuda.synchronize();
        if (xmem_grow(&waiting, &waiting_capacity, waiting_count + 1, sizeof *waiting))
            waiting[waiting_count++] = entry;
    }
}

static bool is_waiting(const void *pointer) {
    for (size_t at = 0; at < waiting_count; at++)
        if (waiting[at].pointer == pointer)
            return true;
    return false;
}

// Frees what no stream uses any longer; with `wait`, all of it.
void deferred_process(bool wait) {
    for (size_t at = 0; at < waiting_count;) {
        struct waiting *entry = &waiting[at];
        if (!entry->event && !record(entry))
            cuda.synchronize();
        if (entry->event && (wait ? cuda.event_synchronize(entry->event) : cuda.event_query(entry->event))) {
            // Not ready, which PyTorch would take for an error of its own.
            cuda.last_error();
            at++;
            continue;
        }
        if (entry->event)
            cuda.event_destroy(entry->event);
        void *pointer = entry->pointer;
        waiting[at] = waiting[--waiting_count];
        if (!is_waiting(pointer))
            free_now(pointer);
    }
}
