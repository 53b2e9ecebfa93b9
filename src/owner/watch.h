// watch.h -- the owners whose caches the sweeper visits: those in use, and those with something to give back.
//
// Owns      hak_watch.
// Threads   see each function.
// Fails     never.
//
// A new owner is watched. One that is not in use and has nothing left to give back is no longer watched, so a
// tick costs nothing for caches that sleep or are dead, however many they are (docs/decisions/0029). Three things have an
// owner watched again (hak_watch_note): a slab that gets blocks back, an inbox that gets a parcel, and the owner's thread.
// The fast paths cannot report anything. So the cache of an owner that is not watched is asleep: its hit_tag sends each free
// to the slow path, as in a sampling cache (sampler.h), and the slow path wakes it (hak_sweeper_follow). Blocks that the
// thread takes from its magazines need no sweeper.
#pragma once

#include "owner/owner.h"

struct hak_watch {
    struct hak_lock lock;        // rank "sweep": one sweep at a time
    struct hak_owner *watched;   // lock: linked by watch_next
    struct hak_owner *unvisited; // lock: owners that the present pass has not visited yet
    struct hak_owner *put_off;   // lock: owners that a pass which takes everything visits once more
    unsigned strips;             // lock: passes that take everything, begun and not ended
    unsigned first_strips;       // lock: those of them that also visit caches in use
    uint32_t strip;              // lock: number of the latest such pass
    // Owners that are to be watched, newest first.
    //   written by   any thread       hak_watch_add    CAS, release
    //   taken by     holder of lock   hak_watch_all    exchange, acquire
    // No ABA: the list is taken whole.
    _Atomic(struct hak_owner *) noted;
    _Atomic(uint32_t) count; // number of watched and noted owners
};
HAK_INTERNAL extern struct hak_watch hak_watch;

// Have an owner watched: it has something that may have to be given back. Any thread.
HAK_INTERNAL void hak_watch_add(struct hak_owner *owner);
HAK_INLINE void hak_watch_note(struct hak_owner *owner)
{
    if (HAK_UNLIKELY(!hak_load_relaxed(&owner->is_watched))) {
        hak_watch_add(owner);
    }
}

// All watched owners, with those noted since. The caller may take the list apart, and puts the owners back one by one
// with hak_watch_put.
HAK_INTERNAL struct hak_owner *hak_watch_all(void) HAK_REQUIRES(&hak_watch.lock);
HAK_INTERNAL void hak_watch_put(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock);
// The pass that takes everything visits the owner once more.
HAK_INTERNAL void hak_watch_put_off(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock);

// After fork, in the child: a thread of the parent may have been adding an owner to a list. So all lists become empty,
// and each cache is noted again.
HAK_INTERNAL void hak_watch_none_locked(void) HAK_REQUIRES(&hak_watch.lock);
HAK_INTERNAL void hak_watch_again(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock);
