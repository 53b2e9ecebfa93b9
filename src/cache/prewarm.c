// prewarm.c -- see prewarm.h.
#include "cache/prewarm.h"

#include "cache/magazine.h"
#include "cache/pools.h"
#include "cache/refill.h"
#include "cache/seldom.h"
#include "os/os.h"

// Fault in the pages of a block; its content stays.
static void block_touch(char *block, size_t bytes)
{
    const size_t page = hak_os_page_bytes();
    for (size_t offset = 0; offset < bytes; offset += page - (uintptr_t)(block + offset) % page) {
        volatile char *byte = block + offset;
        *byte = *byte;
    }
}

// False without memory. A class that companions serve (site.h) has no magazine here, and needs none.
static bool prewarm_class(struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    if (cache->magazines[size_class].is_ruled) {
        return true;
    }
    if (hak_place_load(hak_cache_top(cache, size_class) - 1) == NULL) {
        void *block = hak_refill(cache, size_class);
        if (block == NULL) {
            return false;
        }
        hak_magazine_spill(cache, size_class, block); // it fits, as it has just come out
    }
    const struct hak_magazine *magazine = &cache->magazines[size_class];
    if (magazine->base == NULL) {
        return false; // there was memory for a block, and not for the magazine
    }
    hak_place *top = hak_cache_top(cache, size_class);
    for (hak_place *place = top - 1; place > magazine->base + magazine->bottom; place--) {
        void *block = hak_place_load(place);
        if (block != NULL) { // NULL: a thief's fence
            block_touch(block, hak_classes[size_class].bytes);
        }
    }
    return true;
}

void hak_prewarm_cache(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    unsigned size_class = cache->is_direct ? HAK_SMALL_CLASSES : 0;
    hak_seldom_end(cache);
    while (size_class < HAK_SMALL_CLASSES &&
           (!hak_pools_have(size_class) || prewarm_class(cache, size_class))) {
        size_class++;
    }
}
