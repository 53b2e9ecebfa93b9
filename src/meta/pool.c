// pool.c -- see pool.h.
#include "meta/pool.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"

struct pool_item {
    struct pool_item *next;
    // only in the first item of a batch:
    struct pool_item *next_batch;
    uint32_t count;
};

// Items smaller than the smallest page lie in trays, each with items of one size. A tray is aligned, so an item's address tells
// where it begins. This header takes the place of the first item.
enum { PAGE_LOG2 = 12, TRAY_LOG2 = 14 };
#define TRAY_BYTES ((size_t)1 << TRAY_LOG2)
struct pool_tray {
    struct hak_list link;    // in the list of its size, while the tray has a free item
    struct pool_item *items; // free items
    uint32_t fresh;          // offset of the first item that was never handed out
    uint32_t used;           // items in use
    bool zeroed;             // items never handed out are zeros
};
_Static_assert(sizeof(struct pool_tray) <= HAK_CACHE_LINE, "the smallest item");

// A purged page cannot hold a link. So one free item of each size stays, and holds the addresses of others.
struct pool_gone {
    struct pool_gone *next;
    uint64_t count;
    void *items[510];
};
_Static_assert(sizeof(struct pool_gone) == 4096, "the smallest page");

// Free items of at least this size are always purged: the arrays of grown magazines. Smaller ones: beyond IDLE_MOST.
#define PURGE_MIN HAK_KIB(64)
#define IDLE_MOST HAK_KIB(256)

// The most batches that a shelf keeps; the items of further ones go back to their trays.
enum { SHELF_BATCHES = 32 };

struct hak_pool hak_pool;

// A small program pays for the first chunk. Later ones save system calls and mappings: each is a sixteenth of the chunks before, so
// that the list has room even for the largest possible number of caches (32 GiB).
static size_t pool_chunk_bytes(size_t mapped_bytes)
{
    const size_t least = mapped_bytes < HAK_MIB(1) ? HAK_KIB(256) : HAK_MIB(2);
    const size_t share = ((size_t)1 << hak_highest_bit(mapped_bytes | 1)) / 16;
    return share > least ? share : least;
}

static size_t pool_round(size_t bytes)
{
    size_t least = bytes < HAK_CACHE_LINE ? HAK_CACHE_LINE : bytes;
    return hak_power_of_two_above(least);
}

// Note a free item of 4 KiB or more that is zeros.
static void gone_add_locked(void *item, unsigned index) HAK_REQUIRES(&hak_pool.lock)
{
    struct pool_gone *gone = hak_pool.gone[index];
    if (gone != NULL && gone->count < sizeof gone->items / sizeof gone->items[0]) {
        gone->items[gone->count++] = item;
        return;
    }
    struct pool_gone *first = item;
    first->next = gone;
    first->count = 0;
    hak_pool.gone[index] = first;
}

// Turn the unused rest of a chunk into free items, as large as possible. An item as large as a tray is aligned like one.
static void pool_shelve_locked(char *start, size_t left) HAK_REQUIRES(&hak_pool.lock)
{
    while (left > 0) {
        const unsigned fits = hak_highest_bit(left);
        const unsigned aligned = hak_lowest_bit((uintptr_t)start);
        const unsigned index = fits < aligned ? fits : aligned;
        gone_add_locked(start, index);
        start += (size_t)1 << index;
        left -= (size_t)1 << index;
    }
}

static void pool_cut_from_locked(char *start, size_t bytes) HAK_REQUIRES(&hak_pool.lock)
{
    pool_shelve_locked(hak_pool.fresh, hak_pool.fresh_bytes);
    hak_pool.fresh = start;
    hak_pool.fresh_bytes = bytes;
    if (hak_pool.chunk_count < sizeof hak_pool.chunks / sizeof hak_pool.chunks[0]) {
        hak_pool.chunks[hak_pool.chunk_count] = (struct hak_pool_chunk){start, bytes};
    }
    hak_pool.chunk_count++;
}

static bool pool_grow_locked(size_t bytes) HAK_REQUIRES(&hak_pool.lock)
{
    struct hak_pool *pool = &hak_pool;
    size_t chunk = pool_chunk_bytes(hak_load_relaxed(&pool->mapped_bytes));
    chunk = chunk < bytes ? bytes : chunk;
    char *start = hak_os_map_guarded(chunk);
    if (start == NULL && chunk > bytes) {
        chunk = hak_align_up(bytes, HAK_KIB(64)); // memory is short: only what is needed now
        start = hak_os_map_guarded(chunk);
    }
    if (start == NULL) {
        return false;
    }
    pool_cut_from_locked(start, chunk);
    hak_count(&pool->mapped_bytes, chunk);
    return true;
}

static void item_clear(void *item, size_t bytes)
{
    if (bytes < PURGE_MIN) {
        memset(item, 0, bytes);
    } else {
        hak_os_clear(item, bytes); // most pages may not be resident
    }
}

static size_t alignment_of(size_t bytes)
{
    const size_t page = hak_os_page_bytes();
    const size_t least = bytes >= page ? page : (size_t)1 << PAGE_LOG2;
    return bytes == TRAY_BYTES && least < TRAY_BYTES ? TRAY_BYTES : least;
}

// The bytes to skip before the next place for an item of `bytes`.
static size_t fresh_gap(size_t bytes)
{
    return (0 - (uintptr_t)hak_pool.fresh) & (alignment_of(bytes) - 1);
}

// Cut off an item of 4 KiB or more that was never handed out. NULL without memory.
static void *pool_cut_locked(size_t bytes) HAK_REQUIRES(&hak_pool.lock)
{
    if (bytes < TRAY_BYTES && hak_pool.gap_bytes >= bytes) {
        hak_pool.gap_bytes -= bytes;
        return hak_pool.gap + hak_pool.gap_bytes;
    }
    if (hak_pool.fresh_bytes < fresh_gap(bytes) + bytes &&
        !pool_grow_locked(bytes + alignment_of(bytes) - ((size_t)1 << PAGE_LOG2))) {
        return NULL;
    }
    const size_t gap = fresh_gap(bytes);
    if (gap > 0) {
        pool_shelve_locked(hak_pool.gap, hak_pool.gap_bytes);
        hak_pool.gap = hak_pool.fresh;
        hak_pool.gap_bytes = gap;
    }
    char *item = hak_pool.fresh + gap;
    hak_pool.fresh = item + bytes;
    hak_pool.fresh_bytes -= gap + bytes;
    return item;
}

// Bytes of an item of 2^index bytes that can be purged: none if pages are larger.
static size_t bytes_to_go(unsigned index)
{
    const size_t bytes = (size_t)1 << index;
    return bytes >= hak_os_page_bytes() ? bytes : 0;
}

// Take an item of 4 KiB or more. NULL without memory.
static void *pages_take_locked(unsigned index, bool *zeroed) HAK_REQUIRES(&hak_pool.lock)
{
    HAK_ASSERT(index < HAK_POOL_SIZES);
    struct pool_item *item = hak_pool.items[index];
    struct pool_gone *gone = hak_pool.gone[index];
    *zeroed = false;
    if (item != NULL) {
        hak_pool.items[index] = item->next;
        hak_count(&hak_pool.idle_bytes, (size_t)0 - bytes_to_go(index));
        return item;
    }
    if (gone != NULL && gone->count == 0) {
        hak_pool.gone[index] = gone->next;
        return gone;
    }
    *zeroed = true;
    return gone != NULL ? gone->items[--gone->count] : pool_cut_locked((size_t)1 << index);
}

// Free an item; purge it if more than `most` bytes would be idle otherwise. Returns the bytes purged.
static size_t pages_give(void *item, unsigned index, size_t most)
{
    struct pool_item *free_item = item;
    const size_t bytes = bytes_to_go(index);
    const bool is_idle = hak_load_relaxed(&hak_pool.idle_bytes) + bytes > most;
    const bool is_gone = bytes > 0 && (bytes >= PURGE_MIN || is_idle) && hak_os_purge(item, bytes);
    hak_lock_take(&hak_pool.lock);
    if (is_gone) {
        gone_add_locked(item, index);
    } else {
        free_item->next = hak_pool.items[index];
        hak_pool.items[index] = free_item;
        hak_count(&hak_pool.idle_bytes, bytes);
    }
    hak_lock_drop(&hak_pool.lock);
    return is_gone ? bytes : 0;
}

// The list of trays of a size that have a free item.
static struct hak_list *trays_of(unsigned index) HAK_REQUIRES(&hak_pool.lock)
{
    struct hak_list *trays = &hak_pool.trays[index];
    if (trays->next == NULL) {
        hak_list_start(trays);
    }
    return trays;
}

// Add an empty tray to its list. False without memory.
static bool tray_add_locked(unsigned index) HAK_REQUIRES(&hak_pool.lock)
{
    bool zeroed;
    struct pool_tray *tray = pages_take_locked(TRAY_LOG2, &zeroed);
    if (tray == NULL) {
        return false;
    }
    tray->items = NULL;
    tray->fresh = 1U << index;
    tray->used = 0;
    tray->zeroed = zeroed;
    hak_list_push(trays_of(index), &tray->link);
    return true;
}

static void *tray_take_locked(unsigned index, bool *zeroed) HAK_REQUIRES(&hak_pool.lock)
{
    struct hak_list *trays = trays_of(index);
    if (hak_list_is_empty(trays) && !tray_add_locked(index)) {
        return NULL;
    }
    struct pool_tray *tray = HAK_LIST_ITEM(trays->next, struct pool_tray, link);
    struct pool_item *item = tray->items;
    *zeroed = item == NULL && tray->zeroed;
    if (item != NULL) {
        tray->items = item->next;
    } else {
        item = (struct pool_item *)(void *)((char *)tray + tray->fresh);
        tray->fresh += 1U << index;
    }
    tray->used++;
    if (tray->items == NULL && tray->fresh == TRAY_BYTES) {
        hak_list_remove(&tray->link);
    }
    return item;
}

// Put an item back. Returns its tray if none of the tray's items is in use: the tray is then the caller's, and in no list.
static struct pool_tray *tray_put_locked(struct pool_item *item, unsigned index)
    HAK_REQUIRES(&hak_pool.lock)
{
    char *start = (char *)item - ((uintptr_t)item & (TRAY_BYTES - 1));
    struct pool_tray *tray = (struct pool_tray *)(void *)start;
    HAK_ASSERT(tray->used > 0);
    item->next = tray->items;
    tray->items = item;
    if (!hak_list_is_linked(&tray->link)) {
        hak_list_push(trays_of(index), &tray->link);
    }
    if (--tray->used > 0) {
        return NULL;
    }
    hak_list_remove(&tray->link);
    return tray;
}

void hak_pool_feed(char *start, size_t bytes)
{
    hak_lock_take(&hak_pool.lock);
    pool_cut_from_locked(start, bytes);
    hak_lock_drop(&hak_pool.lock);
}

void *hak_pool_take(size_t bytes)
{
    const size_t rounded = pool_round(bytes);
    const unsigned index = hak_highest_bit(rounded);
    bool zeroed;
    hak_lock_take(&hak_pool.lock);
    void *item =
        index < PAGE_LOG2 ? tray_take_locked(index, &zeroed) : pages_take_locked(index, &zeroed);
    hak_lock_drop(&hak_pool.lock);
    if (item != NULL && !zeroed) {
        item_clear(item, rounded);
    }
    return item;
}

void hak_pool_purge(void *item, size_t bytes, size_t from)
{
    const size_t page = hak_os_page_bytes();
    const size_t rounded = pool_round(bytes);
    const size_t kept = hak_align_up(from, page);
    if (rounded >= page && kept < rounded) {
        // If the kernel refuses, the contents just stay.
        HAK_UNHEEDED(hak_os_purge((char *)item + kept, rounded - kept));
    }
}

void hak_pool_give(void *item, size_t bytes)
{
    unsigned index = hak_highest_bit(pool_round(bytes));
    if (index < PAGE_LOG2) {
        hak_lock_take(&hak_pool.lock);
        item = tray_put_locked(item, index);
        hak_lock_drop(&hak_pool.lock);
        index = TRAY_LOG2;
    }
    if (item != NULL) {
        pages_give(item, index, IDLE_MOST);
    }
}

// Take a free item of 4 KiB or more that may be resident; or NULL.
static void *idle_take(unsigned index)
{
    bool zeroed;
    hak_lock_take(&hak_pool.lock);
    void *item = hak_pool.items[index] != NULL ? pages_take_locked(index, &zeroed) : NULL;
    hak_lock_drop(&hak_pool.lock);
    return item;
}

size_t hak_pool_trim(void)
{
    size_t gone = 0;
    for (unsigned index = PAGE_LOG2; index < HAK_POOL_SIZES; index++) {
        size_t went = 1;
        while (went > 0 && hak_load_relaxed(&hak_pool.idle_bytes) > 0) {
            void *item = idle_take(index);
            went = item != NULL ? pages_give(item, index, 0) : 0;
            gone += went;
        }
    }
    return gone;
}

static unsigned item_index(const struct hak_pool_shelf *shelf)
{
    return hak_highest_bit(pool_round(shelf->item_bytes));
}

void *hak_pool_shelf_take(struct hak_pool_shelf *shelf, uint32_t *count)
{
    bool zeroed;
    hak_lock_take(&hak_pool.lock);
    struct pool_item *first = shelf->batches;
    const bool is_batch = first != NULL;
    if (is_batch) {
        shelf->batches = first->next_batch;
        shelf->batch_count--;
        *count = first->count;
    } else {
        first = tray_take_locked(item_index(shelf), &zeroed);
        *count = first != NULL;
    }
    hak_count(&shelf->out_bytes, *count * shelf->item_bytes);
    hak_lock_drop(&hak_pool.lock);
    if (!is_batch && first != NULL) {
        first->next = NULL;
    }
    return first;
}

void hak_pool_shelf_put(struct hak_pool_shelf *shelf, void *first, uint32_t count)
{
    struct pool_item *batch = first;
    struct hak_list idle; // trays without an item in use
    hak_list_start(&idle);
    hak_lock_take(&hak_pool.lock);
    hak_count(&shelf->out_bytes, (size_t)0 - count * shelf->item_bytes);
    if (shelf->batch_count < SHELF_BATCHES) {
        batch->count = count;
        batch->next_batch = shelf->batches;
        shelf->batches = batch;
        shelf->batch_count++;
        batch = NULL;
    }
    while (batch != NULL) {
        struct pool_item *next = batch->next;
        struct pool_tray *tray = tray_put_locked(batch, item_index(shelf));
        if (tray != NULL) {
            hak_list_push(&idle, &tray->link);
        }
        batch = next;
    }
    hak_lock_drop(&hak_pool.lock);
    while (!hak_list_is_empty(&idle)) {
        struct pool_tray *tray = HAK_LIST_ITEM(idle.next, struct pool_tray, link);
        hak_list_remove(&tray->link);
        pages_give(tray, TRAY_LOG2, IDLE_MOST);
    }
}
