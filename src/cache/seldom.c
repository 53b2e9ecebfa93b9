// seldom.c -- see seldom.h.
#include "cache/seldom.h"

#include "cache/inbox.h"

void hak_seldom_put(struct hak_cache *cache, unsigned size_class, void *block)
    HAK_REQUIRES(&cache->lock)
{
    hak_place place = block;
    hak_count(&cache->class_counts[size_class].spilled_blocks, 1);
    cache->returned_bytes += hak_classes[size_class].bytes;
    hak_inbox_route_row(cache, cache, &place, 1);
}
