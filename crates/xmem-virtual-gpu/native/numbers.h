// Arithmetic of sizes.
#pragma once
#include <stddef.h>

static inline size_t round_up(size_t size, size_t step) { return (size + step - 1) / step * step; }
// Pieces of so many that hold `n`.
static inline size_t blocks_of(size_t n, size_t block) { return (n + block - 1) / block; }
static inline size_t most(size_t a, size_t b) { return a > b ? a : b; }
