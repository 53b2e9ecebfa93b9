// pool.h -- memory for our own descriptors.
//
// Owns      mappings of its own, apart from the program's blocks, and units that the arena feeds to it where the kernel
//           refuses more (slab/feed.h). Both are never unmapped, so a stale pointer to a descriptor can always be read.
// Threads   any; one lock, rank "pool".
// Fails     NULL when the kernel refuses memory.
//
// Sizes are rounded to powers of two, and items are recycled by size. An item of a page or more begins at a page. Smaller items
// than 4 KiB lie in trays of 16 KiB, each for one size. Free items of whole pages, and trays without an item in use, are
// purged, except for 256 KiB.
#pragma once

#include "base/compiler.h"
#include "base/list.h"
#include "os/lock.h"

enum { HAK_POOL_SIZES = 26 };

struct hak_pool_chunk {
    char *start;
    size_t bytes;
};

struct hak_pool {
    struct hak_lock lock;
    char *fresh;        // the rest of the chunk, never handed out yet
    size_t fresh_bytes; // its size
    char *gap;          // an earlier rest, skipped to align an item
    size_t gap_bytes;
    _Atomic(size_t) mapped_bytes; // of all chunks; a hint for other threads
    // By size: 2^index bytes. Below 4 KiB: the trays with a free item; zero until first used. Else: the free items, and the
    // free items that are zeros.
    struct hak_list trays[HAK_POOL_SIZES];
    struct pool_item *items[HAK_POOL_SIZES];
    struct pool_gone *gone[HAK_POOL_SIZES];
    _Atomic(size_t) idle_bytes; // lock; a hint for others: bytes of `items` that can be purged
    // For tools that ask what a page is.
    uint32_t chunk_count; // of all chunks; those that do not fit below are not listed
    struct hak_pool_chunk chunks[512];
};

HAK_INTERNAL extern struct hak_pool hak_pool;

// Items of one size that one thread takes and another gives back. Each thread keeps some, and moves a batch with one
// acquisition of the lock. The shelf keeps a limited number of batches that were given back for the next takers.
struct hak_pool_shelf {
    size_t item_bytes;         // constant; less than 4 KiB
    struct pool_item *batches; // lock
    uint32_t batch_count;      // lock
    _Atomic(size_t) out_bytes; // lock; a hint for others: items not on the shelf
};

// Zeroed memory of at least `bytes` (at most 32 MiB), aligned to a cache line.
HAK_INTERNAL void *hak_pool_take(size_t bytes);
// Free an item; `bytes` as taken.
HAK_INTERNAL void hak_pool_give(void *item, size_t bytes);
// Purge the whole pages behind the first `from` bytes of an item in use. Each of them becomes zeros, or stays as it was.
HAK_INTERNAL void hak_pool_purge(void *item, size_t bytes, size_t from);
// Purge the free items. Returns the bytes purged.
HAK_INTERNAL size_t hak_pool_trim(void);

// Give the pool whole pages of zeros, for good.
HAK_INTERNAL void hak_pool_feed(char *start, size_t bytes);

// Take a batch as it was given, not zeroed, or one new item. The items are linked by their first words, which end with
// NULL; `count` is their number. NULL without memory.
HAK_INTERNAL void *hak_pool_shelf_take(struct hak_pool_shelf *shelf, uint32_t *count);
// Give back `count` items that are linked in this way.
HAK_INTERNAL void hak_pool_shelf_put(struct hak_pool_shelf *shelf, void *first, uint32_t count);
