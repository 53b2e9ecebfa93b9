// seldom.h -- a size class that a thread seldom uses has no magazine.
//
// Threads   the holder of the cache's lock.
// Fails     never.
//
// A block in a magazine keeps its slab from being retired, and a thief has to leave one block of each class to a sleeping
// thread (steal.h): a page for each class that the thread ever used. So a thread starts without magazines: blocks come
// straight from a slab and go straight back, and a slab is retired as soon as it has all of its blocks. A class gets
// a magazine after HAK_SELDOM_OF_CLASS calls of malloc and free for it, or after HAK_SELDOM_OF_ALL for all classes, since
// the thread started or woke. So what a sleeping thread holds depends on what it did since it last slept
// (docs/decisions/0032).
//
// The process's first thread has magazines from the beginning: it is only one, and a short program has no other. So has a
// heap: its magazines save work with its slabs, though not the lock.
#pragma once

#include "cache/cache.h"

// Calls of malloc and free, for a class and for all: 200 blocks allocated and freed leave eight magazines at most.
enum { HAK_SELDOM_OF_CLASS = 48, HAK_SELDOM_OF_ALL = 416 };

// Does each class of this cache get a magazine with its first call?
HAK_INLINE bool hak_seldom_is_never(const struct hak_cache *cache)
{
    return !cache->owner.has_thread || cache->owner.tag >> 8 == 1;
}

// Each class gets a magazine with its next call, until the thread has slept.
HAK_INLINE void hak_seldom_end(struct hak_cache *cache)
{
    cache->seldom_calls = HAK_SELDOM_OF_ALL;
}

// Count a call for a class without a magazine. False: the class shall have one now.
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
