// Drives the allocator of the CPU by lines on standard input, through a libc10.so of its own; prints what each request gets.
//
//   open FILE          follows a plan         a ID BYTES STREAM   allocates, and fills the block
//   m                  an iteration ends      f ID                looks at its bytes, and frees it
//   observed FILE      writes what happened   al ID BYTES N       allocates at a boundary of N bytes
//   other ID BYTES     allocates in another thread, and frees the block there
//   threads N COUNT    N threads make COUNT requests each beside this one, and free each other's blocks
//   fork ID BYTES      allocates and frees in a child
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int xmem_plan_install(const char *);
int xmem_plan_open(const char *, int);
uint64_t xmem_plan_mark(void);
int xmem_plan_write_observed(const char *);
void xmem_plan_counters(uint64_t *, uint64_t *);
uint64_t arena_base(int);
uint64_t arena_size(int);

enum { MOST = 1 << 16, BOXES = 64 };
static void *(*alloc_cpu)(size_t, size_t);
static void (*free_cpu)(void *);
static struct block { unsigned char *bytes; size_t size; } blocks[MOST];

static unsigned char pattern(size_t id) { return (unsigned char)(id * 37 + 1); }

static void fill(struct block *block, size_t alignment, size_t size, size_t id) {
    *block = (struct block){alloc_cpu(alignment, size), size};
    if (!block->bytes)
        exit(2);
    memset(block->bytes, pattern(id), size);
}

static void check(const struct block *block, size_t id) {
    for (size_t at = 0; at < block->size; at++)
        if (block->bytes[at] != pattern(id)) {
            printf("%zu was overwritten\n", id);
            return;
        }
}

static int arena_of(const void *pointer) {
    for (int arena = 0; arena < 2; arena++)
        if ((uint64_t)pointer - arena_base(arena) < arena_size(arena))
            return arena;
    return -1;
}

static void print(size_t id, const void *pointer) {
    int arena = arena_of(pointer);
    if (arena < 0)
        printf("%zu elsewhere\n", id);
    else
        printf("%zu plan %llu\n", id, (unsigned long long)((uint64_t)pointer - arena_base(arena)));
}

static void *allocate_once(void *argument) {
    size_t size = *(size_t *)argument;
    void *pointer = alloc_cpu(64, size);
    memset(pointer, 1, size);
    *(int *)argument = arena_of(pointer);
    free_cpu(pointer);
    return NULL;
}

// Blocks on their way from one thread to another.
static struct block *boxes[BOXES];
static size_t request_count;

static void *make_requests(void *argument) {
    uint64_t random = (uint64_t)argument * 0x9e3779b97f4a7c15u + 1;
    for (size_t at = 0; at < request_count; at++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t size = (random >> 40) % 4000 + 1, id = (size_t)(random >> 20);
        struct block *block = malloc(sizeof *block);
        fill(block, 64, size, size);
        block = __atomic_exchange_n(&boxes[id % BOXES], block, __ATOMIC_ACQ_REL);
        if (block) {
            check(block, block->size);
            free_cpu(block->bytes);
            free(block);
        }
        if (argument == NULL && at % 50 == 0)
            xmem_plan_mark();
    }
    return NULL;
}

static void run_threads(size_t count, size_t each) {
    pthread_t threads[16];
    request_count = each;
    for (size_t at = 1; at <= count; at++)
        pthread_create(&threads[at - 1], NULL, make_requests, (void *)at);
    make_requests(NULL);
    for (size_t at = 0; at < count; at++)
        pthread_join(threads[at], NULL);
    for (size_t at = 0; at < BOXES; at++)
        if (boxes[at]) {
            check(boxes[at], boxes[at]->size);
            free_cpu(boxes[at]->bytes);
            free(boxes[at]);
            boxes[at] = NULL;
        }
}

int main(int count, char **arguments) {
    char word[512];
    size_t id, size, other;
    (void)count;
    snprintf(word, sizeof word, "%.480s.libs/libc10.so", arguments[0]);
    void *library = dlopen(word, RTLD_NOW);
    if (!library)
        return 3;
    *(void **)&alloc_cpu = dlsym(library, "alloc_cpu");
    *(void **)&free_cpu = dlsym(library, "free_cpu");
    // From before the table was changed.
    fill(&blocks[MOST - 1], 64, 100, 1);
    if (xmem_plan_install("libc10.so") || !xmem_plan_install("libm.so.6"))
        return 4;
    free_cpu(blocks[MOST - 1].bytes);
    while (scanf("%511s", word) == 1) {
        if (!strcmp(word, "open")) {
            if (scanf("%511s", word) != 1 || xmem_plan_open(word, 1))
                puts("no plan");
        } else if (!strcmp(word, "a") && scanf("%zu %zu %zu", &id, &size, &other) == 3) {
            fill(&blocks[id], 64, size, id);
            print(id, blocks[id].bytes);
        } else if (!strcmp(word, "al") && scanf("%zu %zu %zu", &id, &size, &other) == 3) {
            fill(&blocks[id], other, size, id);
            if ((uint64_t)blocks[id].bytes % other)
                puts("at no boundary");
            print(id, blocks[id].bytes);
        } else if (!strcmp(word, "f") && scanf("%zu", &id) == 1) {
            check(&blocks[id], id);
            free_cpu(blocks[id].bytes);
            if (arena_of(blocks[id].bytes) >= 0 && *blocks[id].bytes != 0xdd)
                printf("%zu is not poisoned\n", id);
        } else if (!strcmp(word, "other") && scanf("%zu %zu", &id, &size) == 2) {
            pthread_t thread;
            pthread_create(&thread, NULL, allocate_once, &size);
            pthread_join(thread, NULL);
            printf("%zu %s\n", id, *(int *)&size < 0 ? "elsewhere" : "plan");
        } else if (!strcmp(word, "threads") && scanf("%zu %zu", &other, &size) == 2) {
            run_threads(other, size);
        } else if (!strcmp(word, "fork") && scanf("%zu %zu", &id, &size) == 2) {
            fflush(stdout);
            pid_t child = fork();
            if (!child) {
                size_t now = size;
                allocate_once(&now);
                // A block of the parent's.
                check(&blocks[id], id);
                free_cpu(blocks[id].bytes);
                _exit(*(int *)&now < 0 ? 0 : 1);
            }
            int status = 1;
            waitpid(child, &status, 0);
            printf("child %d\n", status);
        } else if (!strcmp(word, "observed") && scanf("%511s", word) == 1) {
            printf("observed %d\n", xmem_plan_write_observed(word));
        } else if (!strcmp(word, "m")) {
            xmem_plan_mark();
        } else {
            return 1;
        }
    }
    uint64_t counters[17], reserved;
    xmem_plan_counters(counters, &reserved);
    printf("end requests %llu other %llu planned %llu fitted %llu collisions %llu\n", (unsigned long long)counters[0],
        (unsigned long long)counters[5], (unsigned long long)counters[1], (unsigned long long)counters[16],
        (unsigned long long)counters[9]);
    return 0;
}
