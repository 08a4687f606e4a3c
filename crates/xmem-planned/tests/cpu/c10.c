// libc10.so as far as it allocates (c10/core/impl/alloc_cpu.cpp).
#include <stdlib.h>

void *alloc_cpu(size_t alignment, size_t bytes) {
    void *pointer;
    return posix_memalign(&pointer, alignment, bytes) ? NULL : pointer;
}

void free_cpu(void *pointer) { free(pointer); }
