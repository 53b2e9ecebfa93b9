// waiting.c -- see waiting.h.
#include "report/waiting.h"

#include "base/atomic.h"
#include "cache/cache.h"
#include "cache/registry.h"
#include "owner/inbox.h"

static void see_parcel(struct hak_parcel *parcel, hak_waiting_sight *see, void *context)
{
    const uint32_t count =
        parcel != NULL ? hak_load_acquire(&parcel->count) : 0; // pairs with: hak_parcel_add
    for (uint32_t i = 0; i < count; i++) {
        const void *block = hak_load_relaxed(&parcel->blocks[i]);
        if (block != NULL) {
            see(context, block);
        }
    }
}

static void see_parcels(struct hak_parcel *parcel, hak_waiting_sight *see, void *context)
{
    for (; parcel != NULL; parcel = parcel->next) {
        see_parcel(parcel, see, context);
    }
}

void hak_waiting_in_parcels(struct hak_cache *cache, hak_waiting_sight *see, void *context)
{
    for (unsigned i = 0; i < HAK_OUTBOXES; i++) {
        see_parcel(cache->outboxes[i].parcel, see, context);
    }
    see_parcels(cache->owner.pending, see, context);
    see_parcels(hak_load_acquire(&cache->owner.inbox), see, context); // pairs with: hak_inbox_push
    const struct hak_loose *loose =
        hak_load_acquire(&cache->owner.loose); // pairs with: hak_inbox_push_loose
    for (; loose != NULL; loose = loose->next) {
        see(context, loose);
    }
}

// From the bottom up: a block that the thread takes meanwhile is seen, one that it puts on top may be.
static void see_magazine(struct hak_cache *cache,
                         unsigned size_class,
                         hak_waiting_sight *see,
                         void *context)
{
    const struct hak_magazine *magazine = &cache->magazines[size_class];
    const hak_place *top = hak_cache_top(cache, size_class);
    if (magazine->base == NULL) {
        return;
    }
    for (hak_place *place = magazine->base + magazine->bottom + 1; place < top; place++) {
        const void *block = hak_load_relaxed(place);
        if (block != NULL) {
            see(context, block);
        }
    }
    if (magazine->fence != 0) {
        see(context, magazine->fenced); // behind a thief's NULL
    }
}

static void see_cache(struct hak_cache *cache, hak_waiting_sight *see, void *context)
{
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        see_magazine(cache, size_class, see, context);
    }
    hak_waiting_in_parcels(cache, see, context);
}

void hak_waiting_everywhere(hak_waiting_sight *see, void *context)
{
    HAK_EACH_CACHE (cache) {
        see_cache(cache, see, context);
    }
    see_cache(&hak_cache_shared, see, context);
}
