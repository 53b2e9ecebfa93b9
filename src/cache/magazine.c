// magazine.c -- see magazine.h.
#include "cache/magazine.h"

#include <string.h>

#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "base/probe.h"
#include "base/variants.h"
#include "cache/bigcache.h"
#include "cache/remote.h"
#include "cache/seldom.h"
#include "cache/steal.h"
#include "meta/pool.h"
#include "os/os.h"
#include "owner/slabs.h"
#include "slab/arena.h"

// An array of so many places, the two marks among them; NULL without memory.
static hak_place *places_make(unsigned log2)
{
    const size_t places = (size_t)1 << log2;
    hak_place *base = hak_pool_take(places * sizeof *base);
    if (base != NULL) {
        hak_place_store(&base[places - 1], HAK_FULL);
    }
    return base;
}

// The fewest places that a magazine has: ACE begins with them.
static unsigned least_log2(unsigned size_class)
{
    return hak_classes[size_class].magazine_log2;
}

// And without ACE: four times as many, which serve best of 1 to 16 times (docs/decisions/0041).
static unsigned fixed_log2(unsigned size_class)
{
    return least_log2(size_class) + 2;
}

// What a magazine of so many places may hold more than the smallest.
static size_t grown_by(unsigned size_class, unsigned log2)
{
    return (((size_t)1 << log2) - ((size_t)1 << least_log2(size_class))) *
           hak_classes[size_class].bytes;
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

// The magazine has another array, or none (NULL), in place of the one that it had, or none.
static void set_places(struct hak_cache *cache, unsigned size_class, hak_place *base, unsigned log2)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    if (magazine->base != NULL) {
        cache->magazine_bytes -= grown_by(size_class, magazine->places_log2);
        hak_pool_give((void *)magazine->base, sizeof *base << magazine->places_log2);
    }
    cache->magazine_bytes += base != NULL ? grown_by(size_class, log2) : 0;
    count_grown(cache, cache->magazine_bytes);
    hak_set_bit(cache->started, size_class, base != NULL);
    hak_slabs_of(&cache->owner, size_class); // statistics look at classes with lists alone
    magazine->base = base;
    magazine->places_log2 = (uint8_t)log2;
}

void hak_magazine_sleep(struct hak_cache *cache)
{
    count_grown(cache, 0);
}

static bool has_ace(const struct hak_cache *cache)
{
    return hak_variants_value(HAK_OPTION_IS_ace, hak_cache_group(cache)) != 0;
}

// What the cache's grown magazines may hold.
static size_t magazines_most(const struct hak_cache *cache)
{
    return hak_variants_value(HAK_OPTION_IS_magazine_bytes, hak_cache_group(cache));
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

// Another array for the magazine, with room for the blocks that it holds. The magazine is
// unfenced, its bottom 0. False without memory.
static bool magazine_resize(struct hak_cache *cache, unsigned size_class, unsigned log2)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    hak_place *base = places_make(log2);
    if (base == NULL) {
        return false; // the old one still works
    }
    const uint32_t held = hak_magazine_held(cache, size_class);
    for (uint32_t i = 1; i <= held; i++) {
        hak_place_store(&base[i], hak_place_load(&magazine->base[i]));
    }
    set_places(cache, size_class, base, log2);
    hak_cache_set_top(cache, size_class, base + held + 1);
    return true;
}

// Put `count` blocks of the class back to where they belong.
static void put_back(struct hak_cache *cache,
                     unsigned size_class,
                     hak_place *places,
                     uint32_t count) HAK_REQUIRES(&cache->owner.lock)
{
    hak_count(&cache->magazines[size_class].counts.spilled_blocks, count);
    cache->owner.returned_bytes += count * (size_t)hak_classes[size_class].bytes;
    for (uint32_t i = 0; i < count;) {
        i += hak_remote_route_row(cache, &cache->owner, &places[i], count - i);
    }
}

// Put everything back.
static void magazine_empty(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    hak_steal_unfence(cache, size_class);
    put_back(cache,
             size_class,
             &magazine->base[magazine->bottom + 1],
             hak_magazine_held(cache, size_class) - magazine->bottom);
    magazine->bottom = 0;
    hak_cache_set_top(cache, size_class, magazine->base + 1);
}

void hak_magazine_shrink(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (cache->magazines[size_class].places_log2 > least_log2(size_class)) {
        magazine_empty(cache, size_class);
        magazine_resize(cache, size_class, least_log2(size_class));
    }
}

bool hak_magazine_shrink_one(struct hak_cache *cache, unsigned growing)
    HAK_REQUIRES(&cache->owner.lock)
{
    for (unsigned looks = 0; looks < 2 * HAK_SMALL_CLASSES; looks++) {
        const unsigned size_class = cache->magazine_hand;
        struct hak_magazine *magazine = &cache->magazines[size_class];
        cache->magazine_hand = (size_class + 1) % HAK_SMALL_CLASSES;
        if (magazine->base == NULL) {
            continue; // as in hak_magazine_tidy
        }
        if (size_class != growing && magazine->places_log2 > least_log2(size_class) &&
            !magazine->is_used) {
            magazine_empty(cache, size_class);
            return magazine_resize(cache, size_class, least_log2(size_class));
        }
        magazine->is_used = false;
    }
    return false;
}

// It has not grown yet, and would hold no more than a unit with as many places as without ACE.
static bool is_first(const struct hak_magazine *magazine, unsigned size_class)
{
    const unsigned fixed = fixed_log2(size_class);
    return magazine->places_log2 < fixed &&
           (size_t)hak_classes[size_class].bytes << fixed <= HAK_UNIT_BYTES;
}

// What it grows to: twice as many places; at first as many as without ACE, since most that swing at all swing that wide.
static unsigned next_log2(const struct hak_magazine *magazine, unsigned size_class)
{
    return is_first(magazine, size_class) ? fixed_log2(size_class) : magazine->places_log2 + 1U;
}

// Within the budget.
static void magazine_grow(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    const unsigned log2 = next_log2(magazine, size_class);
    const size_t more = grown_by(size_class, log2) - grown_by(size_class, magazine->places_log2);
    const size_t most = magazines_most(cache);
    while (more <= most && !may_grow(cache, more, most)) {
        if (!hak_magazine_shrink_one(cache, size_class)) {
            return;
        }
    }
    if (more <= most) {
        magazine_resize(cache, size_class, log2);
    }
}

static void magazine_end(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (cache->magazines[size_class].base != NULL) {
        magazine_empty(cache, size_class);
        set_places(cache, size_class, NULL, 0);
    }
    hak_cache_set_top(cache, size_class, &hak_nothing[1]);
}

void hak_magazine_fit(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    const size_t most = magazines_most(cache);
    const bool is_fixed = !has_ace(cache);
    HAK_EACH_MAGAZINE (cache, size_class) {
        const unsigned log2 = cache->magazines[size_class].places_log2;
        if ((log2 > least_log2(size_class) && cache->magazine_bytes > most) ||
            (log2 > fixed_log2(size_class) && is_fixed)) {
            magazine_end(cache, size_class);
        }
    }
}

// A block in a magazine holds a whole slab, and its pages. So when a thread needs slabs and these have grown, magazines that
// were not in use meanwhile give their blocks back: what they hold may be all that keeps the last phase's slabs. (In use is
// also one whose top has moved: its slab would only end, and be made again where no pages are.) And so does BigCache, whose
// blocks serve one size only. Growth of all slabs together: where as many end as are made nothing is pinned, and what is
// given back only comes back elsewhere; large blocks that come and go pin nothing either.
#define TIDY_LEAST HAK_KIB(768)
#define TIDY_MOST  HAK_MIB(2) // unless the thirty-second is more

// By how much they have to grow: a thirty-second, at least half of a small heap.
static size_t tidy_step(size_t used)
{
    const size_t half = used / 2 > TIDY_LEAST ? used / 2 : TIDY_LEAST;
    const size_t small = half < TIDY_MOST ? half : TIDY_MOST;
    return used / 32 > small ? used / 32 : small;
}

bool hak_magazine_tidy(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    const size_t used = hak_load_relaxed(&hak_arena.slab_bytes);
    if (used < cache->tidied_at) {
        cache->tidied_at = used;
    }
    if (used - cache->tidied_at < tidy_step(used) || cache->is_direct || !has_ace(cache)) {
        return false;
    }
    cache->tidied_at = used;
    HAK_EACH_MAGAZINE (cache, size_class) {
        struct hak_magazine *magazine = &cache->magazines[size_class];
        const bool has_moved =
            (uint16_t)hak_cache_place(cache, size_class) != magazine->tidied_place;
        if (!magazine->is_used && !has_moved) {
            magazine_empty(cache, size_class);
        }
        magazine->is_used = false;
        magazine->tidied_place = (uint16_t)hak_cache_place(cache, size_class);
    }
    hak_bigcache_expire(cache, 0);
    return true;
}

// Up to a unit always: its last slab may hold as much anyway. And where no time may decide.
static bool is_to_grow(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    const size_t more = (size_t)hak_classes[size_class].bytes << magazine->places_log2;
    const struct hak_growth_question question = {
        .now_ns = hak_os_about_now_ns(),
        .refills = hak_load_relaxed(&cache->magazines[size_class].counts.refills),
        .refilled_blocks = hak_load_relaxed(&cache->magazines[size_class].counts.refilled_blocks),
        .more_bytes = more,
        .heap_bytes = hak_arena_used_bytes(),
    };
    return hak_growth_ask(&magazine->growth, question) || 2 * more <= HAK_UNIT_BYTES ||
           hak_load_relaxed(&hak_options.deterministic) != 0;
}

// Blocks that go back and forth between magazine and slab
// say that the magazine is smaller than the swing of the program: grow it, if that is worth it.
void hak_magazine_note(struct hak_cache *cache, unsigned size_class, bool flush)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    magazine->is_used = true;
    if (HAK_UNLIKELY(cache->counted_bytes != cache->magazine_bytes)) {
        count_grown(cache, cache->magazine_bytes); // it slept
    }
    if (magazine->flushed_last == flush) {
        if (magazine->in_a_row < HAK_SAME_MOST) {
            magazine->in_a_row++;
        } else if (!flush && is_first(magazine, size_class) && has_ace(cache)) {
            magazine_grow(cache, size_class);
        }
    } else {
        magazine->in_a_row = 0;
        magazine->flushed_last = flush;
        magazine->has_swung = !magazine->has_swung;
        if (!magazine->has_swung && has_ace(cache) && is_to_grow(cache, size_class)) {
            magazine_grow(cache, size_class);
        }
    }
}

static bool magazine_start(struct hak_cache *cache, unsigned size_class)
{
    const size_t fixed_bytes = grown_by(size_class, fixed_log2(size_class));
    const bool is_fixed = !has_ace(cache) && may_grow(cache, fixed_bytes, magazines_most(cache));
    const unsigned log2 = is_fixed ? fixed_log2(size_class) : least_log2(size_class);
    hak_place *base = places_make(log2);
    if (base == NULL) {
        return false;
    }
    set_places(cache, size_class, base, log2);
    cache->magazines[size_class].bottom = 0;
    hak_cache_set_top(cache, size_class, base + 1);
    return true;
}

bool hak_magazine_start_if_due(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    return !cache->magazines[size_class].is_ruled && !hak_seldom_asked(cache, size_class) &&
           magazine_start(cache, size_class);
}

// Move the blocks above those that are gone from it down to where these were. There is no fence.
static void magazine_drop_down(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    const uint32_t held = hak_magazine_held(cache, size_class);
    const uint32_t gone = magazine->bottom;
    for (uint32_t i = gone + 1; gone > 0 && i <= held; i++) {
        hak_place_store(&magazine->base[i - gone], hak_place_load(&magazine->base[i]));
    }
    magazine->bottom = 0;
    hak_cache_set_top(cache, size_class, magazine->base + held - gone + 1);
}

static HAK_NOINLINE void magazine_spill(struct hak_cache *cache, unsigned size_class, void *block)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    hak_steal_unfence(cache, size_class);
    uint32_t held = hak_magazine_held(cache, size_class);
    if (magazine->bottom == 0 && held == hak_cache_magazine_slots(magazine)) {
        hak_magazine_note(cache, size_class, true);
        held = hak_magazine_held(cache, size_class);
    }
    if (held == hak_cache_magazine_slots(magazine)) {
        hak_count(&cache->magazines[size_class].counts.spills, 1);
        // The lower half is the coldest: it goes, the rest moves down.
        const uint32_t part = hak_magazine_part(magazine, held);
        uint32_t gone = magazine->bottom;
        if (gone < part) {
            put_back(cache, size_class, &magazine->base[gone + 1], part - gone);
            gone = part;
        }
        HAK_PROBE2("hakmem", "spill", hak_classes[size_class].bytes, gone);
        magazine->bottom = gone;
        magazine_drop_down(cache, size_class);
        held -= gone;
    }
    hak_place_store(&magazine->base[held + 1], block);
    hak_cache_set_top(cache, size_class, magazine->base + held + 2);
}

void hak_magazine_spill(struct hak_cache *cache, unsigned size_class, void *block)
    HAK_REQUIRES(&cache->owner.lock)
{
    // A class may be freed before it is ever allocated here: after a thread took over a cache.
    if (cache->magazines[size_class].base == NULL &&
        !hak_magazine_start_if_due(cache, size_class)) {
        hak_place place = block;
        put_back(cache, size_class, &place, 1);
    } else {
        magazine_spill(cache, size_class, block);
    }
}

void hak_magazine_flush_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    HAK_EACH_MAGAZINE (cache, size_class) {
        magazine_empty(cache, size_class);
    }
}

void hak_magazine_forget_all(struct hak_cache *cache)
{
    HAK_EACH_MAGAZINE (cache, size_class) {
        struct hak_magazine *magazine = &cache->magazines[size_class];
        magazine->fence = 0;
        magazine->bottom = 0;
        hak_cache_set_top(cache, size_class, magazine->base + 1);
    }
}

void hak_magazine_end_all(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    HAK_EACH_MAGAZINE (cache, size_class) {
        magazine_end(cache, size_class);
    }
}

void hak_magazine_move_tops(struct hak_cache *cache, unsigned apart)
    HAK_REQUIRES(&cache->owner.lock)
{
    HAK_ASSERT(cache->apart != apart);
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        hak_steal_unfence(cache, size_class);
        hak_store_relaxed(&cache->top[apart + size_class], hak_cache_top(cache, size_class));
        hak_cache_set_top(cache, size_class, &hak_nothing[1]);
    }
    cache->apart = apart;
}

void hak_magazine_retire(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    magazine_end(cache, size_class);
    magazine->is_refilled = false;
    magazine->is_ruled = true;
}

void hak_magazine_renew(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    if (!hak_seldom_is_never(cache)) {
        hak_magazine_end_all(cache);
        cache->seldom_calls = 0;
        memset(cache->seldom_of_class, 0, sizeof cache->seldom_of_class);
    }
}
