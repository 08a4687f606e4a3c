// Drives the allocator by lines on standard input, with a CUDA that gives addresses and no memory; prints what each request
// gets. Addresses of segments ascend, each on a boundary of 32 MiB.
//
//   open FILE      follows a plan          a ID BYTES STREAM   allocates
//   m              an iteration ends       f ID                frees
//   e              gives cached memory back
//   u ID STREAM    another stream uses a block
//   d STREAM       a stream has done its work
//   limit BYTES    memory of the device
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

void *xmem_plan_malloc(ssize_t, int, void *);
void xmem_plan_free(void *, ssize_t, int, void *);
void xmem_plan_record_stream(void *, void *);
void xmem_plan_empty_cache(void);
int xmem_plan_open(const char *, int);
uint64_t xmem_plan_mark(void);
int xmem_plan_write_observed(const char *);
void xmem_plan_counters(uint64_t *, uint64_t *);

enum { MOST = 1 << 16, STREAMS = 8 };
static const uint64_t FIRST = (uint64_t)1 << 40, RANGES = (uint64_t)1 << 44, TOTAL = (uint64_t)64 << 30;
static uint64_t next_address, limit = (uint64_t)64 << 30, used, next_range;
static struct { uint64_t address, size; } segments[MOST];
static size_t segment_count;
static uint64_t done[STREAMS], asked[STREAMS];
struct event { uint64_t stream, number; };

int cudaMalloc(void **pointer, size_t size) {
    if (used + size > limit)
        return 2;
    used += size;
    *pointer = (void *)(FIRST + next_address);
    segments[segment_count].address = FIRST + next_address;
    segments[segment_count++].size = size;
    next_address += (size + (32 << 20) - 1) / (32 << 20) * (32 << 20);
    return 0;
}
int cudaFree(void *pointer) {
    for (size_t at = 0; at < segment_count; at++)
        if (segments[at].address == (uint64_t)pointer) {
            used -= segments[at].size;
            segments[at].address = 0;
            return 0;
        }
    abort();
}
int cudaDeviceSynchronize(void) { memcpy(done, asked, sizeof done); return 0; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaSetDevice(int device) { return device; }
int cudaGetLastError(void) { return 0; }
int cudaMemGetInfo(size_t *available, size_t *total) { *available = limit - used; *total = TOTAL; return 0; }
int cudaStreamIsCapturing(void *stream, int *status) { (void)stream; *status = 0; return 0; }
int cudaThreadExchangeStreamCaptureMode(int *mode) { (void)mode; return 0; }
int cudaEventCreateWithFlags(void **event, unsigned flags) { (void)flags; return !(*event = calloc(1, sizeof(struct event))); }
int cudaEventRecord(void *event, void *stream) {
    uint64_t number = (uint64_t)stream % STREAMS;
    *(struct event *)event = (struct event){number, ++asked[number]};
    return 0;
}
int cudaEventQuery(void *event) { const struct event *of = event; return done[of->stream] >= of->number ? 0 : 600; }
int cudaEventSynchronize(void *event) { const struct event *of = event; done[of->stream] = asked[of->stream]; return 0; }
int cudaEventDestroy(void *event) { free(event); return 0; }
int cuMemAddressReserve(uint64_t *address, size_t size, size_t alignment, uint64_t at, uint64_t flags) {
    (void)alignment, (void)at, (void)flags;
    *address = RANGES + next_range;
    next_range += size + (1 << 30);
    return 0;
}
int cuMemCreate(uint64_t *handle, size_t size, const void *property, uint64_t flags) {
    (void)property, (void)flags;
    if (used + size > limit)
        return 2;
    used += size;
    *handle = size;
    return 0;
}
int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, uint64_t flags) {
    (void)offset, (void)flags;
    return address < RANGES || handle != size;
}
int cuMemSetAccess(uint64_t address, size_t size, const void *access, size_t count) { (void)address, (void)size, (void)access; return count != 1; }
int cuMemUnmap(uint64_t address, size_t size) { (void)size; return address < RANGES; }
int cuMemRelease(uint64_t handle) { used -= handle; return 0; }

int main(void) {
    static void *blocks[MOST];
    char word[512];
    unsigned long long id, size, stream;
    while (scanf("%511s", word) == 1) {
        if (!strcmp(word, "open")) {
            if (scanf("%511s", word) != 1 || xmem_plan_open(word, 1))
                puts("no plan");
        } else if (!strcmp(word, "a") && scanf("%llu %llu %llu", &id, &size, &stream) == 3) {
            blocks[id] = xmem_plan_malloc((ssize_t)size, 0, (void *)(stream));
            uint64_t address = (uint64_t)blocks[id];
            if (!address)
                printf("%llu none\n", id);
            else if (address >= RANGES)
                printf("%llu plan %llu\n", id, (unsigned long long)(address - RANGES));
            else
                printf("%llu at %llu\n", id, (unsigned long long)(address - FIRST));
        } else if (!strcmp(word, "f") && scanf("%llu", &id) == 1) {
            xmem_plan_free(blocks[id], 0, 0, NULL);
        } else if (!strcmp(word, "u") && scanf("%llu %llu", &id, &stream) == 2) {
            xmem_plan_record_stream(blocks[id], (void *)stream);
        } else if (!strcmp(word, "d") && scanf("%llu", &stream) == 1) {
            done[stream % STREAMS] = asked[stream % STREAMS];
        } else if (!strcmp(word, "limit") && scanf("%llu", &size) == 1) {
            limit = size;
        } else if (!strcmp(word, "observed") && scanf("%511s", word) == 1) {
            printf("observed %d\n", xmem_plan_write_observed(word));
        } else if (!strcmp(word, "m")) {
            xmem_plan_mark();
        } else if (!strcmp(word, "e")) {
            xmem_plan_empty_cache();
        } else {
            return 1;
        }
    }
    uint64_t counters[17], reserved;
    xmem_plan_counters(counters, &reserved);
    printf("end reserved %llu used %llu planned %llu fitted %llu collisions %llu\n", (unsigned long long)reserved,
        (unsigned long long)used, (unsigned long long)counters[1], (unsigned long long)counters[16],
        (unsigned long long)counters[9]);
    return 0;
}
