// cache.h -- what a thread keeps ready: free blocks of its own slabs, and those that it has freed for others.
//
// Owns      magazines, parcels that are being filled, and freed large blocks.
// Threads   see each field. "thread" is the one whose hak_cache_self points here; everything marked "lock" may be touched by any
//           thread that holds the lock of the cache's owner.
//
// The slabs that it is filled from are its owner's (owner/owner.h), which every cache has within it. Both
// outlive their thread: they go to the next one that starts, or, when that takes too long,
// the slabs to whoever needs them (reclaim.h). First-class heaps are caches without a thread.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/list.h"
#include "cache/growth.h"
#include "meta/size_class.h"
#include "os/life.h"
#include "owner/owner.h"
#include "owner/place.h"

// A magazine is an array of free blocks with NULL below the lowest and HAK_FULL
// above the highest place, so that one compare tells "empty" or "full":
//
//   base[0]  base[1] … base[slots]  base[slots + 1]                     slots = 2^places_log2 - 2
//   NULL     blocks, from the left  HAK_FULL
//
// top[class] points at the first place without a block. All empty magazines of a
// new cache share `hak_nothing`, which is empty and full at once.
#define HAK_FULL ((void *)1)

HAK_INTERNAL extern hak_place hak_nothing[2];

// The top of a class's magazine is at the class's number, or, while the cache samples, HAK_APART further on (sampler.h).
enum { HAK_APART = HAK_SMALL_CLASSES, HAK_TOPS = 2 * HAK_SMALL_CLASSES };

// What has passed between a magazine and the rest, in batches. Blocks that a magazine gives and
// takes are counted only while the cache samples: that would cost the fast paths.
struct hak_class_counts {
    _Atomic(uint64_t) refills;         // times that the magazine was empty
    _Atomic(uint64_t) refilled_blocks; // that it got then
    _Atomic(uint64_t) returned_blocks; // that others sent back, a parcel counted as its first block
    _Atomic(uint64_t) spills;          // times that it was full and did not grow
    _Atomic(uint64_t) spilled_blocks;  // that it gave away, also when it was emptied unasked
    // Of what was handed out while the cache sampled (hak_sampler_counted).
    _Atomic(uint64_t) drawn;  // blocks to all samples that were drawn, the next one included
    _Atomic(uint64_t) misses; // blocks that malloc's fast ways did not have, and samples
};

struct hak_magazine {
    hak_place *base; // lock; NULL until the class is first used
    uint32_t bottom; // lock: place of the NULL below the lowest block; 0 unless stolen from
    uint32_t fence;  // lock: place where a thief put a NULL, not yet judged (steal.c); 0: none
    uint8_t idle_looks : 2; // lock: looks of a thief's at an unused magazine, up to 3 (steal.c)
    bool has_swung : 1;    // lock: refills followed flushes, or the reverse, an odd number of times
    bool is_used : 1;      // lock: had a slow event since somebody last looked
    bool is_refilled : 1;  // lock: its thread allocates blocks of this class
    bool flushed_last : 1; // lock: the last slow event was a flush
    uint8_t in_a_row : 2;  // lock: so many before it were of the same kind, up to 3
    // thread, with the lock to write: the class is served by companions (site.h). A byte of its own: others write
    // those above.
    bool is_ruled;
    uint8_t places_log2;      // lock: of the array; 0: there is none
    uint16_t seen_place;      // lock: of the top when a thief last looked, its lower bits
    uint16_t tidied_place;    // lock: the same when it was last tidied
    void *fenced;             // lock: what lay at the fence
    struct hak_growth growth; // lock: of the last question whether to grow
    // For statistics, since the start, whosever the cache was. hak_rest moves them to hak_cache_shared.
    struct hak_class_counts counts;
};

// So many other owners, or groups of them, does one thread free for at the same time.
enum { HAK_OUTBOXES = 32, HAK_OUTBOX_MIXED = 1 };
struct hak_outbox {
    uint32_t tag;  // lock, thread: whose blocks; HAK_OUTBOX_MIXED: those of several owners
    uint32_t kept; // thread: blocks that stayed here instead (hak_remote_keep)
    struct hak_parcel *parcel; // lock, thread
};

// A freed large block that is kept for the next request of its size. Put by the thread into an empty
// place, taken by anybody with an exchange.
struct hak_hot {
    hak_place block;          // NULL: none; HAK_FULL: a cache that keeps nothing
    _Atomic(uint32_t) tick;   // thread: when it was put there
    uint32_t bin;             // thread: of the block that is or was there
    _Atomic(uint32_t) *entry; // thread: its place in the map
} HAK_ALIGNED(32);

struct hak_hardened;

// What it has passed to other owners, and got from them.
struct hak_cache_counts {
    _Atomic(uint64_t) sent_parcels;
    _Atomic(uint64_t) sent_blocks;
    _Atomic(uint64_t) adopted_slabs; // of threads that have ended
};

enum { HAK_COMPANIONS = HAK_OWNER_ROLES - HAK_ROLE_REST };

enum { HAK_FREES_ASKED = 2 };

struct hak_cache {
    _Atomic(hak_place *) top[HAK_TOPS]; // thread writes; a thief reads
    // What free subtracts from an entry to get the number of a top: the owner's tag, or HAK_APART less. Whoever wants
    // the cache to sample sets it; the thread sets it right in its next slow path (sampler.h).
    _Atomic(uint32_t) hit_tag;
    uint32_t apart; // thread, with the lock to write: where its tops are, 0 or HAK_APART
    // thread; others read it. While it samples: blocks that are handed out of each class until the next sample, that one
    // included.
    _Atomic(uint64_t) gaps[HAK_SMALL_CLASSES];
    // thread: the same of the large blocks that BigCache hands out, counted down always; from 0 if it does not sample.
    uint64_t large_gaps[HAK_LARGE_BINS];
    uint64_t unguarded;                 // thread: requests since one got a guard (guard.h)
    struct hak_hot hot[HAK_HOT_PLACES]; // BigCache: one for each doubling to 4 MiB
    struct hak_outbox outboxes[HAK_OUTBOXES];
    struct hak_parcel *spare_parcel;   // lock: the first of the empty ones (parcels.h)
    uint32_t spare_count;              // lock: so many
    struct hak_sampling *sampling;     // lock; NULL until it first samples
    uint64_t started[HAK_CLASS_WORDS]; // lock: a bit for each class whose magazine has an array
    size_t magazine_bytes;  // lock: of blocks that magazines may hold beyond the smallest
    size_t counted_bytes;   // lock: of them, those that count in the budget of all
    size_t tidied_at;       // lock: bytes of all slabs when it was last tidied, or fewest since
    unsigned magazine_hand; // lock: the class to look at next when one has to shrink
    // lock: blocks allocated and freed without a magazine, of all classes and of each (seldom.h).
    uint32_t seldom_calls;
    uint8_t seldom_of_class[HAK_SMALL_CLASSES];
    // For statistics, since the start, whosever the cache was. Written with the lock, read by anybody.
    struct hak_cache_counts counts;
    // thread: large blocks that were asked for and that BigCache did not have, by bin; the last: above all bins. Nobody reads
    // those of hak_cache_shared, which several threads may write at a time.
    _Atomic(uint64_t) large_counts[HAK_LARGE_BINS + 1];

    bool is_direct; // keeps no magazines (option check)
    // thread: 1 if it is_direct, or has companions; HAK_FREES_ASKED from whoever wants it to look at the options in its
    // thread's next free of whatever size (sampler.h).
    _Atomic(uint8_t) frees_apart;
    bool keeps_elsewhere; // thread: a companion has its BigCache (site.h)
    bool is_helping; // thread, lock: at work on another owner's inbox, or its outboxes (remote.c)
    _Atomic(bool) is_asleep; // set by the sweeper: see watch.h; cleared by the thread
    _Atomic(bool) is_inside; // thread: at work on `hardened` (hardened.h)
    // NULL until first used, with the lock; and while somebody else empties it.
    _Atomic(struct hak_hardened *) hardened;
    struct hak_cache *companions[HAK_COMPANIONS]; // thread: by role, from HAK_ROLE_REST on
    struct hak_cache *next;                       // constant: in the list of all caches
    struct hak_list dead_link;                    // registry lock
    struct hak_cache *asked_next;                 // lock: whom to ask next for a slab (reclaim.h)
    _Atomic(int) thread_id; // thread: the kernel's number of the thread that had it last
    uint32_t exit_rounds;   // thread, while it ends
    uint64_t exit_events;   // thread, while it ends: events at the last round
    // Of the cache's thread. It lies near the owner's lock: the child of a fork writes to both in each cache, and has one page
    // to copy.
    struct hak_life life;

    // From the owner's classes on: pages that a dead cache without slabs gives back (rest.h).
    struct hak_owner owner;
    struct hak_magazine magazines[HAK_SMALL_CLASSES];
};
_Static_assert(HAK_CONTENTION || sizeof(struct hak_cache) <= HAK_KIB(14),
               "each thread pays for it");
_Static_assert(HAK_CONTENTION || offsetof(struct hak_cache, owner.classes) <= 4096,
               "a dead one pays for one page");

// The cache that an owner is of.
HAK_INLINE struct hak_cache *hak_cache_of(struct hak_owner *owner)
{
    return HAK_LIST_ITEM(owner, struct hak_cache, owner);
}

// For each class whose magazine has an array. Under the lock.
#define HAK_EACH_MAGAZINE(cache, size_class) HAK_EACH_CLASS ((cache)->started, size_class)

// The number of the class's top. The thread or the lock.
HAK_INLINE unsigned hak_cache_top_number(const struct hak_cache *cache, unsigned size_class)
{
    return cache->apart + size_class;
}

// The top itself, for slow paths: likewise.
HAK_INLINE hak_place *hak_cache_top(const struct hak_cache *cache, unsigned size_class)
{
    return hak_load_relaxed(&cache->top[hak_cache_top_number(cache, size_class)]);
}

// How many blocks the magazine can hold.
HAK_INLINE uint32_t hak_cache_magazine_slots(const struct hak_magazine *magazine)
{
    return magazine->base != NULL ? (1U << magazine->places_log2) - 2 : 0;
}

// Where it is in the array, for one that has one.
HAK_INLINE uint32_t hak_cache_place(const struct hak_cache *cache, unsigned size_class)
{
    return (uint32_t)(hak_cache_top(cache, size_class) - cache->magazines[size_class].base);
}

HAK_INLINE void hak_cache_set_top(struct hak_cache *cache, unsigned size_class, hak_place *top)
{
    hak_store_relaxed(&cache->top[hak_cache_top_number(cache, size_class)], top);
}

// Which of two groups it belongs to while an option is on trial (base/variants.h): by turns.
HAK_INLINE unsigned hak_cache_group(const struct hak_cache *cache)
{
    return cache->owner.tag >> 8 & 1;
}

// hit_tag of a cache that is asleep: free finds no magazine with it. No unit has that owner.
#define HAK_TAG_ASLEEP 0x7FFFFF00U

// The calling thread's cache. Never NULL: until a thread's first slow path it
// points at `hak_cache_nobody`, whose magazines are all empty and full.
HAK_INTERNAL extern HAK_TLS struct hak_cache *hak_cache_self;
// The same for the C++ operators; `hak_cache_nobody` for good, so that they take their slow paths, in a program that has
// operators of its own (front/replaced.h).
HAK_INTERNAL extern HAK_TLS struct hak_cache *hak_cache_operators;
HAK_INTERNAL void hak_cache_set_operators_apart(void);
// From here on that is the calling thread's cache.
HAK_INTERNAL void hak_cache_become(struct hak_cache *cache);
HAK_INTERNAL extern struct hak_cache hak_cache_nobody; // before the first slow path
// Shared by all threads, each call with its lock, whose rank is "shared": behind every other cache's. It serves threads whose cache
// has ended and those for which there is no memory for one, and owns the orphans: slabs of caches that were broken up (reclaim.h).
HAK_INTERNAL extern struct hak_cache hak_cache_shared;
