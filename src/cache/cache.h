// cache.h -- one thread's blocks.
//
// Layer     cache (may include: base, os, meta, slab)
// Owns      magazines, the slabs they are filled from, blocks on their way to other
//           owners (parcels), and freed large blocks.
// Threads   see each field. "owner" is the thread whose hak_cache_self points here;
//           everything marked "lock" may be touched by any thread that holds `lock`.
//
// A cache outlives its thread: it goes to the next one that starts, or, when that takes too long,
// its slabs to whoever needs them (reclaim.h). First-class heaps are caches without a thread.
#ifndef HAK_CACHE_CACHE_H
#define HAK_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/list.h"
#include "cache/growth.h"
#include "meta/map.h"
#include "meta/size_class.h"
#include "os/life.h"
#include "os/lock.h"
#include "slab/slab.h"

// A magazine is an array of free blocks with NULL below the lowest and HAK_FULL
// above the highest place, so that one compare tells "empty" or "full":
//
//   base[0]  base[1] … base[slots]  base[slots + 1]                     slots = 2^places_log2 - 2
//   NULL     blocks, from the left  HAK_FULL
//
// top[class] points at the first place without a block. All empty magazines of a
// new cache share `hak_nothing`, which is empty and full at once.
typedef _Atomic(void *) hak_place;
#define HAK_FULL ((void *)1)

HAK_INTERNAL extern hak_place hak_nothing[2];

// The top of a class's magazine is at the class's number, or, while the cache samples, HAK_APART further on (sampler.h).
enum { HAK_APART = HAK_SMALL_CLASSES, HAK_TOPS = 2 * HAK_SMALL_CLASSES };

struct hak_magazine {
    hak_place *base; // lock; NULL until the class is first used
    uint32_t bottom; // lock: place of the NULL below the lowest block; 0 unless stolen from
    uint32_t fence;  // lock: place where a thief put a NULL, not yet judged (steal.c); 0: none
    // lock: slabs of this class with blocks to give: those whose free pages may be there, and those whose free pages
    // were given back, of which the ones that the kernel did not take lie in front. Zero until first used.
    struct hak_list slabs;
    struct hak_list swept;
    uint8_t idle_looks : 2; // lock: looks of a thief's at an unused magazine, up to 3 (steal.c)
    bool has_swung : 1;    // lock: refills followed flushes, or the reverse, an odd number of times
    bool is_used : 1;      // lock: had a slow event since somebody last looked
    bool is_refilled : 1;  // lock: its thread allocates blocks of this class
    bool flushed_last : 1; // lock: the last slow event was a flush
    bool has_unpurged : 1; // lock: of a swept slab the kernel did not take all pages
    bool is_counted : 1;   // lock: among the caches with spare slabs (slabs.c)
    _Atomic(bool) has_spare; // lock; others a hint: it has a slab with blocks to give to spare
    // Owner, with the lock to write: the class is served by companions (site.h). A byte of its own: others write
    // those above.
    bool is_ruled;
    uint8_t places_log2;      // lock: of the array; 0: there is none
    uint16_t seen_place;      // lock: of the top when a thief last looked, its lower bits
    uint16_t tidied_place;    // lock: the same when it was last tidied
    void *fenced;             // lock: what lay at the fence
    struct hak_growth growth; // lock: of the last question whether to grow
};

// Blocks freed for another owner. Filled by one thread, then handed over whole.
enum { HAK_PARCEL_BLOCKS = 61 }; // with its header 512 bytes
struct hak_parcel {
    struct hak_parcel *next;
    _Atomic(uint32_t) count;             // owner of the outbox; a sweep reads it
    uint32_t bytes;                      // owner of the outbox
    hak_place blocks[HAK_PARCEL_BLOCKS]; // NULL where a sweep took one out
};

struct hak_loose {
    struct hak_loose *next;
};

enum {
    HAK_OUTBOXES = 32
}; // other owners that one thread frees for at the same time, or groups of them
enum { HAK_OUTBOX_MIXED = 1 };
struct hak_outbox {
    uint32_t tag; // lock, owner: whose blocks; HAK_OUTBOX_MIXED: those of several owners
    struct hak_parcel *parcel; // lock, owner
};

// A freed large block that is kept for the next request of its size. Put by the owner into an empty
// place, taken by anybody with an exchange.
struct hak_hot {
    hak_place block;          // NULL: none; HAK_FULL: a cache that keeps nothing
    _Atomic(uint32_t) tick;   // owner: when it was put there
    uint32_t bin;             // owner: of the block that is or was there
    _Atomic(uint32_t) *entry; // owner: its place in the map
} HAK_ALIGNED(32);

struct hak_hardened;

// What has passed between a magazine and the rest, in batches. Blocks that a magazine gives and
// takes are counted only while the cache samples: that would cost the fast paths.
struct hak_class_counts {
    _Atomic(uint64_t) refills;         // times that the magazine was empty
    _Atomic(uint64_t) refilled_blocks; // that it got then
    _Atomic(uint64_t) returned_blocks; // that others sent back, a parcel counted as its first block
    _Atomic(uint64_t) spills;          // times that it was full and did not grow
    _Atomic(uint64_t) spilled_blocks;  // that it gave away, also when it was emptied unasked
    // Slabs that were made for the cache, and those that it gave back to the arena: it may have got them from another.
    _Atomic(uint64_t) made_slabs;
    _Atomic(uint64_t) ended_slabs;
    // Of what was handed out while the cache sampled (hak_sampler_counted).
    _Atomic(uint64_t) drawn;  // blocks to all samples that were drawn, the next one included
    _Atomic(uint64_t) misses; // blocks that malloc's fast ways did not have, and samples
};

// What it and other caches have passed to each other.
struct hak_cache_counts {
    _Atomic(uint64_t) sent_parcels;
    _Atomic(uint64_t) sent_blocks;
    _Atomic(uint64_t) opened_parcels;
    _Atomic(uint64_t) adopted_slabs; // of threads that have ended
};

enum hak_cache_state {
    HAK_CACHE_LIVE, // a thread's, or a heap
    HAK_CACHE_DEAD, // its thread has ended; it waits for the next one (the shared cache: always)
};

// Whose blocks it has. Caches of different roles never become each other.
enum hak_cache_role {
    HAK_ROLE_HEAP,   // a heap's, or the sweeper's
    HAK_ROLE_THREAD, // a thread's
    HAK_ROLE_REST,   // of a thread's companions (site.h) that for sites without a rule,
    HAK_ROLE_SHORT,  // for short-lived blocks,
    HAK_ROLE_LONG,   // and for long-lived ones
    HAK_CACHE_ROLES
};
enum { HAK_COMPANIONS = HAK_CACHE_ROLES - HAK_ROLE_REST };

enum { HAK_FREES_ASKED = 2 };

struct hak_cache {
    _Atomic(hak_place *) top[HAK_TOPS]; // owner writes; a thief reads
    // What free subtracts from an entry to get the number of a top: tag, or HAK_APART less. Whoever wants
    // the cache to sample sets it; the owner sets it right in its next slow path (sampler.h).
    _Atomic(uint32_t) hit_tag;
    uint32_t tag; // constant: id << 8, and HAK_TAG_HEAP for one that is no thread's
    // owner; others read it. While it samples: blocks that are handed out of each class until the next sample, that one
    // included.
    _Atomic(uint64_t) gaps[HAK_SMALL_CLASSES];
    // owner: the same of the large blocks that BigCache hands out, counted down always; from 0 if it does not sample.
    uint64_t large_gaps[HAK_LARGE_BINS];
    bool is_direct; // keeps no magazines (option check)
    // owner: 1 if it is_direct, or has companions; HAK_FREES_ASKED from whoever wants it to look at the options in its
    // thread's next free of whatever size (sampler.h).
    _Atomic(uint8_t) frees_apart;
    bool has_thread;      // constant: not a heap's, not the sweeper's
    bool keeps_elsewhere; // owner: a companion has its BigCache (site.h)
    bool
        is_helping; // owner, lock: it is at work on another owner's inbox, or on its outboxes (inbox.c)
    _Atomic(bool) is_asleep; // set by the sweeper: see watch.h; cleared by the owner
    uint8_t role;            // constant: enum hak_cache_role
    _Atomic(bool) is_inside; // owner: at work on `hardened` (hardened.h)
    // NULL until first used, with the lock; and while somebody else empties it.
    _Atomic(struct hak_hardened *) hardened;
    struct hak_cache *companions[HAK_COMPANIONS]; // owner: by role, from HAK_ROLE_REST on

    struct hak_lock lock HAK_ALIGNED(HAK_CACHE_LINE);
    _Atomic(uint32_t) state; // enum hak_cache_state; lock
    _Atomic(bool) is_whole;  // lock: dead, and not broken up since (reclaim.h)
    struct hak_outbox outboxes[HAK_OUTBOXES];
    struct hak_parcel *spare_parcel; // lock: the first of the empty ones (parcels.h)
    uint32_t spare_count;            // lock: so many
    struct hak_parcel *pending;      // lock: taken out of the inbox, not opened yet
    _Atomic(uint64_t) events;        // lock: slow paths entered; a sweep compares
    uint64_t seen_events;            // a sweep
    _Atomic(bool) is_watched;        // the sweeper looks at it (watch.h)
    struct hak_cache *watch_next;    // in the sweeper's list
    uint32_t idle_ticks;             // a sweep
    uint32_t exit_rounds;            // owner, while its thread ends
    uint64_t exit_events;            // owner, while its thread ends: events at the last round
    struct hak_cache *next;          // constant: in the list of all caches
    struct hak_list dead_link;       // registry lock
    _Atomic(int) thread_id;          // owner: the kernel's number of the thread that had it last
    struct hak_cache *asked_next;    // lock: whom to ask next for a slab (reclaim.h)
    // Of the cache's thread. It lies near the lock: the child of a fork writes to both in each cache, and has one page to copy.
    struct hak_life life;

    uint64_t unguarded; // owner: requests since one got a guard (guard.h)
    uint32_t apart;     // owner, with the lock to write: where its tops are, 0 or HAK_APART
    uint64_t started[(HAK_SMALL_CLASSES + 63) /
                     64]; // lock: a bit for each class whose magazine has an array
    uint64_t
        listed[(HAK_SMALL_CLASSES + 63) / 64]; // lock: one for each class that has lists of slabs
    size_t magazine_bytes;  // lock: of blocks that magazines may hold beyond the smallest
    size_t counted_bytes;   // lock: of them, those that count in the budget of all
    size_t tidied_at;       // lock: bytes of all slabs when it was last tidied, or fewest since
    size_t returned_bytes;  // lock: that magazines gave their slabs since the last sweep, net
    size_t scattered_bytes; // lock: that came back to slabs that go on, net
    unsigned magazine_hand; // lock: the class to look at next when one has to shrink
    unsigned sweep_hand;    // lock: and to give pages back from next (sweep_cache.h)
    // lock: blocks allocated and freed without a magazine, of all classes and of each (seldom.h).
    uint32_t seldom_calls;
    uint8_t seldom_of_class[HAK_SMALL_CLASSES];
    bool spares_all;        // constant: others may have all of its slabs (the shared cache)
    struct hak_list full;   // lock: slabs of any class without blocks to give
    struct hak_list larges; // lock: a heap's large blocks in use
    struct hak_hot hot[HAK_HOT_PLACES]; // BigCache: one for each doubling to 4 MiB
    struct hak_sampling *sampling;      // lock; NULL until it first samples

    // For statistics, since the start, whosever the cache was. Written with the lock, read by anybody.
    struct hak_cache_counts counts;
    // owner: large blocks that were asked for and that BigCache did not have, by bin; the last: above all bins. Nobody reads
    // those of hak_cache_shared, which several threads may write at a time.
    _Atomic(uint64_t) large_counts[HAK_LARGE_BINS + 1];

    // Parcels from others, newest first.
    //   written by   any thread       parcel_send_locked CAS, release
    //   taken by     holder of lock   hak_inbox_next  exchange, acquire
    // No ABA: nobody takes one parcel; the list is taken whole.
    _Atomic(struct hak_parcel *) inbox HAK_ALIGNED(HAK_CACHE_LINE);
    _Atomic(struct hak_loose *)
        loose;                   // as inbox: blocks freed when there was no memory for a parcel
    _Atomic(size_t) inbox_bytes; // in parcels; a hint

    // From here on: pages that a dead cache without slabs gives back (rest.h).
    // For statistics: as `counts`; of those that have given it back in hak_cache_shared.
    struct hak_class_counts class_counts[HAK_SMALL_CLASSES];
    struct hak_magazine magazines[HAK_SMALL_CLASSES];
};
_Static_assert(HAK_CONTENTION || sizeof(struct hak_cache) <= 14 * 1024, "each thread pays for it");
_Static_assert(HAK_CONTENTION || offsetof(struct hak_cache, class_counts) <= 4096,
               "a dead one pays for one page");

// For each class whose magazine has an array; and for each that has lists of slabs. Under the cache's lock.
#define HAK_EACH_MAGAZINE(cache, size_class) HAK_EACH_CLASS ((cache)->started, size_class)
#define HAK_EACH_LISTED(cache, size_class)   HAK_EACH_CLASS ((cache)->listed, size_class)
#define HAK_EACH_CLASS(bits, size_class)                                   \
    for (unsigned size_class = hak_next_bit((bits), 0, HAK_SMALL_CLASSES); \
         size_class < HAK_SMALL_CLASSES;                                   \
         size_class = hak_next_bit((bits), size_class + 1, HAK_SMALL_CLASSES))

// The number of the class's top. The owner or the lock.
HAK_INLINE unsigned hak_top_of(const struct hak_cache *cache, unsigned size_class)
{
    return cache->apart + size_class;
}

// The top itself, for slow paths: likewise.
HAK_INLINE hak_place *hak_magazine_top(const struct hak_cache *cache, unsigned size_class)
{
    return hak_load_relaxed(&cache->top[hak_top_of(cache, size_class)]);
}

// How many blocks the magazine can hold.
HAK_INLINE uint32_t hak_magazine_slots(const struct hak_magazine *magazine)
{
    return magazine->base != NULL ? (1U << magazine->places_log2) - 2 : 0;
}

// Where it is in the array, for one that has one.
HAK_INLINE uint32_t hak_magazine_place(const struct hak_cache *cache, unsigned size_class)
{
    return (uint32_t)(hak_magazine_top(cache, size_class) - cache->magazines[size_class].base);
}

HAK_INLINE void hak_magazine_set_top(struct hak_cache *cache, unsigned size_class, hak_place *top)
{
    hak_store_relaxed(&cache->top[hak_top_of(cache, size_class)], top);
}

// Which of two groups it belongs to while an option is on trial (base/variants.h): by turns.
HAK_INLINE unsigned hak_cache_group(const struct hak_cache *cache)
{
    return cache->tag >> 8 & 1;
}

// A heap may end at any time, so its blocks are never in parcels. Its tag has the first of these bits and not the second; no other
// tag has. That leaves ids for two million caches: a further one would have another's tag.
#define HAK_TAG_HEAP     0x20000000U
#define HAK_TAG_NO_HEAPS 0x40000000U // those of what threads share
#define HAK_CACHES_MOST  ((HAK_TAG_HEAP >> 8) - 1)
HAK_INLINE bool hak_tag_is_heap(uint32_t tag)
{
    return (tag & (HAK_TAG_HEAP | HAK_TAG_NO_HEAPS)) == HAK_TAG_HEAP;
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
// has ended and those that get none, and owns the orphans: the slabs of caches that were broken up (reclaim.h).
HAK_INTERNAL extern struct hak_cache hak_cache_shared;

#endif
