// sampler.c -- see sampler.h.
#include "profile/sampler.h"

#include <string.h>

#include "base/bits.h"
#include "cache/magazine.h"
#include "cache/registry.h"
#include "meta/pool.h"
#include "os/os.h"

// One sequence for all threads: draws are rare. (Steele, Lea, Flood, "Fast splittable pseudorandom
// number generators", 2014: SplitMix64.)
#define STEP UINT64_C(0x9E3779B97F4A7C15)
static _Atomic(uint64_t) sequence;

void hak_sampler_seed(uint64_t seed)
{
    hak_store_relaxed(&sequence, seed);
}

static uint64_t random_word(void)
{
    uint64_t word = hak_add_relaxed(&sequence, STEP) + STEP;
    word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
    return word ^ (word >> 31);
}

// Draw one of `every` bytes: is it among the first `block_bytes`?
bool hak_sampler_draw(size_t block_bytes, size_t every)
{
    return every != 0 && (uint64_t)((hak_wide)random_word() * every >> 64) < block_bytes;
}

// floor(2^64 × bytes / every), for bytes < every.
static uint64_t chance_of(size_t bytes, size_t every)
{
    return (uint64_t)(((hak_wide)bytes << 64) / every);
}

// -log2(fraction / 2^64) in units of 2^-40, fraction > 0: the bits of the fraction part one by one, by
// squaring.
enum { LOG_BITS = 40 };
static uint64_t minus_log2(uint64_t fraction)
{
    const unsigned zeros = 63 - hak_highest_bit(fraction);
    uint64_t mantissa = fraction << zeros; // 1 to 2, its highest bit set
    uint64_t bits = 0;                     // log2 of the mantissa
    for (unsigned i = 0; i < LOG_BITS; i++) {
        const hak_wide square = (hak_wide)mantissa * mantissa;
        const bool is_two = (square >> 127) != 0;
        mantissa = (uint64_t)(square >> (is_two ? 64 : 63));
        bits = bits << 1 | is_two;
    }
    return ((uint64_t)(zeros + 1) << LOG_BITS) - bits;
}

// Geometric: for a uniform u the least n with (1 - chance)^n <= u.
uint64_t hak_sampler_gap(size_t block_bytes, size_t every)
{
    if (block_bytes >= every) {
        return 1;
    }
    const uint64_t miss = minus_log2(0 - chance_of(block_bytes, every));
    return minus_log2(random_word() | 1) / (miss != 0 ? miss : 1) + 1;
}

// Draw a new distance to the next sample of the class. This may be done at any time, as a geometric distribution has no
// memory. Blocks that were counted stay counted.
static void draw_locked(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    _Atomic(uint64_t) *gap = &cache->gaps[size_class];
    const uint64_t next = hak_sampler_gap(hak_classes[size_class].bytes, cache->sampling->every);
    hak_count(&cache->magazines[size_class].counts.drawn, next - hak_load_relaxed(gap));
    hak_store_relaxed(gap, next);
}

static void draw_all_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        draw_locked(cache, size_class);
    }
    for (unsigned bin = 0; bin < HAK_LARGE_BINS; bin++) {
        hak_sampler_draw_large(cache, bin);
    }
}

// The rate is judged after so many samples. It is too low below an eighth of what is allowed. The new
// distance aims at half of what is allowed.
enum { JUDGED = 64, FEW = 8 };

static void pace_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_sampling *sampling = cache->sampling;
    const uint64_t rate = hak_load_relaxed(&hak_options.sample_rate);
    const uint64_t now = hak_os_about_now_ns();
    const double allowed = (double)(now - sampling->since_ns) * (double)rate / 1e9;
    const double taken = sampling->taken;
    double every = (double)sampling->every;
    if (rate == 0 || sampling->wanted == 1) { // every block is to be a sample, at any cost
        every = 0;
    } else if (sampling->taken < JUDGED && allowed < (double)(JUDGED * FEW)) {
        return;
    } else if (taken > allowed || taken * (double)FEW <= allowed) {
        const double times = 2 * taken / (allowed + 1);
        every *= times < 16 ? times : 16;
    }
    sampling->since_ns = now;
    sampling->taken = 0;
    const size_t new_every = every > (double)sampling->wanted ? (size_t)every : sampling->wanted;
    if (new_every != sampling->every) {
        sampling->every = new_every;
        draw_all_locked(cache);
    }
}

// Heaps and caches without magazines have no distance to count down: they draw for each block.
static size_t note_drawn(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    const size_t every = hak_load_relaxed(&hak_options.sample_bytes);
    if (HAK_LIKELY(every == 0)) {
        return 0;
    }
    if (cache->is_direct && !hak_tag_is_heap(cache->owner.tag)) {
        hak_count(&cache->magazines[size_class].counts.drawn, 1);
        hak_count(&cache->magazines[size_class].counts.misses, 1);
    }
    return hak_sampler_draw(hak_classes[size_class].bytes, every) ? every : 0;
}

size_t hak_sampler_note_slow(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (cache->is_direct || hak_tag_is_heap(cache->owner.tag)) {
        return note_drawn(cache, size_class);
    }
    const size_t every = hak_sampler_every(cache); // the sample was drawn with it
    if (HAK_LIKELY(every == 0)) {
        return 0;
    }
    hak_count(&cache->magazines[size_class].counts.misses, 1);
    hak_count(&cache->gaps[size_class], -UINT64_C(1));
    if (hak_load_relaxed(&cache->gaps[size_class]) != 0) {
        return 0;
    }
    draw_locked(cache, size_class);
    if (++cache->sampling->taken >= JUDGED) {
        pace_locked(cache);
    }
    return every;
}

void hak_sampler_count(struct hak_cache *cache)
{
    if (hak_sampler_every(cache) != 0 && ++cache->sampling->taken >= JUDGED) {
        hak_lock_take(&cache->owner.lock);
        pace_locked(cache);
        hak_lock_drop(&cache->owner.lock);
    }
}

void hak_sampler_draw_large(struct hak_cache *cache, unsigned bin)
{
    cache->large_gaps[bin] = hak_sampler_gap(hak_size_class_bin_bytes(bin), cache->sampling->every);
}

// From now on free looks there. Not while the cache is asleep, which may have begun since its thread looked: then every free takes
// the slow path, which wakes the cache (owner/watch.h).
static void set_hit_tag_locked(struct hak_cache *cache, uint32_t less)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (!hak_load_relaxed(&cache->is_asleep)) {
        hak_store_relaxed(&cache->hit_tag, cache->owner.tag - less);
    }
}

static void begin_locked(struct hak_cache *cache, size_t every) HAK_REQUIRES(&cache->owner.lock)
{
    cache->sampling->wanted = every;
    cache->sampling->every = every;
    cache->sampling->since_ns = hak_os_about_now_ns();
    cache->sampling->taken = 0;
    hak_magazine_move_tops(cache, HAK_APART);
    draw_all_locked(cache);
    set_hit_tag_locked(cache, HAK_APART);
}

static void end_locked(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    set_hit_tag_locked(cache, 0);
    if (hak_sampler_every(cache) == 0) {
        return; // the option was set back after the tag was set
    }
    hak_magazine_move_tops(cache, 0);
    cache->sampling->wanted = 0;
    cache->sampling->every = 0;
    memset(cache->large_gaps, 0, sizeof cache->large_gaps);
}

void hak_sampler_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    end_locked(cache);
    // The blocks that were left until the next sample were not handed out.
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const uint64_t gap = hak_load_relaxed(&cache->gaps[size_class]);
        hak_count(&cache->magazines[size_class].counts.drawn, -gap);
        hak_store_relaxed(&cache->gaps[size_class], 0);
    }
}

HAK_COLD void hak_sampler_follow_slow(struct hak_cache *cache)
{
    const size_t every = hak_load_relaxed(&hak_options.sample_bytes);
    if (hak_load_relaxed(&sequence) == 0) {
        hak_sampler_seed(hak_os_random());
    }
    hak_lock_take(&cache->owner.lock);
    hak_magazine_fit(cache);
    if (every != 0 && cache->sampling != NULL && cache->sampling->wanted == every) {
        set_hit_tag_locked(cache, HAK_APART);
        pace_locked(cache);
    } else {
        end_locked(cache);
        if (every != 0 && cache->sampling == NULL) {
            cache->sampling = hak_pool_take(sizeof *cache->sampling);
        }
        if (every != 0 && cache->sampling != NULL) {
            begin_locked(cache, every);
        }
    }
    hak_lock_drop(&cache->owner.lock);
}

void hak_sampler_kick(void)
{
    HAK_EACH_CACHE (cache) {
        hak_lock_take(&cache->owner.lock);
        if (cache->owner.has_thread && !cache->is_direct) {
            const uint32_t less = hak_sampler_every(cache) == 0 ? HAK_APART : 0;
            hak_store_relaxed(&cache->hit_tag, cache->owner.tag - less);
            hak_store_relaxed(&cache->frees_apart, HAK_FREES_ASKED);
        }
        hak_lock_drop(&cache->owner.lock);
    }
}
