// magazine.c -- see magazine.h.
#include "cache/magazine.h"

#include "base/arms.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "base/probe.h"
#include "cache/fast_path.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "cache/sampler.h"
#include "cache/seldom.h"
#include "cache/site.h"
#include "cache/steal.h"
#include "cache/tidy.h"
#include "meta/pool.h"
#include "os/os.h"
#include "slab/arena.h"

// Blocks that one refill moves at most: enough that its own cost no longer shows.
enum { REFILL_MAX = 128 };

// An array for `slots` blocks and its two marks; NULL without memory.
static hak_place *places_make(uint32_t slots)
{
    hak_place *base = hak_pool_take((slots + 2) * sizeof *base);
    if (base != NULL) {
        hak_place_store(&base[slots + 1], HAK_FULL);
    }
    return base;
}

// The fewest places that a magazine has: ACE begins with them.
static uint32_t least_slots(unsigned index)
{
    return (1U << hak_classes[hak_magazine_class(index)].magazine_log2) - 2;
}

// And without ACE: four times as many, which serve best of 1 to 16 times (docs/decisions/0019).
static uint32_t fixed_slots(unsigned index)
{
    return 4 * (least_slots(index) + 2) - 2;
}

// What a magazine of so many places may hold more than the smallest.
static size_t grown_by(unsigned index, uint32_t slots)
{
    return ((size_t)slots - least_slots(index)) * hak_classes[hak_magazine_class(index)].bytes;
}

// Of blocks that the grown magazines of all caches may hold, but those that sleep: the sweeper takes theirs.
static _Atomic(size_t) grown_bytes;

size_t hak_magazine_grown_bytes(void)
{
    return hak_load_relaxed(&grown_bytes);
}

static void count_grown(struct hak_cache *cache, size_t bytes)
{
    hak_add_relaxed(&grown_bytes, bytes - cache->counted_bytes);
    cache->counted_bytes = bytes;
}

void hak_magazine_sleep(struct hak_cache *cache)
{
    count_grown(cache, 0);
}

static bool has_ace(const struct hak_cache *cache)
{
    return hak_arms_value(HAK_OPTION_IS_ace, hak_cache_group(cache)) != 0;
}

// What the cache's grown magazines may hold.
static size_t magazines_most(const struct hak_cache *cache)
{
    return hak_arms_value(HAK_OPTION_IS_magazine_bytes, hak_cache_group(cache));
}

// What all together may hold: a quarter of the heap, or what one alone may.
static size_t grown_most(size_t one)
{
    const size_t used = hak_arena_used_bytes();
    return used / 4 > one ? used / 4 : one;
}

// May the cache's magazines grow by `more`, if they may hold `most`?
static bool may_grow(const struct hak_cache *cache, size_t more, size_t most)
{
    return cache->magazine_bytes + more <= most &&
           hak_load_relaxed(&grown_bytes) + more <= grown_most(most);
}

static void note_started(struct hak_cache *cache, unsigned index, bool is_started)
{
    const uint64_t bit = UINT64_C(1) << (index % 64);
    uint64_t *word = &cache->started[index / 64];
    *word = is_started ? *word | bit : *word & ~bit;
}

static uint32_t magazine_held(const struct hak_cache *cache, unsigned index)
{
    return (uint32_t)(hak_load_relaxed(&cache->top[index]) - cache->magazines[index].base) - 1;
}

// Another array for the magazine, with room for the blocks that it holds. The magazine is
// unfenced, its bottom 0. False without memory.
static bool magazine_resize(struct hak_cache *cache, unsigned index, uint32_t slots)
{
    struct hak_magazine *magazine = &cache->magazines[index];
    hak_place *base = places_make(slots);
    if (base == NULL) {
        return false; // the old one still works
    }
    const uint32_t held = magazine_held(cache, index);
    for (uint32_t i = 1; i <= held; i++) {
        hak_place_store(&base[i], hak_place_load(&magazine->base[i]));
    }
    hak_pool_give((void *)magazine->base, (magazine->slots + 2) * sizeof *base);
    cache->magazine_bytes += grown_by(index, slots) - grown_by(index, magazine->slots);
    count_grown(cache, cache->magazine_bytes);
    magazine->base = base;
    magazine->slots = slots;
    hak_store_relaxed(&cache->top[index], base + held + 1);
    return true;
}

// Put the blocks in places first..last back to where they belong.
static void magazine_put(struct hak_cache *cache, unsigned index, uint32_t first, uint32_t last)
    HAK_REQUIRES(&cache->lock)
{
    hak_place *base = cache->magazines[index].base;
    hak_count(&cache->class_counts[hak_magazine_class(index)].spilled_blocks, last + 1 - first);
    cache->returned_bytes +=
        (last + 1 - first) * (size_t)hak_classes[hak_magazine_class(index)].bytes;
    while (first <= last) {
        first += hak_inbox_route_row(cache, cache, &base[first], last - first + 1);
    }
}

// Put everything back.
static void magazine_empty(struct hak_cache *cache, unsigned index) HAK_REQUIRES(&cache->lock)
{
    struct hak_magazine *magazine = &cache->magazines[index];
    hak_steal_unfence(cache, index);
    magazine_put(cache, index, magazine->bottom + 1, magazine_held(cache, index));
    magazine->bottom = 0;
    hak_store_relaxed(&cache->top[index], magazine->base + 1);
}

void hak_magazine_shrink(struct hak_cache *cache, unsigned size_class) HAK_REQUIRES(&cache->lock)
{
    const unsigned index = hak_sampler_magazine(cache, size_class);
    if (cache->magazines[index].slots > least_slots(index)) {
        magazine_empty(cache, index);
        magazine_resize(cache, index, least_slots(index));
    }
}

bool hak_magazine_shrink_one(struct hak_cache *cache, unsigned growing) HAK_REQUIRES(&cache->lock)
{
    for (unsigned looks = 0; looks < 2 * HAK_MAGAZINES; looks++) {
        const unsigned index = cache->magazine_hand;
        struct hak_magazine *magazine = &cache->magazines[index];
        cache->magazine_hand = (index + 1) % HAK_MAGAZINES;
        if (magazine->base == NULL) {
            continue; // as in hak_magazine_tidy
        }
        if (index != growing && magazine->slots > least_slots(index) && !magazine->is_used) {
            magazine_empty(cache, index);
            return magazine_resize(cache, index, least_slots(index));
        }
        magazine->is_used = false;
    }
    return false;
}

// What it grows to: twice as many places; at first, where that is no more than a unit, as many as without ACE, since
// most that swing at all swing that wide.
static uint32_t next_slots(const struct hak_magazine *magazine, unsigned index)
{
    const uint32_t fixed = fixed_slots(index);
    const size_t fixed_bytes = (fixed + 2) * (size_t)hak_classes[hak_magazine_class(index)].bytes;
    const bool is_first = magazine->slots < fixed && fixed_bytes <= HAK_UNIT_BYTES;
    return is_first ? fixed : 2 * (magazine->slots + 2) - 2;
}

// Within the budget.
static void magazine_grow(struct hak_cache *cache, unsigned index) HAK_REQUIRES(&cache->lock)
{
    struct hak_magazine *magazine = &cache->magazines[index];
    const uint32_t slots = next_slots(magazine, index);
    const size_t more = grown_by(index, slots) - grown_by(index, magazine->slots);
    const size_t most = magazines_most(cache);
    while (more <= most && !may_grow(cache, more, most)) {
        if (!hak_magazine_shrink_one(cache, index)) {
            return;
        }
    }
    if (more <= most) {
        magazine_resize(cache, index, slots);
    }
}

static void magazine_end(struct hak_cache *cache, unsigned index)
{
    struct hak_magazine *magazine = &cache->magazines[index];
    hak_store_relaxed(&cache->top[index], &hak_nothing[1]);
    if (magazine->base != NULL) {
        cache->magazine_bytes -= grown_by(index, magazine->slots);
        count_grown(cache, cache->magazine_bytes);
        hak_pool_give((void *)magazine->base, (magazine->slots + 2) * sizeof *magazine->base);
        magazine->base = NULL;
        magazine->slots = 0;
        note_started(cache, index, false);
    }
}

void hak_magazine_fit(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    const size_t most = magazines_most(cache);
    const bool is_fixed = !has_ace(cache);
    for (unsigned index = hak_magazine_from(cache, 0); index < HAK_MAGAZINES;
         index = hak_magazine_from(cache, index + 1)) {
        const uint32_t slots = cache->magazines[index].slots;
        if ((slots > least_slots(index) && cache->magazine_bytes > most) ||
            (slots > fixed_slots(index) && is_fixed)) {
            magazine_empty(cache, index);
            magazine_end(cache, index);
        }
    }
}

bool hak_magazine_tidy(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    const size_t used = hak_load_relaxed(&hak_arena.slab_bytes);
    if (used < cache->tidied_at) {
        cache->tidied_at = used;
    }
    if (used - cache->tidied_at < hak_tidy_step(used) || cache->is_direct || !has_ace(cache)) {
        return false;
    }
    cache->tidied_at = used;
    for (unsigned index = hak_magazine_from(cache, 0); index < HAK_MAGAZINES;
         index = hak_magazine_from(cache, index + 1)) {
        struct hak_magazine *magazine = &cache->magazines[index];
        const bool has_moved = hak_load_relaxed(&cache->top[index]) != magazine->tidied_top;
        if (!magazine->is_used && !has_moved) {
            magazine_empty(cache, index);
        }
        magazine->is_used = false;
        magazine->tidied_top = hak_load_relaxed(&cache->top[index]);
    }
    hak_large_expire(cache, 0);
    return true;
}

// Up to a unit always: its last slab may hold as much anyway. And where no time may decide.
static bool is_worth_growing(struct hak_cache *cache, unsigned index) HAK_REQUIRES(&cache->lock)
{
    const unsigned size_class = hak_magazine_class(index);
    const size_t more = (size_t)(cache->magazines[index].slots + 2) * hak_classes[size_class].bytes;
    const struct hak_worth_question question = {
        .now_ns = hak_os_now_ns(),
        .refills = hak_load_relaxed(&cache->class_counts[size_class].refills),
        .refilled_blocks = hak_load_relaxed(&cache->class_counts[size_class].refilled_blocks),
        .more_bytes = more,
        .heap_bytes = hak_arena_used_bytes(),
    };
    return hak_worth_ask(&cache->magazines[size_class].worth, question) ||
           2 * more <= HAK_UNIT_BYTES || hak_load_relaxed(&hak_options.deterministic) != 0;
}

// Note a refill or a flush. Blocks that go back and forth between magazine and slab
// say that the magazine is smaller than the swing of the program: grow it, if that is worth it.
static void magazine_note(struct hak_cache *cache, unsigned index, bool flush)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_magazine *of_class = &cache->magazines[hak_magazine_class(index)];
    cache->magazines[index].is_used = true;
    if (HAK_UNLIKELY(cache->counted_bytes != cache->magazine_bytes)) {
        count_grown(cache, cache->magazine_bytes); // it slept
    }
    if (of_class->flushed_last != flush) {
        of_class->flushed_last = flush;
        if (++of_class->swings >= 2) {
            of_class->swings = 0;
            if (has_ace(cache) && is_worth_growing(cache, index)) {
                magazine_grow(cache, index);
            }
        }
    }
}

static bool magazine_start(struct hak_cache *cache, unsigned index)
{
    struct hak_magazine *magazine = &cache->magazines[index];
    const size_t fixed_bytes = grown_by(index, fixed_slots(index));
    const bool is_fixed = !has_ace(cache) && may_grow(cache, fixed_bytes, magazines_most(cache));
    const uint32_t slots = is_fixed ? fixed_slots(index) : least_slots(index);
    hak_place *base = places_make(slots);
    if (base == NULL) {
        return false;
    }
    cache->magazine_bytes += grown_by(index, slots);
    count_grown(cache, cache->magazine_bytes);
    magazine->base = base;
    magazine->slots = slots;
    magazine->bottom = 0;
    note_started(cache, index, true);
    hak_store_relaxed(&cache->top[index], base + 1);
    return true;
}

// False when the class does without: companions serve it, it is seldom asked for, or there is no memory.
HAK_INLINE bool magazine_start_if_due(struct hak_cache *cache, unsigned index)
    HAK_REQUIRES(&cache->lock)
{
    const unsigned size_class = hak_magazine_class(index);
    return !cache->magazines[size_class].is_ruled && !hak_seldom_asked(cache, size_class) &&
           magazine_start(cache, index);
}

// Move the blocks above those that are gone from it down to where these were. There is no fence.
static void magazine_drop_down(struct hak_cache *cache, unsigned index)
{
    struct hak_magazine *magazine = &cache->magazines[index];
    const uint32_t held = magazine_held(cache, index);
    const uint32_t gone = magazine->bottom;
    for (uint32_t i = gone + 1; gone > 0 && i <= held; i++) {
        hak_place_store(&magazine->base[i - gone], hak_place_load(&magazine->base[i]));
    }
    magazine->bottom = 0;
    hak_store_relaxed(&cache->top[index], magazine->base + held - gone + 1);
}

// Apart, so that a class without a magazine does not pay for the array on the stack.
static HAK_NOINLINE void *magazine_fill(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->lock)
{
    const unsigned index = hak_sampler_magazine(cache, size_class);
    const struct hak_magazine *magazine = &cache->magazines[index];
    hak_count(&cache->class_counts[size_class].refills, 1);
    hak_inbox_refill(cache, index, (magazine->slots + 1) / 2);
    // Half, so that frees that follow find room. Parcels may have changed the magazine.
    const uint32_t want = hak_site_refill(cache, size_class, (magazine->slots + 1) / 2);
    hak_place *top = hak_load_relaxed(&cache->top[index]);
    if (magazine_held(cache, index) == 0) {
        void *blocks[REFILL_MAX];
        const uint32_t most = want < REFILL_MAX ? want : REFILL_MAX;
        const unsigned got = hak_cache_take_many(cache, size_class, blocks, most);
        if (got == 0) {
            return NULL;
        }
        for (unsigned i = 0; i < got; i++) {
            hak_place_store(top + i, blocks[i]);
        }
        top += got;
    }
    hak_count(&cache->class_counts[size_class].refilled_blocks, (size_t)(top - magazine->base) - 1);
    HAK_PROBE2("hakmem", "refill", hak_classes[size_class].bytes, top - magazine->base - 1);
    hak_store_relaxed(&cache->top[index], top - 1);
    return hak_place_load(top - 1);
}

void *hak_magazine_refill(struct hak_cache *cache, unsigned size_class) HAK_REQUIRES(&cache->lock)
{
    const unsigned index = hak_sampler_magazine(cache, size_class);
    struct hak_magazine *magazine = &cache->magazines[index];
    HAK_ASSERT(hak_place_load(hak_load_relaxed(&cache->top[index]) - 1) == NULL);
    cache->magazines[size_class].is_refilled |= !cache->magazines[size_class].is_ruled;
    if (magazine->base == NULL) {
        if (!magazine_start_if_due(cache, index)) {
            return hak_seldom_take(cache, size_class);
        }
    } else {
        void *block = hak_steal_settle(cache, index);
        if (block != NULL) {
            return block; // it only looked empty
        }
        magazine->bottom = 0;
        hak_store_relaxed(&cache->top[index], magazine->base + 1);
        magazine_note(cache, index, false);
    }
    return magazine_fill(cache, size_class);
}

static HAK_NOINLINE void magazine_spill(struct hak_cache *cache, unsigned index, void *block)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_magazine *magazine = &cache->magazines[index];
    hak_steal_unfence(cache, index);
    uint32_t held = magazine_held(cache, index);
    if (magazine->bottom == 0 && held == magazine->slots) {
        magazine_note(cache, index, true);
        held = magazine_held(cache, index);
    }
    if (held == magazine->slots) {
        hak_count(&cache->class_counts[hak_magazine_class(index)].spills, 1);
        // The lower half is the coldest: it goes, the rest moves down.
        uint32_t gone = magazine->bottom;
        if (gone < (held + 1) / 2) {
            magazine_put(cache, index, gone + 1, (held + 1) / 2);
            gone = (held + 1) / 2;
        }
        HAK_PROBE2("hakmem", "spill", hak_classes[hak_magazine_class(index)].bytes, gone);
        magazine->bottom = gone;
        magazine_drop_down(cache, index);
        held -= gone;
    }
    hak_place_store(&magazine->base[held + 1], block);
    hak_store_relaxed(&cache->top[index], magazine->base + held + 2);
}

void hak_magazine_spill(struct hak_cache *cache, unsigned index, void *block)
    HAK_REQUIRES(&cache->lock)
{
    // A class may be freed before it is ever allocated here: after a thread took over a cache.
    if (cache->magazines[index].base == NULL && !magazine_start_if_due(cache, index)) {
        hak_seldom_put(cache, hak_magazine_class(index), block);
    } else {
        magazine_spill(cache, index, block);
    }
}

void hak_magazine_flush_all(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    for (unsigned index = hak_magazine_from(cache, 0); index < HAK_MAGAZINES;
         index = hak_magazine_from(cache, index + 1)) {
        magazine_empty(cache, index);
    }
}

void hak_magazine_forget_all(struct hak_cache *cache)
{
    for (unsigned index = hak_magazine_from(cache, 0); index < HAK_MAGAZINES;
         index = hak_magazine_from(cache, index + 1)) {
        struct hak_magazine *magazine = &cache->magazines[index];
        magazine->fence = 0;
        magazine->bottom = 0;
        hak_store_relaxed(&cache->top[index], magazine->base + 1);
    }
}

void hak_magazine_end_all(struct hak_cache *cache)
{
    for (unsigned index = hak_magazine_from(cache, 0); index < HAK_MAGAZINES;
         index = hak_magazine_from(cache, index + 1)) {
        magazine_end(cache, index);
    }
}

// The magazine `from`, with what it holds, becomes `to`, which was none. What stands in a magazine for its
// class stays.
static void magazine_move(struct hak_cache *cache, unsigned to, unsigned from)
{
    struct hak_magazine *target = &cache->magazines[to];
    struct hak_magazine *source = &cache->magazines[from];
    hak_steal_unfence(cache, from);
    target->base = source->base;
    target->slots = source->slots;
    target->bottom = source->bottom;
    target->is_used = source->is_used;
    source->base = NULL;
    source->slots = 0;
    note_started(cache, to, target->base != NULL);
    note_started(cache, from, false);
    hak_store_relaxed(&cache->top[to], hak_load_relaxed(&cache->top[from]));
    hak_store_relaxed(&cache->top[from], &hak_nothing[1]);
}

void hak_magazine_set_apart(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        magazine_move(cache, size_class + HAK_APART, size_class);
    }
}

void hak_magazine_set_back(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        magazine_move(cache, size_class, size_class + HAK_APART);
    }
}

void hak_magazine_retire(struct hak_cache *cache, unsigned size_class) HAK_REQUIRES(&cache->lock)
{
    const unsigned index = hak_sampler_magazine(cache, size_class);
    if (cache->magazines[index].base != NULL) {
        magazine_empty(cache, index);
    }
    magazine_end(cache, index);
    cache->magazines[size_class].is_refilled = false;
    cache->magazines[size_class].is_ruled = true;
}
