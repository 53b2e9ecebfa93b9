// steal.h -- taking blocks out of the magazine of a thread that sleeps.
//
// Threads   all with the cache's lock. hak_steal_fenced, hak_steal_unfence: the thread, or any if it has ended. The others: any.
//
// The fast paths take no lock and announce nothing, so a thief cannot know what the
// thread is doing. But it can find out what the thread cannot have done:
//
//   1. The thief reads top, chooses the place m two below it and swaps NULL into it.
//   2. A membarrier: every store the thread made before is visible, and every load
//      it makes from here on sees the NULL (or what the thread itself put over it).
//   3. The thief reads top and place m again.
//        place m is not NULL    the thread was there: nothing is stolen.
//        top <= m               the thread was below m when the NULL went in, and may have put
//                               the block there that the NULL replaced, but not raised top
//                               yet: undecided. The block waits in `fenced`.
//        top == m + 1           the thread may hold m's block in a register and not have
//                               lowered top yet: undecided.
//        top >= m + 2           whatever the thread is in the middle of, it is above m. Below
//                               it will see an empty magazine and come to the slow path, for
//                               which it needs the lock. Everything up to and including m is
//                               the thief's.
//   A thread that meets the NULL of an undecided fence finds the block in `fenced`.
//
// One block of each class stays. The kernel's membarrier costs the thief a few
// microseconds, and the thread nothing unless it runs at that moment.
#pragma once

#include "cache/cache.h"

// Take all but one block from every magazine of `cache` whose class is not in use (or,
// with `all`, from every one) and put them into their slabs. `self`: the caller's cache, also locked,
// whose outboxes get the blocks of other owners. True: no magazine is in use, and nothing is left to take.
HAK_INTERNAL bool hak_steal_magazines(struct hak_cache *self, struct hak_cache *cache, bool all)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock);

// Would hak_steal_magazines with `all` take nothing from this magazine?
HAK_INTERNAL bool hak_steal_has_taken_all(const struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock);

// Note where the tops are now, as a thief's look does.
HAK_INTERNAL void hak_steal_note_tops(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock);

// The magazine looks empty to its thread: the block behind an undecided fence, or NULL.
HAK_INTERNAL void *hak_steal_fenced(struct hak_cache *cache, unsigned size_class);
// The thread is about to move the magazine's blocks: remove an undecided fence.
HAK_INTERNAL void hak_steal_unfence(struct hak_cache *cache, unsigned size_class);
