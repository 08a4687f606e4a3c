#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
    uint64_t first, second;
};

struct tree {
    struct node *root;
};

bool tree_reserve(size_t count);
void tree_add(struct tree *tree, uint64_t first, uint64_t second);
void tree_remove(struct tree *tree, uint64_t first, uint64_t second);
const struct pair *tree_from(const struct tree *tree, uint64_t first, uint64_t second);
const struct pair *tree_before(const struct tree *tree, uint64_t first, uint64_t second);
