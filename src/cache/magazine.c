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

// An array of 2^log2 places, including the marks at both ends; NULL without memory.
static hak_place *places_make(unsigned log2)
{
    const size_t places = (size_t)1 << log2;
    hak_place *base = hak_pool_take(places * sizeof *base);
    if (base != NULL) {
        hak_place_store(&base[places - 1], HAK_FULL);
    }
    return base;
}

// Log2 of the fewest places of a magazine, its first size with ACE.
static unsigned least_log2(unsigned size_class)
{
    return hak_classes[size_class].magazine_log2;
}

// The same of its size without ACE: four times as many places, the best of 1 to 16 times (docs/decisions/0041).
static unsigned fixed_log2(unsigned size_class)
{
    return least_log2(size_class) + 2;
}

// How many bytes of blocks a magazine of 2^log2 places can hold beyond its smallest size.
static size_t grown_by(unsigned size_class, unsigned log2)
{
    return (((size_t)1 << log2) - ((size_t)1 << least_log2(size_class))) *
           hak_classes[size_class].bytes;
}

// The same, for the magazines of all caches, except caches that sleep: the sweeper empties those.
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

// Replace the magazine's array, if it has one, by another, or by none (NULL).
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
    hak_slabs_of(&cache->owner, size_class); // statistics look only at classes with lists
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

// How much the cache's magazines may hold beyond their smallest sizes.
static size_t magazines_most(const struct hak_cache *cache)
{
    return hak_variants_value(HAK_OPTION_IS_magazine_bytes, hak_cache_group(cache));
}

// How much the magazines of all caches may: a quarter of the heap, but at least `one`, as much as those of one cache.
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

// Move the magazine into an array of another size, which has room for its blocks. It has no
// fence, and its bottom is 0. False without memory.
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

// Put `count` blocks of the class into their slabs; those of other owners go into parcels.
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

void hak_magazine_flush(struct hak_cache *cache, unsigned size_class)
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

// How many blocks are compared with each other at most.
enum { SOUND_MOST = 128 };

bool hak_magazine_is_sound(const struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    const struct hak_magazine *magazine = &cache->magazines[size_class];
    const hak_place *places = &magazine->base[magazine->bottom + 1];
    const uint32_t count = hak_magazine_held(cache, size_class) - magazine->bottom;
    bool is_sound = count <= SOUND_MOST;
    for (uint32_t i = 0; i < count && is_sound; i++) {
        const void *block = hak_place_load(&places[i]);
        is_sound = HAK_MAP_TAG(hak_map_entry(block)) == cache->owner.tag &&
                   hak_slab_is_out(hak_slab_owned(block), block);
        for (uint32_t before = 0; before < i && is_sound; before++) {
            is_sound = hak_place_load(&places[before]) != block;
        }
    }
    return is_sound;
}

void hak_magazine_shrink(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (cache->magazines[size_class].places_log2 > least_log2(size_class)) {
        hak_magazine_flush(cache, size_class);
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
            continue; // it has no array
        }
        if (size_class != growing && magazine->places_log2 > least_log2(size_class) &&
            !magazine->is_used) {
            hak_magazine_flush(cache, size_class);
            return magazine_resize(cache, size_class, least_log2(size_class));
        }
        magazine->is_used = false;
    }
    return false;
}

// Has the magazine never grown, and would it hold at most a unit at the size without ACE?
static bool is_first(const struct hak_magazine *magazine, unsigned size_class)
{
    const unsigned fixed = fixed_log2(size_class);
    return magazine->places_log2 < fixed &&
           (size_t)hak_classes[size_class].bytes << fixed <= HAK_UNIT_BYTES;
}

// The size that it grows to: twice as many places; at first the size without ACE, since most that swing at all swing that wide.
static unsigned next_log2(const struct hak_magazine *magazine, unsigned size_class)
{
    return is_first(magazine, size_class) ? fixed_log2(size_class) : magazine->places_log2 + 1U;
}

// Grow the magazine if the budget allows it; shrinks unused magazines to make room.
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
        hak_magazine_flush(cache, size_class);
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

// A block in a magazine pins its whole slab, and the slab's pages. So when a thread needs a slab, and slabs have grown, it
// flushes the magazines that were not used meanwhile: their blocks may be all that pins the slabs of the last phase. (If its
// top has moved, a magazine was used: its slabs would be retired, and soon made again on pages that are not resident.) BigCache
// is emptied, too, because its blocks serve one size only. What counts is the growth of all slabs together: if as many are
// retired as made, nothing is pinned, and a flush would not help; large blocks that come and go pin nothing either.
#define TIDY_LEAST HAK_KIB(768)
#define TIDY_MOST  HAK_MIB(2) // unless the thirty-second is more

// By how much all slabs have to grow: a thirty-second; in a small heap half, from TIDY_LEAST to TIDY_MOST.
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
            hak_magazine_flush(cache, size_class);
        }
        magazine->is_used = false;
        magazine->tidied_place = (uint16_t)hak_cache_place(cache, size_class);
    }
    hak_bigcache_expire(cache, 0);
    return true;
}

// Does growing pay? Always up to a unit, because the class's last slab may hold as much anyway; and if no clock may decide.
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

// If blocks go back and forth between a magazine and slabs, the magazine is smaller than the
// program's swing: grow it, if that pays.
void hak_magazine_note(struct hak_cache *cache, unsigned size_class, bool flush)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    magazine->is_used = true;
    if (HAK_UNLIKELY(cache->counted_bytes != cache->magazine_bytes)) {
        count_grown(cache, cache->magazine_bytes); // the cache slept
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

// Move the blocks down to the start of the array, over those below the bottom, which are gone. There is no fence.
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
        // The lower half is the colder one: flush it, and move the rest down.
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
    // A thread that has taken over a dead cache may free blocks of a class before it allocates any.
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
        hak_magazine_flush(cache, size_class);
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
