// held.h -- the blocks that a test of magazines holds, in the order in which they were allocated.
#ifndef HAK_TESTS_UNIT_HELD_H
#define HAK_TESTS_UNIT_HELD_H

#include "../census.h"
#include "cache/cache.h"

enum { HELD_MOST = 20000 };

static void *held_blocks[HELD_MOST];
static size_t held_count;

static inline void take(unsigned size_class, size_t count)
{
    for (; count > 0; count--) {
        held_blocks[held_count] = alloc(size_class);
        UNIT_CHECK(held_blocks[held_count] != NULL);
        held_count++;
    }
}

static inline void free_newest(size_t count)
{
    for (; count > 0; count--) {
        give(held_blocks[--held_count]);
    }
}

static inline void free_oldest(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        give(held_blocks[i]);
    }
    held_count -= count;
    memmove(held_blocks, held_blocks + count, held_count * sizeof held_blocks[0]);
}

static inline struct hak_magazine *magazine(unsigned size_class)
{
    return &hak_cache_self->magazines[size_class];
}

#endif
