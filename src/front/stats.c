// stats.c -- adding up what the tables say.
#include "base/atomic.h"
#include "cache/cache.h"
#include "cache/loot.h"
#include "cache/thread.h"
#include "hakmem/hakmem.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "slab/arena.h"

static void add_slab(struct hak_stats *stats, const struct hak_slab *slab)
{
    if (slab->state == HAK_SLAB_SMALL) {
        const size_t bytes = hak_classes[slab->size_class].bytes;
        const size_t out = (size_t)slab->fresh - slab->free_blocks;
        stats->live_blocks += out;
        stats->live_bytes += out * bytes;
        stats->slab_free_bytes += slab->free_blocks * bytes;
    } else if (slab->state == HAK_SLAB_LARGE && !hak_map_is_large(hak_map_entry(slab->base))) {
        stats->kept_bytes += slab->bytes;
    } else if (slab->state == HAK_SLAB_LARGE) {
        stats->live_blocks++;
        stats->live_bytes += slab->bytes;
    }
}

static void add_supers(struct hak_stats *stats)
{
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        const unsigned count = super->is_lone ? 1 : HAK_SUPER_UNITS;
        for (unsigned unit = 0; unit < count; unit++) {
            if (super->is_lone || super->first[unit] == unit) {
                add_slab(stats, &super->slabs[unit]);
            }
        }
        stats->superslab_count += !super->is_lone;
        stats->mapping_count += super->is_lone;
    }
}

// Blocks that are out of their slabs but not with the program.
static void count_cached(struct hak_stats *stats, size_t blocks, size_t bytes)
{
    stats->cached_bytes += blocks * bytes;
    stats->live_bytes -= blocks * bytes;
    stats->live_blocks -= blocks;
}

// A free block on its way to its owner. What a program freed twice may be in no slab any more.
static void count_sent(struct hak_stats *stats, const void *block)
{
    const uint32_t entry = hak_map_entry(block);
    if (hak_map_is_small(entry)) {
        count_cached(stats, 1, hak_classes[HAK_MAP_CLASS(entry)].bytes);
    }
}

static void add_parcel(struct hak_stats *stats, struct hak_parcel *parcel)
{
    const uint32_t count =
        parcel != NULL ? hak_load_acquire(&parcel->count) : 0; // pairs with: hak_parcel_add
    for (uint32_t i = 0; i < count; i++) {
        const void *block = hak_load_relaxed(&parcel->blocks[i]);
        if (block != NULL) {
            count_sent(stats, block);
        }
    }
}

static void add_parcels(struct hak_stats *stats, struct hak_parcel *parcel)
{
    for (; parcel != NULL; parcel = parcel->next) {
        add_parcel(stats, parcel);
    }
}

static void add_cache(struct hak_stats *stats, struct hak_cache *cache)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const struct hak_magazine *magazine = &cache->magazines[size_class];
        if (magazine->base != NULL) {
            const hak_place *top = hak_load_relaxed(&cache->top[size_class]);
            count_cached(stats,
                         (size_t)(top - magazine->base) - 1 - magazine->bottom,
                         hak_classes[size_class].bytes);
        }
    }
    for (unsigned i = 0; i < HAK_OUTBOXES; i++) {
        add_parcel(stats, cache->outboxes[i].parcel);
    }
    add_parcels(stats, cache->pending);
    add_parcels(stats, hak_load_acquire(&cache->inbox)); // pairs with: outbox_send_locked
    const struct hak_loose *loose = hak_load_acquire(&cache->loose); // pairs with: inbox_push_loose
    for (; loose != NULL; loose = loose->next) {
        count_sent(stats, loose);
    }
}

void hak_stats_read(struct hak_stats *stats)
{
    *stats = (struct hak_stats){0};
    hak_world_lock();
    if (hak_arena.all.next != NULL) { // the first allocation was made
        add_supers(stats);
    }
    struct hak_cache *cache = hak_load_relaxed(&hak_registry.all);
    for (; cache != NULL; cache = cache->next) {
        add_cache(stats, cache);
        stats->cache_count++;
    }
    add_cache(stats, &hak_orphans);
    add_cache(stats, &hak_cache_late);
    stats->mapped_bytes =
        hak_load_relaxed(&hak_arena.super_bytes) + hak_load_relaxed(&hak_arena.lone_bytes);
    stats->unit_free_bytes = hak_load_relaxed(&hak_arena.free_bytes);
    stats->dirty_bytes = hak_load_relaxed(&hak_arena.dirty_bytes);
    stats->metadata_bytes = hak_pool.mapped_bytes;
    hak_world_unlock();
}
