// pool.h -- memory for our own descriptors.
//
// Owns      mappings of its own, apart from the blocks that programs get, and what it is fed where the kernel refuses
//           more (slab/feed.h). Both are never unmapped, so a stale pointer to a descriptor can always be read.
// Threads   any; one lock, rank "pool".
// Fails     NULL when the kernel refuses memory.
//
// Sizes are rounded to powers of two and recycled by size. An item of a page or more begins at a page. Those of less than 4 KiB
// lie in trays of 16 KiB, those of one size together. What is free of whole pages, a tray without an item in use among it,
// goes back to the kernel, but for 256 KiB.
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
    char *fresh;        // never handed out yet
    size_t fresh_bytes; // that many of them
    char *gap;          // the same of what lay before an item that is aligned
    size_t gap_bytes;
    _Atomic(size_t) mapped_bytes; // all chunks ever mapped; others read it
    // By size, of 2^index bytes. Of less than 4 KiB: trays with a free item; zero until first used. Others: free items, and
    // those that are zeros.
    struct hak_list trays[HAK_POOL_SIZES];
    struct pool_item *items[HAK_POOL_SIZES];
    struct pool_gone *gone[HAK_POOL_SIZES];
    _Atomic(size_t) idle_bytes; // lock; others a hint: of `items`, what can go back
    // For whoever asks what a page is.
    uint32_t chunk_count; // of all; those beyond the room for them are not listed
    struct hak_pool_chunk chunks[512];
};

HAK_INTERNAL extern struct hak_pool hak_pool;

// Items of one size that one thread takes and another gives, and of which each keeps some: a batch comes and goes with one
// taking of the lock. What was given here stays for who takes here, up to a number of batches.
struct hak_pool_shelf {
    size_t item_bytes;         // constant; less than 4 KiB
    struct pool_item *batches; // lock
    uint32_t batch_count;      // lock
    _Atomic(size_t) out_bytes; // lock; others a hint: of all items that do not lie here
};

// Zeroed memory of at least `bytes` (at most 32 MiB), aligned to a cache line.
HAK_INTERNAL void *hak_pool_take(size_t bytes);
// Give it back; `bytes` as taken.
HAK_INTERNAL void hak_pool_give(void *item, size_t bytes);
// Of an item in use, give back the whole pages behind its first `from` bytes. Each of them is zeros then, or as it was.
HAK_INTERNAL void hak_pool_purge(void *item, size_t bytes, size_t from);
// Give back the pages of what is free. Returns their bytes.
HAK_INTERNAL size_t hak_pool_trim(void);

// Whole pages of zeros, which are the pool's from now on.
HAK_INTERNAL void hak_pool_feed(char *start, size_t bytes);

// A batch as it was given, not zeroed, or one new item: linked by their first words, the last one's NULL. Their number in
// `count`. NULL without memory.
HAK_INTERNAL void *hak_pool_shelf_take(struct hak_pool_shelf *shelf, uint32_t *count);
// Give `count` of them back that are linked so.
HAK_INTERNAL void hak_pool_shelf_put(struct hak_pool_shelf *shelf, void *first, uint32_t count);
