// cache.h -- a thread's cache: free blocks that it keeps ready, and blocks of other owners that it has freed.
//
// Owns      magazines, parcels that are being filled, and freed large blocks.
// Threads   see each field. "thread": only the thread whose hak_cache_self points here. "lock": any thread that holds the lock of
//           the cache's owner.
//
// Every cache contains an owner (owner/owner.h), from whose slabs its magazines are refilled. Cache and owner
// outlive their thread: the next thread that starts takes both over. If none starts for a while, other caches
// reclaim the slabs (reclaim.h). First-class heaps are caches without a thread.
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
// top[class] points at the lowest place without a block. In a new cache, the tops of all classes
// point into `hak_nothing`, which is empty and full at once.
#define HAK_FULL ((void *)1)

HAK_INTERNAL extern hak_place hak_nothing[2];

// top[] is indexed by size class; while the cache samples, by size class + HAK_APART (sampler.h).
enum { HAK_APART = HAK_SMALL_CLASSES, HAK_TOPS = 2 * HAK_SMALL_CLASSES };

// What moved between a magazine and slabs or parcels. The single blocks that malloc and free move are
// counted only while the cache samples: counting them always would slow the fast paths.
struct hak_class_counts {
    _Atomic(uint64_t) refills;         // refills of the empty magazine
    _Atomic(uint64_t) refilled_blocks; // blocks that refills put into it
    _Atomic(uint64_t) returned_blocks; // blocks of opened parcels, roughly (refill.c)
    _Atomic(uint64_t) spills;          // times that it was full and did not grow
    _Atomic(uint64_t) spilled_blocks;  // blocks that spills and other flushes took out of it
    // Only while the cache samples (hak_sampler_counted).
    _Atomic(uint64_t) drawn;  // sum of the distances between samples, the next one included
    _Atomic(uint64_t) misses; // blocks that malloc's fast paths did not serve, and samples
};

struct hak_magazine {
    hak_place *base; // lock; NULL until the class is first used
    uint32_t bottom; // lock: place of the NULL below the lowest block; 0 unless stolen from
    uint32_t fence;  // lock: place where a thief put a NULL, not yet judged (steal.c); 0: none
    uint8_t idle_looks : 2; // lock: a thief's looks that found the top unmoved, up to 3 (steal.c)
    bool has_swung : 1;    // lock: refills followed flushes, or the reverse, an odd number of times
    bool is_used : 1;      // lock: a refill or flush since the flag was last cleared
    bool is_refilled : 1;  // lock: its thread allocates blocks of this class
    bool flushed_last : 1; // lock: the last refill or flush was a flush
    uint8_t in_a_row : 2;  // lock: how many of the same kind came just before it, up to 3
    // thread, with the lock to write: companions serve the class (site.h). Not a bit-field, because other threads write the
    // bits above.
    bool is_ruled;
    uint8_t places_log2;      // lock: log2 of the array's places; 0: there is no array
    uint16_t seen_place;      // lock: place of the top at a thief's last look, modulo 2^16
    uint16_t tidied_place;    // lock: the same, when hak_magazine_tidy last looked
    void *fenced;             // lock: the block that lay at the fence
    struct hak_growth growth; // lock: see growth.h
    // For statistics: since the process started, for all threads that have had the cache. hak_rest moves them to hak_cache_shared.
    struct hak_class_counts counts;
};

// Parcels that one thread can fill at the same time. Each outbox is for one other owner, or for several.
enum { HAK_OUTBOXES = 32, HAK_OUTBOX_MIXED = 1 };
struct hak_outbox {
    uint32_t tag;  // lock, thread: whose blocks are in it; HAK_OUTBOX_MIXED: several owners'
    uint32_t kept; // thread: how many blocks hak_remote_keep has counted
    struct hak_parcel *parcel; // lock, thread
};

// A place of BigCache: holds a freed large block for the next request of its size. The thread fills it when it is
// empty; any thread takes the block out with an atomic exchange.
struct hak_hot {
    hak_place block;          // NULL: none; HAK_FULL: the cache keeps no large blocks
    _Atomic(uint32_t) tick;   // thread: the tick when the block was put in
    uint32_t bin;             // thread: bin of the block that is or was here
    _Atomic(uint32_t) *entry; // thread: the block's map entry
} HAK_ALIGNED(32);

struct hak_hardened;

// What the cache sent to other owners, and what it reclaimed from them.
struct hak_cache_counts {
    _Atomic(uint64_t) sent_parcels;
    _Atomic(uint64_t) sent_blocks;
    _Atomic(uint64_t) adopted_slabs; // orphans, and slabs of dead caches
};

enum { HAK_COMPANIONS = HAK_OWNER_ROLES - HAK_ROLE_REST };

enum { HAK_FREES_ASKED = 2 };

struct hak_cache {
    _Atomic(hak_place *) top[HAK_TOPS]; // thread writes; a thief reads
    // What free subtracts from a map entry to get an index into top[]: the owner's tag, or HAK_APART less. The code that switches
    // sampling on or off changes it; the thread corrects it in its next slow path (sampler.h).
    _Atomic(uint32_t) hit_tag;
    uint32_t apart; // thread, with the lock to write: offset of its tops, 0 or HAK_APART
    // thread; others read it. While the cache samples: how many blocks of each class malloc will return until the next sample,
    // the sample included.
    _Atomic(uint64_t) gaps[HAK_SMALL_CLASSES];
    // thread: the same for large blocks from BigCache. Always counted down; starts at 0 if the cache does not sample.
    uint64_t large_gaps[HAK_LARGE_BINS];
    uint64_t unguarded;                 // thread: requests since one got a guard (guard.h)
    struct hak_hot hot[HAK_HOT_PLACES]; // BigCache: one for each doubling to 4 MiB
    struct hak_outbox outboxes[HAK_OUTBOXES];
    struct hak_parcel *spare_parcel;   // lock: list of empty parcels (parcels.h)
    uint32_t spare_count;              // lock: its length
    struct hak_sampling *sampling;     // lock; NULL until the cache first samples
    uint64_t started[HAK_CLASS_WORDS]; // lock: a bit for each class whose magazine has an array
    size_t magazine_bytes;             // lock: capacity of all magazines beyond their smallest size
    size_t counted_bytes;              // lock: the part of it that the process's total includes
    size_t tidied_at;       // lock: bytes of all slabs at the last tidying, or the least since
    unsigned magazine_hand; // lock: the next class to consider when a magazine has to shrink
    // lock: blocks allocated and freed without a magazine, of all classes and of each (seldom.h).
    uint32_t seldom_calls;
    uint8_t seldom_of_class[HAK_SMALL_CLASSES];
    // For statistics: since the process started, for all threads that have had the cache. Written with the lock, read by any.
    struct hak_cache_counts counts;
    // thread: requests for large blocks that BigCache did not serve, by bin; the last counts those above all bins. Those of
    // hak_cache_shared are never read, because several threads may write them at the same time.
    _Atomic(uint64_t) large_counts[HAK_LARGE_BINS + 1];

    bool is_direct; // keeps no magazines (direct.h)
    // thread: 1 if the cache is_direct or has companions. HAK_FREES_ASKED: its thread's next free, of whatever size, has to read
    // the options; others set that (sampler.h).
    _Atomic(uint8_t) frees_apart;
    bool keeps_elsewhere; // thread: a companion has its BigCache (site.h)
    bool is_helping;      // thread, lock: draining a full inbox, or sending all parcels (remote.c)
    _Atomic(bool) is_asleep; // set by the sweeper: see watch.h; cleared by the thread
    _Atomic(bool) is_inside; // thread: at work on `hardened` (hardened.h)
    // NULL until first used, with the lock; NULL also while another thread empties it.
    _Atomic(struct hak_hardened *) hardened;
    struct hak_cache *companions[HAK_COMPANIONS]; // thread: by role, from HAK_ROLE_REST on
    struct hak_cache *next;                       // constant: in the list of all caches
    struct hak_list dead_link;                    // registry lock
    struct hak_cache *asked_next;                 // lock: next cache to ask for a slab (reclaim.h)
    _Atomic(int) thread_id; // thread: the kernel's id of the cache's latest thread
    uint32_t exit_rounds;   // thread, while it ends
    union {
        uint64_t exit_events; // thread, while it ends: events at the last round
        // A heap that ends: the thread that ends it, by the address of its hak_cache_self, which is the same in the child of a
        // fork. Written by that thread; NULL again with the registry's lock.
        const void *ended_by;
    };
    // Has the cache's thread ended? Lies near the owner's lock: after fork, the child writes to both in each cache, and the kernel
    // has to copy one page only.
    struct hak_life life;

    // A dead cache without slabs purges its pages from owner.classes on (rest.h).
    struct hak_owner owner;
    struct hak_magazine magazines[HAK_SMALL_CLASSES];
};
_Static_assert(HAK_CONTENTION || sizeof(struct hak_cache) <= HAK_KIB(14),
               "each thread pays for it");
_Static_assert(HAK_CONTENTION || offsetof(struct hak_cache, owner.classes) <= 4096,
               "a dead one pays for one page");

// The cache that contains `owner`.
HAK_INLINE struct hak_cache *hak_cache_of(struct hak_owner *owner)
{
    return HAK_LIST_ITEM(owner, struct hak_cache, owner);
}

// Loop over the classes whose magazines have an array. With the lock.
#define HAK_EACH_MAGAZINE(cache, size_class) HAK_EACH_CLASS ((cache)->started, size_class)

// The index of the class's top in top[]. The thread, or with the lock.
HAK_INLINE unsigned hak_cache_top_number(const struct hak_cache *cache, unsigned size_class)
{
    return cache->apart + size_class;
}

// The top itself, for slow paths. The thread, or with the lock.
HAK_INLINE hak_place *hak_cache_top(const struct hak_cache *cache, unsigned size_class)
{
    return hak_load_relaxed(&cache->top[hak_cache_top_number(cache, size_class)]);
}

// How many blocks the magazine can hold.
HAK_INLINE uint32_t hak_cache_magazine_slots(const struct hak_magazine *magazine)
{
    return magazine->base != NULL ? (1U << magazine->places_log2) - 2 : 0;
}

// The top's index in the magazine's array, which must exist.
HAK_INLINE uint32_t hak_cache_place(const struct hak_cache *cache, unsigned size_class)
{
    return (uint32_t)(hak_cache_top(cache, size_class) - cache->magazines[size_class].base);
}

HAK_INLINE void hak_cache_set_top(struct hak_cache *cache, unsigned size_class, hak_place *top)
{
    hak_store_relaxed(&cache->top[hak_cache_top_number(cache, size_class)], top);
}

// The cache's group, 0 or 1, while an option is on trial (base/variants.h). Caches alternate in the order of their ids.
HAK_INLINE unsigned hak_cache_group(const struct hak_cache *cache)
{
    return cache->owner.tag >> 8 & 1;
}

// hit_tag of a cache that is asleep: no slab's owner has that tag, so free finds no magazine.
#define HAK_TAG_ASLEEP 0x7FFFFF00U

// The calling thread's cache. Never NULL: until a thread's first slow path it
// points at `hak_cache_nobody`, whose magazines are all empty and full.
HAK_INTERNAL extern HAK_TLS struct hak_cache *hak_cache_self;
// The same, for the C++ operators. In a program that defines operators of its own it stays `hak_cache_nobody`, so that ours take
// their slow paths (front/replaced.h).
HAK_INTERNAL extern HAK_TLS struct hak_cache *hak_cache_operators;
HAK_INTERNAL void hak_cache_set_operators_apart(void);
// Make `cache` the calling thread's cache.
HAK_INTERNAL void hak_cache_become(struct hak_cache *cache);
HAK_INTERNAL extern struct hak_cache hak_cache_nobody; // before the first slow path
// The shared cache. Any thread may use it, with its lock, whose rank, "shared", is behind every other cache's. It serves threads
// whose cache has ended, or for which there is no memory for one. It owns the orphans: slabs that other caches gave up (reclaim.h).
HAK_INTERNAL extern struct hak_cache hak_cache_shared;
