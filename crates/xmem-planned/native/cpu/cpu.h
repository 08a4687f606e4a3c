// An allocator for tensors on the CPU that gives requests the addresses of a static memory plan.
//
// PyTorch's allocator of the CPU (c10/core/impl/alloc_cpu.cpp) calls `posix_memalign` and `free` of the C library. Their
// entries in the table of libc10.so, and in no other library's, are replaced (`table.c`), so that all that is requested and
// freed here is memory of tensors, and each address that is not of an arena is the C library's, or that of the allocator
// that is preloaded in its place. `entry.c` is what PyTorch and the hook call, under one lock.
//
// The order of requests is that of one thread: the one that marks iterations. What others request is the C library's; what
// they free may be of the plan.
#pragma once

#include "../plan.h"

// table.c
int table_replace(const char *library, const char *const *names, void *const *functions, int count);
