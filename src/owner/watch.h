// watch.h -- which owners, with their caches, the sweeper looks at: those that are in use or have something to give.
//
// Owns      hak_watch.
// Threads   see each function.
// Fails     never.
//
// An owner is watched from its making on. One that is not in use and has nothing left to give is watched no more, so a
// tick costs nothing for those that sleep or have ended, however many they are (docs/decisions/0029). Whoever puts
// something there watches it again: a slab that gets blocks back, an inbox that gets a parcel (hak_watch_note), and its
// thread. Its thread's fast paths cannot report anything. So the cache of an owner that is not watched is asleep: its hit_tag
// sends each free to the slow path, as a sampling cache's does (sampler.h), and the slow paths wake it (hak_sweeper_follow).
// What its thread takes from its magazines needs nobody.
#pragma once

#include "owner/owner.h"

struct hak_watch {
    struct hak_lock lock;        // rank "sweep": one sweep at a time
    struct hak_owner *watched;   // lock: linked by watch_next
    struct hak_owner *unvisited; // lock: what the present pass has not come to
    struct hak_owner *put_off;   // lock: what a pass that takes everything comes to once more
    unsigned strips;             // lock: passes that take everything, and may be in the middle
    unsigned first_strips; // lock: those of them that are not done with only what others leave
    uint32_t strip;        // lock: the number of the latest of these
    // Those that are to be watched, newest first.
    //   written by   any thread       hak_watch_add    CAS, release
    //   taken by     holder of lock   hak_watch_all    exchange, acquire
    // No ABA: the list is taken whole.
    _Atomic(struct hak_owner *) noted;
    _Atomic(uint32_t) count; // of all that are watched or noted
};
HAK_INTERNAL extern struct hak_watch hak_watch;

// There is something that may have to go back. Any thread.
HAK_INTERNAL void hak_watch_add(struct hak_owner *owner);
HAK_INLINE void hak_watch_note(struct hak_owner *owner)
{
    if (HAK_UNLIKELY(!hak_load_relaxed(&owner->is_watched))) {
        hak_watch_add(owner);
    }
}

// All that are watched, also those that were noted since. Who walks the list may take it out, and puts back one after the
// other by hak_watch_put.
HAK_INTERNAL struct hak_owner *hak_watch_all(void) HAK_REQUIRES(&hak_watch.lock);
HAK_INTERNAL void hak_watch_put(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock);
// The pass that takes everything comes to it once more.
HAK_INTERNAL void hak_watch_put_off(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock);

// After fork, in the child: a thread of the parent's may have been about to put a cache into the list. So all lists are
// empty, and each cache is noted again.
HAK_INTERNAL void hak_watch_none_locked(void) HAK_REQUIRES(&hak_watch.lock);
HAK_INTERNAL void hak_watch_again(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock);
