// Ordered pairs of numbers: a search tree that is kept shallow by random priorities (Seidel and Aragon's treap).
#include "tree.h"

#include <stdlib.h>

enum { CHUNK = 256 };

struct node {
    struct pair pair;
    struct node *low, *high;
    uint32_t priority;
};

// Nodes that no tree uses.
static struct node *spare;
static size_t spare_count;

static uint32_t random_priority(void) {
    static uint32_t state = 2463534242;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static bool is_less(struct pair one, struct pair other) {
    return one.first < other.first || (one.first == other.first && one.second < other.second);
}

// Makes room for `count` pairs more in any tree. Returns false if there is no memory.
bool tree_reserve(size_t count) {
    while (spare_count < count) {
        struct node *nodes = malloc(CHUNK * sizeof *nodes);
        if (!nodes)
            return false;
        for (size_t at = 0; at < CHUNK; at++) {
            nodes[at].low = spare;
            spare = &nodes[at];
        }
        spare_count += CHUNK;
    }
    return true;
}

// Adds a pair for which there is room (`tree_reserve`).
void tree_add(struct tree *tree, uint64_t first, uint64_t second) {
    struct node *added = spare;
    spare = added->low;
    spare_count--;
    *added = (struct node){.pair = {first, second}, .priority = random_priority()};
    struct node **link = &tree->root;
    while (*link && (*link)->priority >= added->priority)
        link = is_less((*link)->pair, added->pair) ? &(*link)->high : &(*link)->low;
    // What is below the new node goes to its sides.
    struct node *rest = *link, **low = &added->low, **high = &added->high;
    *link = added;
    while (rest)
        if (is_less(rest->pair, added->pair)) {
            *low = rest;
            low = &rest->high;
            rest = *low;
        } else {
            *high = rest;
            high = &rest->low;
            rest = *high;
        }
    *low = *high = NULL;
}

// Removes a pair if it is there, and leaves room for another one.
void tree_remove(struct tree *tree, uint64_t first, uint64_t second) {
    struct pair pair = {first, second};
    struct node **link = &tree->root;
    while (*link && ((*link)->pair.first != first || (*link)->pair.second != second))
        link = is_less((*link)->pair, pair) ? &(*link)->high : &(*link)->low;
    struct node *removed = *link;
    if (!removed)
        return;
    struct node *low = removed->low, *high = removed->high;
    while (low && high)
        if (low->priority > high->priority) {
            *link = low;
            link = &low->high;
            low = *link;
        } else {
            *link = high;
            link = &high->low;
            high = *link;
        }
    *link = low ? low : high;
    removed->low = spare;
    spare = removed;
    spare_count++;
}

// The least pair that is not less than this one; null if there is none.
const struct pair *tree_from(const struct tree *tree, uint64_t first, uint64_t second) {
    const struct pair *found = NULL;
    for (const struct node *node = tree->root; node;)
        if (is_less(node->pair, (struct pair){first, second})) {
            node = node->high;
        } else {
            found = &node->pair;
            node = node->low;
        }
    return found;
}

// The greatest pair that is less than this one; null if there is none.
const struct pair *tree_before(const struct tree *tree, uint64_t first, uint64_t second) {
    const struct pair *found = NULL;
    for (const struct node *node = tree->root; node;)
        if (is_less(node->pair, (struct pair){first, second})) {
            found = &node->pair;
            node = node->high;
        } else {
            node = node->low;
        }
    return found;
}
