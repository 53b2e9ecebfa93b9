// rest.c -- see rest.h.
#include "cache/rest.h"

#include <string.h>

#include "cache/hooks.h"
#include "cache/magazine.h"
#include "meta/pool.h"
#include "owner/slabs.h"
#include "slab/ranges.h"

static bool has_slabs(const struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    HAK_EACH_LISTED (&cache->owner, size_class) {
        const struct hak_owner_class *of_class = &cache->owner.classes[size_class];
        if (!hak_list_is_empty(&of_class->slabs) || !hak_list_is_empty(&of_class->swept) ||
            hak_has_bit(cache->owner.counted, size_class) ||
            hak_slabs_has_spare(&cache->owner, size_class)) {
            return true;
        }
    }
    return !hak_list_is_empty(&cache->owner.full);
}

bool hak_rest_is_due(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    return hak_load_relaxed(&cache->owner.state) == HAK_OWNER_DEAD && cache != &hak_cache_shared &&
           !hak_load_relaxed(&cache->owner.is_whole) &&
           hak_next_bit(cache->owner.listed, 0, HAK_SMALL_CLASSES) < HAK_SMALL_CLASSES &&
           !has_slabs(cache) && hak_hook_is_bare(cache) && hak_ranges_policy() != HAK_FREE_KEEP;
}

static void move_count(_Atomic(uint64_t) *from, _Atomic(uint64_t) *to)
{
    hak_count(to, hak_load_relaxed(from));
    hak_store_relaxed(from, 0);
}

static void move_counts(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    hak_lock_take(&hak_cache_shared.owner.lock);
    HAK_EACH_LISTED (&cache->owner, size_class) {
        struct hak_class_counts *from = &cache->magazines[size_class].counts;
        struct hak_class_counts *to = &hak_cache_shared.magazines[size_class].counts;
        move_count(&from->refills, &to->refills);
        move_count(&from->refilled_blocks, &to->refilled_blocks);
        move_count(&from->returned_blocks, &to->returned_blocks);
        move_count(&from->spills, &to->spills);
        move_count(&from->spilled_blocks, &to->spilled_blocks);
        move_count(&from->drawn, &to->drawn);
        move_count(&from->misses, &to->misses);
        move_count(&cache->owner.classes[size_class].made_slabs,
                   &hak_cache_shared.owner.classes[size_class].made_slabs);
        move_count(&cache->owner.classes[size_class].ended_slabs,
                   &hak_cache_shared.owner.classes[size_class].ended_slabs);
    }
    hak_lock_drop(&hak_cache_shared.owner.lock);
}

void hak_rest(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    hak_hook_rest(cache);
    hak_magazine_end_all(cache);
    move_counts(cache);
    // From here on, each page may keep its content or become zeros.
    HAK_EACH_LISTED (&cache->owner, size_class) {
        cache->owner.classes[size_class].slabs.next = NULL;
        cache->magazines[size_class].growth = (struct hak_growth){0};
    }
    memset(cache->owner.listed, 0, sizeof cache->owner.listed);
    memset(cache->owner.unpurged, 0, sizeof cache->owner.unpurged);
    hak_pool_purge(cache, sizeof *cache, offsetof(struct hak_cache, owner.classes));
}
