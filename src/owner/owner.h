// owner.h -- an owner of slabs: a thread, a heap, or hak_cache_shared, which has the orphans.
//
// Owns      slabs, and the remote frees that wait for them.
// Threads   see each field. "lock": any thread that holds `lock`; "constant": written before other threads see it.
//
// A free block of an owner is in its slab, or in an inbox on its way there. The blocks that a thread has taken out of slabs to have
// them ready belong to its cache (cache/cache.h).
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
    // lock: slabs with blocks to give. In `slabs`, free pages may be resident; in `swept`, they were purged, except in the
    // first ones, whose purge was put off (pages.c). Zero until first used.
    struct hak_list slabs;
    struct hak_list swept;
    // For statistics, since the start, written with the lock: slabs made for the owner, and slabs that it retired, also those it
    // got from another owner.
    _Atomic(uint64_t) made_slabs;
    _Atomic(uint64_t) ended_slabs;
};

enum hak_owner_state {
    HAK_OWNER_LIVE, // it belongs to a running thread or a heap in use
    HAK_OWNER_DEAD, // its thread or heap has ended; it waits for the next (shared: always)
};

// What its blocks are for. An owner never changes its role.
enum hak_owner_role {
    HAK_ROLE_HEAP,   // a heap's, the sweeper's, or the shared one
    HAK_ROLE_THREAD, // a thread's
    HAK_ROLE_REST,   // of a thread's companions (site.h): the one for sites without a rule,
    HAK_ROLE_SHORT,  // the one for short-lived blocks,
    HAK_ROLE_LONG,   // and the one for long-lived blocks
    HAK_OWNER_ROLES
};

enum { HAK_CLASS_WORDS = (HAK_SMALL_CLASSES + 63) / 64 }; // a bit for each class

struct hak_owner {
    // Parcels from other threads, newest first.
    //   written by   any thread       hak_inbox_push   CAS, release
    //   taken by     holder of lock   hak_inbox_next   exchange, acquire
    // No ABA: nobody takes one parcel; the list is taken whole.
    _Atomic(struct hak_parcel *) inbox HAK_ALIGNED(HAK_CACHE_LINE);
    _Atomic(struct hak_loose *) loose; // as inbox: blocks freed without memory for a parcel
    _Atomic(size_t) inbox_bytes;       // bytes in parcels; a hint
    struct hak_owner *watch_next;      // link in the sweeper's lists
    uint64_t seen_events;              // used by sweeps
    uint32_t idle_ticks;               // used by sweeps
    _Atomic(uint8_t) others_looks;     // a hint: others' looks since others_events changed
    uint8_t sweep_hand;     // lock: the class whose pages are purged next (sweep_cache.h)
    struct hak_list larges; // lock: a heap's large blocks in use

    struct hak_lock lock HAK_ALIGNED(HAK_CACHE_LINE);
    uint32_t tag;             // constant: id << 8, and bits for a heap's and a companion's (tag.h)
    _Atomic(uint32_t) state;  // enum hak_owner_state; lock
    _Atomic(bool) is_whole;   // lock: dead, and not broken up since (reclaim.h)
    uint8_t role;             // constant: enum hak_owner_role
    bool has_thread;          // constant: it belongs to a thread
    bool spares_all;          // constant: others may take all of its slabs (the shared one)
    _Atomic(bool) is_watched; // the sweeper looks at it (watch.h)
    _Atomic(uint64_t) events; // lock: counts refills, spills, looks of others; sweeps compare it
    _Atomic(uint64_t) opened_parcels; // lock: a statistic: opened since the start, for any owner
    struct hak_parcel *pending;       // lock: taken out of the inbox, not opened yet
    struct hak_list full;             // lock: slabs of all classes without blocks to give
    uint32_t slab_count;              // lock: its slabs, of all classes
    size_t returned_bytes;            // lock: bytes flushed since the last sweep, minus bytes taken
    size_t scattered_bytes;          // lock: free bytes put into slabs that stay, minus bytes taken
    _Atomic(uint64_t) others_events; // a hint: `events` when another thread looked (sweep_cache.c)
    // A bit for each class: it has lists of slabs; pages of a swept slab were not purged; the owner counts among those with
    // spare slabs (slabs.c); it has a spare slab with blocks to give.
    uint64_t listed[HAK_CLASS_WORDS];         // lock
    uint64_t unpurged[HAK_CLASS_WORDS];       // lock
    uint64_t counted[HAK_CLASS_WORDS];        // lock
    _Atomic(uint64_t) spare[HAK_CLASS_WORDS]; // lock; a hint for other threads

    struct hak_owner_class classes[HAK_SMALL_CLASSES];
    // lock: the last pass that takes everything (watch.h) to visit it, and how many looks at slabs that pass may still make here.
    uint32_t strip;
    uint32_t strip_looks;
};

// For each class that has lists of slabs. The caller holds the owner's lock.
#define HAK_EACH_LISTED(owner, size_class) HAK_EACH_CLASS ((owner)->listed, size_class)
#define HAK_EACH_CLASS(bits, size_class)                                   \
    for (unsigned size_class = hak_next_bit((bits), 0, HAK_SMALL_CLASSES); \
         size_class < HAK_SMALL_CLASSES;                                   \
         size_class = hak_next_bit((bits), size_class + 1, HAK_SMALL_CLASSES))

// The owner, now or a moment ago, of the slab that contains `p`; NULL if there is no such slab.
HAK_INTERNAL struct hak_owner *hak_owner_of(const void *p);
// The same for a block that is being freed; ends the program if there is no such slab.
HAK_INTERNAL struct hak_owner *hak_owner_or_end(const void *block);
// Does `owner` own the slab that contains `p`? That cannot change while its lock is held; only then may the slab be looked up
// and touched. (The map answers, since its entries change only under the owner's lock, and a single word holds the answer.)
HAK_INTERNAL bool hak_owner_is(const struct hak_owner *owner, const void *p)
    HAK_REQUIRES(&owner->lock);
// Lock the owner of the slab that contains `p`, and return it. NULL if there is no such slab. The
// caller continues with hak_lock_is_held.
HAK_INTERNAL struct hak_owner *hak_owner_lock(const void *p);
