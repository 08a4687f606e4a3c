// The memory of the process on its devices.
#include "planned.h"

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
