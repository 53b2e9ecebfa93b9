// figures.c -- see figures.h.
#include "report/figures.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "cache/cache.h"
#include "cache/hooks.h"
#include "cache/nested.h"
#include "cache/registry.h"
#include "cache/world.h"
#include "failures/failure.h"
#include "front/options.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "os/os.h"
#include "profile/sampler.h"
#include "report/waiting.h"
#include "secure/guard.h"
#include "secure/states.h"
#include "slab/arena.h"

// Blocks that are out of their slabs but not with the program.
static void count_cached(struct hak_figures *figures, unsigned size_class, size_t blocks)
{
    const size_t bytes = blocks * hak_classes[size_class].bytes;
    figures->totals.cached_bytes += bytes;
    figures->totals.live_bytes -= bytes;
    figures->totals.live_blocks -= blocks;
    figures->classes[size_class].cached_blocks += blocks;
    figures->classes[size_class].live_blocks -= blocks;
}

// The blocks of a hardened slab that are in a stock or in quarantine.
static size_t waiting_blocks(const struct hak_run *slab)
{
    size_t with_program = 0;
    const unsigned fresh = hak_load_relaxed(&slab->fresh);
    for (unsigned word = 0; word * 64 < fresh; word++) {
        with_program += hak_count_bits(hak_states_out(slab, word));
    }
    return fresh - slab->free_blocks - with_program;
}

static void add_slab(struct hak_figures *figures, const struct hak_run *slab)
{
    struct hak_stats *totals = &figures->totals;
    if (slab->state == HAK_RUN_SLAB) {
        const size_t bytes = hak_classes[slab->size_class].bytes;
        const size_t out = (size_t)hak_load_relaxed(&slab->fresh) - slab->free_blocks;
        struct hak_class_figures *of_class = &figures->classes[slab->size_class];
        totals->live_blocks += out;
        totals->live_bytes += out * bytes;
        totals->slab_free_bytes += slab->free_blocks * bytes;
        of_class->slabs++;
        of_class->live_blocks += out;
        of_class->slab_free_blocks += slab->free_blocks;
        if (hak_states_exist(slab)) {
            count_cached(figures, slab->size_class, waiting_blocks(slab));
        }
    } else if (slab->state == HAK_RUN_LARGE && !hak_map_is_large(hak_map_entry(slab->base))) {
        totals->kept_bytes += slab->bytes;
    } else if (slab->state == HAK_RUN_LARGE) {
        totals->live_blocks++;
        totals->live_bytes += slab->bytes;
        figures->mapping_live_bytes += slab->units == 0 ? slab->bytes : 0;
    }
}

static void add_supers(struct hak_figures *figures)
{
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        const unsigned count = super->is_mapping ? 1 : HAK_SUPER_UNITS;
        for (unsigned unit = 0; unit < count; unit++) {
            if (super->is_mapping || super->first[unit] == unit) {
                add_slab(figures, &super->slabs[unit]);
            }
        }
        figures->totals.superslab_count += !super->is_mapping;
        figures->totals.mapping_count += super->is_mapping;
    }
}

// Count a free block on its way to its owner. A block that was freed twice may be in no slab any more; those of
// hardened slabs are already counted.
static void count_sent(void *figures, const void *block)
{
    const uint32_t entry = hak_map_entry(block);
    const struct hak_run *slab = hak_map_is_small(entry) ? hak_run_of(block) : NULL;
    if (slab != NULL && !hak_states_exist(slab)) {
        count_cached(figures, HAK_MAP_CLASS(entry), 1);
    }
}

static void add_cache(struct hak_figures *figures, struct hak_cache *cache)
{
    HAK_EACH_MAGAZINE (cache, size_class) {
        const struct hak_magazine *magazine = &cache->magazines[size_class];
        const hak_place *top = hak_cache_top(cache, size_class);
        HAK_LOOK();
        count_cached(figures, size_class, (size_t)(top - magazine->base) - 1 - magazine->bottom);
    }
    hak_waiting_in_parcels(cache, count_sent, figures);
}

static bool add_guarded(void *start, size_t bytes, void *totals)
{
    (void)start;
    ((struct hak_stats *)totals)->live_blocks++;
    ((struct hak_stats *)totals)->live_bytes += bytes;
    return true;
}

static void walk_locked(struct hak_figures *figures) HAK_REQUIRES(&hak_arena.lock)
{
    if (hak_arena.all.next != NULL) { // the first allocation was made
        add_supers(figures);
    }
    HAK_EACH_CACHE (cache) {
        add_cache(figures, cache);
    }
    add_cache(figures, &hak_cache_shared);
    hak_guard_visit(add_guarded, &figures->totals);
    figures->totals.metadata_bytes = hak_pool.mapped_bytes;
}

// Of the classes that it ever had: all of them lie on some pages of each cache, which nobody else may have touched yet, and all
// threads wait meanwhile.
static void count_cache(struct hak_figures *figures, const struct hak_cache *cache)
{
    HAK_EACH_LISTED (&cache->owner, size_class) {
        HAK_LOOK();
        const struct hak_class_counts *counts = &cache->magazines[size_class].counts;
        struct hak_class_figures *of_class = &figures->classes[size_class];
        of_class->refills += hak_load_relaxed(&counts->refills);
        of_class->spills += hak_load_relaxed(&counts->spills);
        of_class->refilled_blocks += hak_load_relaxed(&counts->refilled_blocks);
        of_class->spilled_blocks += hak_load_relaxed(&counts->spilled_blocks);
        of_class->slabs_made += hak_load_relaxed(&cache->owner.classes[size_class].made_slabs);
        of_class->slabs_ended += hak_load_relaxed(&cache->owner.classes[size_class].ended_slabs);
        of_class->counted_allocations += hak_sampler_counted(cache, size_class);
        of_class->counted_misses += hak_load_relaxed(&counts->misses);
    }
    figures->sent_parcels += hak_load_relaxed(&cache->counts.sent_parcels);
    figures->sent_blocks += hak_load_relaxed(&cache->counts.sent_blocks);
    figures->opened_parcels += hak_load_relaxed(&cache->owner.opened_parcels);
    figures->adopted_slabs += hak_load_relaxed(&cache->counts.adopted_slabs);
    figures->slow_events += hak_load_relaxed(&cache->owner.events);
}

// Add up the counters. They need no lock, and are right also while they change.
static void count_all(struct hak_figures *figures)
{
    HAK_EACH_CACHE (cache) {
        count_cache(figures, cache);
        figures->totals.cache_count++;
    }
    count_cache(figures, &hak_cache_shared);
    figures->maps = hak_load_relaxed(&hak_os_counts.maps);
    figures->unmaps = hak_load_relaxed(&hak_os_counts.unmaps);
    figures->remaps = hak_load_relaxed(&hak_os_counts.remaps);
    figures->purges = hak_load_relaxed(&hak_os_counts.purges);
    figures->purged_bytes = hak_load_relaxed(&hak_os_counts.purged_bytes);
    figures->huge_advices = hak_load_relaxed(&hak_os_counts.huge_advices);
    figures->refused = hak_load_relaxed(&hak_os_counts.refused);
    figures->retaken_bytes = hak_load_relaxed(&hak_arena.retaken_bytes);
    figures->peak_mapped_bytes = hak_load_relaxed(&hak_arena.peak_bytes);
    figures->failures = hak_load_relaxed(&hak_failures.count);
    figures->mapping_bytes = hak_load_relaxed(&hak_arena.mapping_bytes);
    figures->totals.mapped_bytes =
        hak_load_relaxed(&hak_arena.super_bytes) + figures->mapping_bytes;
    if (hak_load_relaxed(&hak_guard.base) != NULL) { // the slots of guarded blocks
        figures->totals.mapped_bytes += HAK_SUPER_BYTES;
        figures->peak_mapped_bytes += HAK_SUPER_BYTES;
    }
    figures->totals.unit_free_bytes = hak_load_relaxed(&hak_arena.free_bytes);
    figures->totals.dirty_bytes = hak_load_relaxed(&hak_arena.dirty_bytes);
}

void hak_figures_read(struct hak_figures *figures, unsigned wait_ms)
{
    *figures = (struct hak_figures){.is_walked = hak_nested_may_wait()};
    if (!figures->is_walked) {
        // The thread that holds the locks may have ended, or be this one.
    } else if (wait_ms == 0) {
        hak_world_lock();
    } else {
        figures->is_walked = hak_world_lock_within(wait_ms);
    }
    if (figures->is_walked) {
        hak_lock_is_held(&hak_arena.lock);
        hak_arena_tell_all();
        walk_locked(figures);
    }
    count_all(figures);
    if (figures->is_walked) {
        hak_world_unlock();
    }
}

void hak_stats_read(struct hak_stats *stats)
{
    struct hak_figures figures;
    hak_figures_read(&figures, 0);
    *stats = figures.totals;
}

size_t hak_stats_json(char *text, size_t bytes)
{
    struct hak_figures figures;
    hak_figures_read(&figures, 100); // longer than anything that we do with a lock
    return hak_figures_json(&figures, text, bytes);
}

// Within wait_ms (0: however long it takes). Not inlined, as the figures take more than a page of the stack. The text has a
// mapping of its own, as the program may have little stack left by then.
static HAK_NOINLINE void report(unsigned wait_ms,
                                size_t (*show)(const struct hak_figures *, char *, size_t),
                                const char *file)
{
    struct hak_figures figures;
    hak_figures_read(&figures, wait_ms);
    char *text = hak_os_map(HAK_FIGURES_BYTES);
    if (text == NULL) {
        return;
    }
    const size_t length = show(&figures, text, HAK_FIGURES_BYTES);
    if (file == NULL) {
        hak_os_print(text, length);
    } else {
        hak_os_append_or_say(file, text, length);
    }
    hak_os_discard(text, HAK_FIGURES_BYTES);
}

void hak_figures_print(void)
{
    report(0, hak_figures_text, NULL);
}

void hak_hook_stopping(void)
{
    const char *file = hak_option_file(&hak_options.stats);
    if (hak_load_relaxed(&hak_options.stats) == 0) {
        return;
    }
    // It may take no longer than this: exit may have been called in the middle of a call of ours.
    enum { WAIT_MS = 100 };
    const bool is_file = *file != '\0';
    report(WAIT_MS, is_file ? hak_figures_json : hak_figures_text, is_file ? file : NULL);
}
