// seldom.h -- what a thread seldom asks for has no magazine.
//
// Threads   who holds the cache's lock.
// Fails     never.
//
// A block in a magazine keeps its slab from ending, and of a thread that sleeps one block of each class cannot be taken
// (steal.h): a page for each class that the thread ever had a block of. So a thread begins without magazines: blocks come
// straight from a slab and go straight back, and a slab that has all of its blocks ends at once, for whoever needs memory
// next. A class gets its magazine when it was asked for so many times, and any class when all of them together were,
// since the thread began or woke. So what it holds while it sleeps depends on what it did since it last slept
// (docs/decisions/0032).
//
// The process's first thread has magazines from the beginning, as it is only one, and all that a short program has. So
// has a heap, whose magazines spare it work with its slabs, and no lock.
#pragma once

#include "cache/cache.h"

// Blocks allocated and freed, of a class and of all: so 200 blocks allocated and freed leave eight magazines at most.
enum { HAK_SELDOM_OF_CLASS = 48, HAK_SELDOM_OF_ALL = 416 };

// Is nothing ever seldom in this cache?
HAK_INLINE bool hak_seldom_is_never(const struct hak_cache *cache)
{
    return !cache->owner.has_thread || cache->owner.tag >> 8 == 1;
}

// From now on nothing is, until the thread has slept.
HAK_INLINE void hak_seldom_end(struct hak_cache *cache)
{
    cache->seldom_calls = HAK_SELDOM_OF_ALL;
}

// A block of a class without a magazine is allocated or freed. False when it is time for the magazine.
HAK_INLINE bool hak_seldom_asked(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    uint8_t *of_class = &cache->seldom_of_class[size_class];
    if (*of_class == HAK_SELDOM_OF_CLASS || cache->seldom_calls == HAK_SELDOM_OF_ALL) {
        return false;
    }
    ++*of_class;
    cache->seldom_calls++;
    return true;
}
