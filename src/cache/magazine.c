// magazine.c -- see magazine.h.
#include "cache/magazine.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "base/probe.h"
#include "base/timing.h"
#include "cache/fast_path.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/loot.h"
#include "cache/pools.h"
#include "cache/steal.h"
#include "meta/pool.h"
#include "os/os.h"
#include "slab/arena.h"

// Blocks that one refill moves at most: enough that its own cost no longer shows.
enum { REFILL_MAX = 128 };

static struct hak_slab *slab_item(struct hak_list *link)
{
    return HAK_LIST_ITEM(link, struct hak_slab, link);
}

struct hak_list *hak_cache_slabs(struct hak_cache *cache, unsigned size_class)
{
    struct hak_list *slabs = &cache->magazines[size_class].slabs;
    if (slabs->next == NULL) {
        hak_list_start(slabs);
    }
    return slabs;
}

void hak_cache_note_spare(struct hak_cache *cache, unsigned size_class)
{
    const struct hak_list *slabs = hak_cache_slabs(cache, size_class);
    hak_store_relaxed(&cache->magazines[size_class].has_spare, slabs->next->next != slabs);
}

// Blocks came back into `slab`. True when it has ended with that.
static bool slab_settle(struct hak_cache *cache, struct hak_slab *slab, bool was_full)
{
    // At once, and also the last one: the magazine is what absorbs a swing, and the pages stay
    // resident in the arena, for any class.
    if (hak_slab_is_idle(slab)) {
        hak_list_remove(&slab->link);
        hak_slab_end(slab);
        return true;
    }
    if (was_full) {
        // To the end: others have blocks too, and this one may fill up until its turn.
        hak_list_remove(&slab->link);
        hak_list_append(hak_cache_slabs(cache, slab->size_class), &slab->link);
        hak_cache_note_spare(cache, slab->size_class);
    }
    return false;
}

bool hak_cache_put(struct hak_cache *cache, struct hak_slab *slab, void *block)
{
    const bool was_full = !hak_slab_has_blocks(slab);
    hak_slab_put(slab, block);
    return slab_settle(cache, slab, was_full);
}

unsigned hak_cache_put_row(struct hak_cache *cache,
                           struct hak_slab *slab,
                           hak_place *places,
                           unsigned count)
{
    const bool was_full = !hak_slab_has_blocks(slab);
    const unsigned done = hak_slab_put_row(slab, places, count);
    slab_settle(cache, slab, was_full);
    return done;
}

void hak_cache_end_idle_slabs(struct hak_cache *cache, unsigned size_class)
{
    struct hak_list *slabs = hak_cache_slabs(cache, size_class);
    for (struct hak_list *link = slabs->next; link != slabs;) {
        struct hak_slab *slab = slab_item(link);
        link = link->next;
        if (hak_slab_is_idle(slab)) {
            hak_list_remove(&slab->link);
            hak_slab_end(slab);
        }
    }
}

static void slab_list_if_full(struct hak_cache *cache, struct hak_slab *slab)
{
    if (!hak_slab_has_blocks(slab)) {
        hak_list_remove(&slab->link);
        hak_list_push(&cache->full, &slab->link);
    }
}

// Take up to `count` blocks from the slabs that have some; a new slab only when none has.
static unsigned cache_take(struct hak_cache *cache,
                           unsigned size_class,
                           void **blocks,
                           unsigned count)
{
    struct hak_list *slabs = hak_cache_slabs(cache, size_class);
    unsigned got = 0;
    while (got < count) {
        if (hak_list_is_empty(slabs)) {
            if (got > 0) {
                break;
            }
            struct hak_slab *slab = hak_loot_slab(cache, size_class);
            if (slab == NULL) {
                slab = hak_loot_spare_slab(cache, size_class);
            }
            if (slab == NULL &&
                hak_magazine_tidy(cache, hak_classes[size_class].units * HAK_UNIT_BYTES)) {
                hak_loot_break_up_all();
                slab = hak_loot_slab(cache, size_class);
            }
            if (slab == NULL) {
                const uint64_t begin = hak_timing_begin();
                slab = hak_slab_make(cache, cache->tag, size_class);
                hak_timing_end(HAK_TIMING_slab_make, begin);
            }
            if (slab == NULL) {
                break;
            }
            hak_list_push(slabs, &slab->link);
        }
        struct hak_slab *slab = slab_item(slabs->next);
        got += hak_slab_take(slab, blocks + got, count - got);
        slab_list_if_full(cache, slab);
    }
    hak_cache_note_spare(cache, size_class);
    return got;
}

void *hak_cache_take(struct hak_cache *cache, unsigned size_class)
{
    void *block = NULL;
    cache_take(cache, size_class, &block, 1);
    return block;
}

void *hak_cache_take_fresh(struct hak_cache *cache, unsigned size_class, bool *zeroed)
{
    struct hak_list *slabs = hak_cache_slabs(cache, size_class);
    if (hak_list_is_empty(slabs)) {
        struct hak_slab *slab = hak_slab_make(cache, cache->tag, size_class);
        if (slab == NULL) {
            return NULL;
        }
        hak_list_push(slabs, &slab->link);
    }
    struct hak_slab *slab = slab_item(slabs->next);
    void *block = slab->free_blocks == 0 ? hak_slab_take_fresh(slab) : NULL;
    *zeroed = slab->zeroed;
    slab_list_if_full(cache, slab);
    return block;
}

// An array for `slots` blocks and its two marks; NULL without memory.
static hak_place *places_make(uint32_t slots)
{
    hak_place *base = hak_pool_take((slots + 2) * sizeof *base);
    if (base != NULL) {
        hak_place_store(&base[slots + 1], HAK_FULL);
    }
    return base;
}

static uint32_t first_slots(unsigned size_class)
{
    return (1U << hak_classes[size_class].magazine_log2) - 2;
}

static uint32_t magazine_held(const struct hak_cache *cache, unsigned size_class)
{
    return (uint32_t)(hak_load_relaxed(&cache->top[size_class]) -
                      cache->magazines[size_class].base) -
           1;
}

// Another array for the magazine, with room for the blocks that it holds. The magazine is
// unfenced, its bottom 0. False without memory.
static bool magazine_resize(struct hak_cache *cache, unsigned size_class, uint32_t slots)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    hak_place *base = places_make(slots);
    if (base == NULL) {
        return false; // the old one still works
    }
    const uint32_t held = magazine_held(cache, size_class);
    for (uint32_t i = 1; i <= held; i++) {
        hak_place_store(&base[i], hak_place_load(&magazine->base[i]));
    }
    hak_pool_give((void *)magazine->base, (magazine->slots + 2) * sizeof *base);
    cache->magazine_bytes += ((size_t)slots - magazine->slots) * hak_classes[size_class].bytes;
    magazine->base = base;
    magazine->slots = slots;
    hak_store_relaxed(&cache->top[size_class], base + held + 1);
    return true;
}

// Put the blocks in places first..last back to where they belong.
static void magazine_put(struct hak_cache *cache,
                         unsigned size_class,
                         uint32_t first,
                         uint32_t last)
{
    hak_place *base = cache->magazines[size_class].base;
    hak_count(&cache->class_counts[size_class].spilled_blocks, last + 1 - first);
    while (first <= last) {
        first += hak_inbox_route_row(cache, cache, &base[first], last - first + 1);
    }
}

// Put everything back.
static void magazine_empty(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    hak_steal_unfence(cache, size_class);
    magazine_put(cache, size_class, magazine->bottom + 1, magazine_held(cache, size_class));
    magazine->bottom = 0;
    hak_store_relaxed(&cache->top[size_class], magazine->base + 1);
}

// The budget is spent: back to its first size with a grown magazine that was not in use since the
// hand last came by. False when all are.
static bool magazine_shrink_one(struct hak_cache *cache, unsigned growing)
{
    for (unsigned looks = 0; looks < 2 * HAK_SMALL_CLASSES; looks++) {
        const unsigned size_class = cache->magazine_hand;
        struct hak_magazine *magazine = &cache->magazines[size_class];
        cache->magazine_hand = (size_class + 1) % HAK_SMALL_CLASSES;
        if (size_class != growing && magazine->slots > first_slots(size_class) &&
            !magazine->is_used) {
            magazine_empty(cache, size_class);
            return magazine_resize(cache, size_class, first_slots(size_class));
        }
        magazine->is_used = false;
    }
    return false;
}

// Twice as many places, within the budget.
static void magazine_grow(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    if (hak_load_relaxed(&hak_options.ace) == 0) {
        return;
    }
    const uint32_t slots = 2 * (magazine->slots + 2) - 2;
    const size_t more = ((size_t)slots - magazine->slots) * hak_classes[size_class].bytes;
    const size_t most = hak_load_relaxed(&hak_options.magazine_bytes);
    while (more <= most && cache->magazine_bytes + more > most) {
        if (!magazine_shrink_one(cache, size_class)) {
            return;
        }
    }
    if (more <= most) {
        magazine_resize(cache, size_class, slots);
    }
}

// A block in a magazine holds a whole slab, and its pages. So when a thread has needed many new
// slabs, magazines that were not in use meanwhile give their blocks back: what they hold may be
// all that keeps the last phase's slabs. And so does BigCache, whose blocks serve one size only.
#define TIDY_MIN HAK_MIB(4)

bool hak_magazine_tidy(struct hak_cache *cache, size_t new_bytes)
{
    const size_t used =
        hak_load_relaxed(&hak_arena.super_bytes) - hak_load_relaxed(&hak_arena.free_bytes);
    const size_t step = used / 16 > TIDY_MIN ? used / 16 : TIDY_MIN;
    cache->new_slab_bytes += new_bytes;
    if (cache->new_slab_bytes < step || cache->is_direct ||
        hak_load_relaxed(&hak_options.ace) == 0) {
        return false;
    }
    cache->new_slab_bytes = 0;
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_magazine *magazine = &cache->magazines[size_class];
        if (magazine->base != NULL && !magazine->is_used) {
            magazine_empty(cache, size_class);
        }
        magazine->is_used = false;
    }
    hak_large_expire(cache, 0);
    return true;
}

// Note a refill or a flush. Blocks that go back and forth between magazine and slab
// say that the magazine is smaller than the swing of the program: grow it.
static void magazine_note(struct hak_cache *cache, unsigned size_class, bool flush)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    magazine->is_used = true;
    if (magazine->flushed_last != flush) {
        magazine->flushed_last = flush;
        if (++magazine->swings >= 2) {
            magazine->swings = 0;
            magazine_grow(cache, size_class);
        }
    }
}

static bool magazine_start(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    const uint32_t slots = first_slots(size_class);
    hak_place *base = places_make(slots);
    if (base == NULL) {
        return false;
    }
    magazine->base = base;
    magazine->slots = slots;
    magazine->bottom = 0;
    hak_store_relaxed(&cache->top[size_class], base + 1);
    return true;
}

void *hak_magazine_refill(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    HAK_ASSERT(hak_place_load(hak_load_relaxed(&cache->top[size_class]) - 1) == NULL);
    if (magazine->base == NULL) {
        if (!magazine_start(cache, size_class)) {
            return hak_cache_take(cache, size_class);
        }
    } else {
        void *block = hak_steal_settle(cache, size_class);
        if (block != NULL) {
            return block; // it only looked empty
        }
        magazine->bottom = 0;
        hak_store_relaxed(&cache->top[size_class], magazine->base + 1);
        magazine_note(cache, size_class, false);
    }
    magazine->is_refilled = true;
    hak_count(&cache->class_counts[size_class].refills, 1);
    hak_inbox_refill(cache, size_class, (magazine->slots + 1) / 2);
    hak_place *top = hak_load_relaxed(&cache->top[size_class]);
    if (top == magazine->base + 1) {
        // Half, so that frees that follow find room.
        void *blocks[REFILL_MAX];
        uint32_t want = (magazine->slots + 1) / 2;
        want = want < REFILL_MAX ? want : REFILL_MAX;
        unsigned got = cache_take(cache, size_class, blocks, want);
        for (unsigned i = 0; i < got; i++) {
            hak_place_store(top + i, blocks[i]);
        }
        top += got;
        if (got == 0) {
            return NULL;
        }
    }
    hak_count(&cache->class_counts[size_class].refilled_blocks, (size_t)(top - magazine->base) - 1);
    HAK_PROBE2("hakmem", "refill", hak_classes[size_class].bytes, top - magazine->base - 1);
    hak_store_relaxed(&cache->top[size_class], top - 1);
    return hak_place_load(top - 1);
}

void hak_magazine_spill(struct hak_cache *cache, unsigned size_class, void *block)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    // A class may be freed before it is ever allocated here: after a thread took over a cache.
    if (magazine->base == NULL && !magazine_start(cache, size_class)) {
        hak_inbox_route(cache, cache, block);
        return;
    }
    hak_steal_unfence(cache, size_class);
    uint32_t held = magazine_held(cache, size_class);
    if (magazine->bottom == 0 && held == magazine->slots) {
        magazine_note(cache, size_class, true);
        held = magazine_held(cache, size_class);
    }
    if (held == magazine->slots) {
        hak_count(&cache->class_counts[size_class].spills, 1);
        // The lower half is the coldest: it goes, the rest moves down.
        uint32_t gone = magazine->bottom;
        if (gone < (held + 1) / 2) {
            magazine_put(cache, size_class, gone + 1, (held + 1) / 2);
            gone = (held + 1) / 2;
        }
        HAK_PROBE2("hakmem", "spill", hak_classes[size_class].bytes, gone);
        hak_place *base = magazine->base;
        for (uint32_t i = gone + 1; i <= held; i++) {
            hak_place_store(&base[i - gone], hak_place_load(&base[i]));
        }
        held -= gone;
        magazine->bottom = 0;
    }
    hak_place_store(&magazine->base[held + 1], block);
    hak_store_relaxed(&cache->top[size_class], magazine->base + held + 2);
}

// Have the kernel give the pages of a block, whose content stays.
static void block_touch(char *block, size_t bytes)
{
    const size_t page = hak_os_page_bytes();
    for (size_t offset = 0; offset < bytes; offset += page - (uintptr_t)(block + offset) % page) {
        volatile char *byte = block + offset;
        *byte = *byte;
    }
}

// False without memory.
static bool prewarm_class(struct hak_cache *cache, unsigned size_class)
{
    if (hak_place_load(hak_load_relaxed(&cache->top[size_class]) - 1) == NULL) {
        void *block = hak_magazine_refill(cache, size_class);
        if (block == NULL) {
            return false;
        }
        hak_magazine_spill(cache, size_class, block); // it fits: it has just come out
    }
    const struct hak_magazine *magazine = &cache->magazines[size_class];
    for (uint32_t held = magazine_held(cache, size_class); held > magazine->bottom; held--) {
        void *block = hak_place_load(&magazine->base[held]);
        if (block != NULL) { // a thief's fence
            block_touch(block, hak_classes[size_class].bytes);
        }
    }
    return true;
}

void hak_magazine_prewarm(struct hak_cache *cache)
{
    unsigned size_class = cache->is_direct ? HAK_SMALL_CLASSES : 0;
    while (size_class < HAK_SMALL_CLASSES &&
           (!hak_pools_have(size_class) || prewarm_class(cache, size_class))) {
        size_class++;
    }
}

void hak_magazine_flush_all(struct hak_cache *cache)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        if (cache->magazines[size_class].base != NULL) {
            magazine_empty(cache, size_class);
            hak_cache_end_idle_slabs(cache, size_class);
        }
    }
}

void hak_magazine_forget_all(struct hak_cache *cache)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_magazine *magazine = &cache->magazines[size_class];
        if (magazine->base != NULL) {
            magazine->fence = 0;
            magazine->bottom = 0;
            hak_store_relaxed(&cache->top[size_class], magazine->base + 1);
        }
    }
}

void hak_magazine_end_all(struct hak_cache *cache)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_magazine *magazine = &cache->magazines[size_class];
        hak_store_relaxed(&cache->top[size_class], &hak_nothing[1]);
        if (magazine->base != NULL) {
            hak_pool_give((void *)magazine->base, (magazine->slots + 2) * sizeof *magazine->base);
            magazine->base = NULL;
            magazine->slots = 0;
        }
    }
    cache->magazine_bytes = 0;
}
