// pool.c -- see pool.h.
#include "meta/pool.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"

struct pool_item {
    struct pool_item *next;
    // Of the first one of a batch:
    struct pool_item *next_batch;
    uint32_t count;
};

struct hak_pool hak_pool;

// The first chunk is what a small program pays for; later ones save system calls, and mappings: each is a sixteenth of them all, so
// that even all caches that there may be (32 GiB) find room in the list.
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

// Hand the rest of what items are cut from to the free lists, before other memory replaces it.
static void pool_shelve(struct hak_pool *pool, char *start, size_t left)
{
    while (left >= HAK_CACHE_LINE) {
        const unsigned index = hak_highest_bit(left);
        struct pool_item *item = (struct pool_item *)(void *)start;
        item->next = pool->items[index];
        pool->items[index] = item;
        start += (size_t)1 << index;
        left -= (size_t)1 << index;
    }
}

static bool pool_grow(struct hak_pool *pool, size_t bytes)
{
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
    pool_shelve(pool, pool->fresh, pool->fresh_bytes);
    pool->fresh = start;
    pool->fresh_bytes = chunk;
    hak_count(&pool->mapped_bytes, chunk);
    if (pool->chunk_count < sizeof pool->chunks / sizeof pool->chunks[0]) {
        pool->chunks[pool->chunk_count] = (struct hak_pool_chunk){start, chunk};
    }
    pool->chunk_count++;
    return true;
}

// From this size on, what is free goes back to the kernel: the arrays of grown magazines.
#define PURGE_MIN HAK_KIB(64)

// The whole pages of an item.
static char *item_pages(void *item, size_t bytes, size_t *pages_bytes)
{
    const size_t page = hak_os_page_bytes();
    char *start = (char *)hak_align_up((uintptr_t)item, page);
    const uintptr_t end = ((uintptr_t)item + bytes) & ~(uintptr_t)(page - 1);
    *pages_bytes = end > (uintptr_t)start ? end - (uintptr_t)start : 0;
    return start;
}

static void item_clear(char *item, size_t bytes)
{
    size_t pages_bytes;
    char *pages = item_pages(item, bytes, &pages_bytes);
    if (bytes < PURGE_MIN || pages_bytes == 0) {
        memset(item, 0, bytes);
        return;
    }
    memset(item, 0, (size_t)(pages - item));
    hak_os_clear(pages, pages_bytes); // most are not there
    char *rest = pages + pages_bytes;
    memset(rest, 0, (size_t)(item + bytes - rest));
}

// Of whole pages, so that each begins at one.
static void *pool_cut_pages_locked(size_t bytes) HAK_REQUIRES(&hak_pool.lock)
{
    if (hak_pool.fresh_bytes < bytes && !pool_grow(&hak_pool, bytes)) {
        return NULL;
    }
    void *start = hak_pool.fresh;
    hak_pool.fresh += bytes;
    hak_pool.fresh_bytes -= bytes;
    return start;
}

// Items of less than a page are cut from so many together.
enum { SMALL_PAGES = 4 };

// An item that was never handed out. NULL without memory.
static void *pool_cut_locked(size_t bytes) HAK_REQUIRES(&hak_pool.lock)
{
    const size_t page = hak_os_page_bytes();
    if (bytes >= page) {
        return pool_cut_pages_locked(bytes);
    }
    if (hak_pool.small_bytes < bytes) {
        char *pages = pool_cut_pages_locked(SMALL_PAGES * page);
        if (pages == NULL) {
            return NULL;
        }
        pool_shelve(&hak_pool, hak_pool.small, hak_pool.small_bytes);
        hak_pool.small = pages;
        hak_pool.small_bytes = SMALL_PAGES * page;
    }
    void *item = hak_pool.small;
    hak_pool.small += bytes;
    hak_pool.small_bytes -= bytes;
    return item;
}

// An item of 2^index bytes, all zeros if it is `fresh`. NULL without memory.
static struct pool_item *pool_take_locked(unsigned index, bool *fresh) HAK_REQUIRES(&hak_pool.lock)
{
    HAK_ASSERT(index < sizeof hak_pool.items / sizeof hak_pool.items[0]);
    struct pool_item *item = hak_pool.items[index];
    *fresh = item == NULL;
    if (item != NULL) {
        hak_pool.items[index] = item->next;
        return item;
    }
    return pool_cut_locked((size_t)1 << index);
}

void *hak_pool_take(size_t bytes)
{
    const size_t rounded = pool_round(bytes);
    bool fresh;
    hak_lock_take(&hak_pool.lock);
    struct pool_item *item = pool_take_locked(hak_highest_bit(rounded), &fresh);
    hak_lock_drop(&hak_pool.lock);
    if (item != NULL && !fresh) {
        item_clear((char *)item, rounded);
    }
    return item;
}

void hak_pool_purge(void *item, size_t bytes, size_t from)
{
    size_t pages_bytes;
    char *pages = item_pages((char *)item + from, pool_round(bytes) - from, &pages_bytes);
    if (pages_bytes > 0) {
        HAK_UNHEEDED(hak_os_purge(pages, pages_bytes)); // what is there may also stay
    }
}

void hak_pool_give(void *item, size_t bytes)
{
    struct pool_item *free_item = item;
    const size_t rounded = pool_round(bytes);
    const unsigned index = hak_highest_bit(rounded);
    size_t pages_bytes;
    char *pages = item_pages(item, rounded, &pages_bytes);
    if (rounded >= PURGE_MIN && pages_bytes > 0) {
        HAK_UNHEEDED(hak_os_purge(pages, pages_bytes)); // what takes it again writes or clears it
    }
    hak_lock_take(&hak_pool.lock);
    free_item->next = hak_pool.items[index];
    hak_pool.items[index] = free_item;
    hak_lock_drop(&hak_pool.lock);
}

void *hak_pool_shelf_take(struct hak_pool_shelf *shelf, uint32_t *count)
{
    bool fresh;
    hak_lock_take(&hak_pool.lock);
    struct pool_item *first = shelf->batches;
    const bool is_batch = first != NULL;
    if (is_batch) {
        shelf->batches = first->next_batch;
        *count = first->count;
    } else {
        first = pool_take_locked(hak_highest_bit(pool_round(shelf->item_bytes)), &fresh);
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
    batch->count = count;
    hak_lock_take(&hak_pool.lock);
    batch->next_batch = shelf->batches;
    shelf->batches = batch;
    hak_count(&shelf->out_bytes, (size_t)0 - count * shelf->item_bytes);
    hak_lock_drop(&hak_pool.lock);
}
