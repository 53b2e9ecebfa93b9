// owner.h -- who owns slabs: a thread, a heap, or hak_cache_shared, which has the orphans.
//
// Owns      slabs, and the blocks that others have freed for them.
// Threads   see each field: "lock" may be touched by any thread that holds `lock`, "constant" is written before others see it.
//
// A free block of an owner is in its slab, or on its way there, in an inbox. What a thread has taken out of the slabs to have it
// ready is its cache's (cache/cache.h).
#pragma once

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/list.h"
#include "meta/map.h"
#include "meta/size_class.h"
#include "os/lock.h"
#include "owner/tag.h"
#include "slab/slab.h"

struct hak_parcel;
struct hak_loose;

// An owner's slabs of one class.
struct hak_owner_class {
    // lock: those with blocks to give. Of `slabs` the free pages may be resident; of `swept` they were given back, and those in
    // front the kernel refused. Zero until first used.
    struct hak_list slabs;
    struct hak_list swept;
    // For statistics, since the start, written with the lock: slabs that were made for the owner, and those that it gave back to
    // the arena; it may have got them from another.
    _Atomic(uint64_t) made_slabs;
    _Atomic(uint64_t) ended_slabs;
};

enum hak_owner_state {
    HAK_OWNER_LIVE, // a thread's, or a heap
    HAK_OWNER_DEAD, // its thread or heap has ended; it waits for the next one (the shared one: always)
};

// Whose blocks it has. Owners of different roles never become each other.
enum hak_owner_role {
    HAK_ROLE_HEAP,   // a heap's, the sweeper's, or the shared one
    HAK_ROLE_THREAD, // a thread's
    HAK_ROLE_REST,   // of a thread's companions (site.h) that for sites without a rule,
    HAK_ROLE_SHORT,  // for short-lived blocks,
    HAK_ROLE_LONG,   // and for long-lived ones
    HAK_OWNER_ROLES
};

enum { HAK_CLASS_WORDS = (HAK_SMALL_CLASSES + 63) / 64 }; // with a bit for each class

struct hak_owner {
    // Parcels from others, newest first.
    //   written by   any thread       hak_inbox_push   CAS, release
    //   taken by     holder of lock   hak_inbox_next   exchange, acquire
    // No ABA: nobody takes one parcel; the list is taken whole.
    _Atomic(struct hak_parcel *) inbox HAK_ALIGNED(HAK_CACHE_LINE);
    _Atomic(struct hak_loose *) loose; // as inbox: freed when there was no memory for a parcel
    _Atomic(size_t) inbox_bytes;       // in parcels; a hint
    struct hak_owner *watch_next;      // in the sweeper's list
    uint64_t seen_events;              // a sweep
    uint32_t idle_ticks;               // a sweep
    _Atomic(uint8_t) others_looks;     // a hint: how often others came by since others_events
    uint8_t sweep_hand;     // lock: the class to give pages back from next (sweep_cache.h)
    struct hak_list larges; // lock: a heap's large blocks in use

    struct hak_lock lock HAK_ALIGNED(HAK_CACHE_LINE);
    uint32_t tag;             // constant: id << 8, and bits for a heap's and a companion's (tag.h)
    _Atomic(uint32_t) state;  // enum hak_owner_state; lock
    _Atomic(bool) is_whole;   // lock: dead, and not broken up since (reclaim.h)
    uint8_t role;             // constant: enum hak_owner_role
    bool has_thread;          // constant: it is a thread's
    bool spares_all;          // constant: others may have all of its slabs (the shared one)
    _Atomic(bool) is_watched; // the sweeper looks at it (watch.h)
    _Atomic(uint64_t) events; // lock: refills, spills, looks of others; a sweep compares
    _Atomic(uint64_t) opened_parcels; // lock: for statistics, since the start, whosever it was
    struct hak_parcel *pending;       // lock: taken out of the inbox, not opened yet
    struct hak_list full;             // lock: slabs of any class without blocks to give
    uint32_t slab_count;              // lock: slabs that it owns, of all classes
    size_t returned_bytes;  // lock: that magazines gave their slabs since the last sweep, net
    size_t scattered_bytes; // lock: that came back to slabs that go on, net
    _Atomic(uint64_t) others_events; // a hint: events, when others came by (sweep_cache.c)
    // By class: it has lists of slabs; of a swept slab the kernel did not take all pages; it is among the owners with spare slabs
    // (slabs.c); it has a slab with blocks to give to spare.
    uint64_t listed[HAK_CLASS_WORDS];         // lock
    uint64_t unpurged[HAK_CLASS_WORDS];       // lock
    uint64_t counted[HAK_CLASS_WORDS];        // lock
    _Atomic(uint64_t) spare[HAK_CLASS_WORDS]; // lock; others a hint

    struct hak_owner_class classes[HAK_SMALL_CLASSES];
    // lock: the pass that takes everything (watch.h) which has come to it last, and how many looks at slabs it may still take.
    uint32_t strip;
    uint32_t strip_looks;
};

// For each class that has lists of slabs. Under the owner's lock.
#define HAK_EACH_LISTED(owner, size_class) HAK_EACH_CLASS ((owner)->listed, size_class)
#define HAK_EACH_CLASS(bits, size_class)                                   \
    for (unsigned size_class = hak_next_bit((bits), 0, HAK_SMALL_CLASSES); \
         size_class < HAK_SMALL_CLASSES;                                   \
         size_class = hak_next_bit((bits), size_class + 1, HAK_SMALL_CLASSES))

// Who owns the slab that `p` lies in, now or a moment ago; NULL when it lies in none.
HAK_INTERNAL struct hak_owner *hak_owner_of(const void *p);
// The same of a block that is being freed: dies when it lies in none.
HAK_INTERNAL struct hak_owner *hak_owner_or_end(const void *block);
// Does `owner` own the slab that `p` lies in? That cannot change while its lock is held; only then may the slab be looked up and
// touched. (The map answers: it changes under the owner's lock, and says all in one word.)
HAK_INTERNAL bool hak_owner_is(const struct hak_owner *owner, const void *p)
    HAK_REQUIRES(&owner->lock);
// Lock the owner of the slab that `p` lies in and return it. NULL when it lies in none. Who calls it
// goes on with hak_lock_is_held.
HAK_INTERNAL struct hak_owner *hak_owner_lock(const void *p);
