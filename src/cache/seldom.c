// seldom.c -- see seldom.h.
#include "cache/seldom.h"

#include <string.h>

#include "cache/inbox.h"
#include "cache/magazine.h"

void *hak_seldom_take(struct hak_cache *cache, unsigned size_class) HAK_REQUIRES(&cache->lock)
{
    void *block = hak_cache_take(cache, size_class);
    if (HAK_LIKELY(block != NULL)) {
        hak_count(&cache->class_counts[size_class].refills, 1);
        hak_count(&cache->class_counts[size_class].refilled_blocks, 1);
    }
    return block;
}

void hak_seldom_put(struct hak_cache *cache, unsigned size_class, void *block)
    HAK_REQUIRES(&cache->lock)
{
    hak_place place = block;
    hak_count(&cache->class_counts[size_class].spilled_blocks, 1);
    cache->returned_bytes += hak_classes[size_class].bytes;
    hak_inbox_route_row(cache, cache, &place, 1);
}

void hak_seldom_renew(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    if (!hak_seldom_is_never(cache)) {
        hak_magazine_flush_all(cache);
        hak_magazine_end_all(cache);
        cache->seldom_calls = 0;
        memset(cache->seldom_of_class, 0, sizeof cache->seldom_of_class);
    }
}
