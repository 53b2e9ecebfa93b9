// census.h -- finds out where every small block is.
//
// A block that is out of its slab is in exactly one place: with the program, in a magazine, behind
// an undecided fence, in a parcel, or loose. A test names the blocks that it holds; a block that is then
// missing, or found twice, was lost or handed out twice.
#ifndef HAK_TESTS_UNIT_CENSUS_H
#define HAK_TESTS_UNIT_CENSUS_H

#include "cache/due.h"
#include "cache/fast_path.h"
#include "cache/magazine.h"
#include "cache/reclaim.h"
#include "cache/registry.h"
#include "cache/remote.h"
#include "cache/seldom.h"
#include "cache/start.h"
#include "cache/sweeper.h"
#include "cache/thread.h"
#include "slab/arena.h"
#include "unit.h"

enum { CENSUS_MOST = 200000 };

struct census {
    const void *blocks[CENSUS_MOST];
    size_t count;
    size_t slabs; // that the owners have, by their own count
};

static inline void census_note(struct census *census, const void *block)
{
    UNIT_CHECK(census->count < CENSUS_MOST);
    census->blocks[census->count++] = block;
}

static inline void census_parcels(struct census *census, struct hak_parcel *parcel, bool all)
{
    for (; parcel != NULL; parcel = all ? parcel->next : NULL) {
        for (uint32_t i = 0; i < parcel->count; i++) {
            if (parcel->blocks[i] != NULL) {
                census_note(census, parcel->blocks[i]);
            }
        }
    }
}

static inline void census_magazine(struct census *census,
                                   const struct hak_cache *cache,
                                   unsigned size_class)
{
    const struct hak_magazine *magazine = &cache->magazines[size_class];
    const hak_place *top = hak_cache_top(cache, size_class);
    for (hak_place *place = magazine->base + magazine->bottom + 1; place < top; place++) {
        if (*place != NULL) {
            census_note(census, *place);
        } else {
            UNIT_CHECK(magazine->fence != 0 && place == magazine->base + magazine->fence);
            census_note(census, magazine->fenced);
        }
    }
}

static inline void census_cache(struct census *census, struct hak_cache *cache)
{
    census->slabs += cache->owner.slab_count;
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        if (cache->magazines[size_class].base != NULL) {
            census_magazine(census, cache, size_class);
        }
    }
    for (unsigned i = 0; i < HAK_OUTBOXES; i++) {
        census_parcels(census, cache->outboxes[i].parcel, false);
    }
    census_parcels(census, cache->owner.pending, true);
    census_parcels(census, cache->owner.inbox, true);
    for (struct hak_loose *loose = cache->owner.loose; loose != NULL; loose = loose->next) {
        census_note(census, loose);
    }
}

// How many blocks are out of their slabs; examines and counts every slab.
static inline size_t census_look(size_t *slabs)
{
    size_t out = 0;
    *slabs = 0;
    for (struct hak_list *link = hak_arena.all.next; link != &hak_arena.all; link = link->next) {
        const struct hak_super *super = HAK_LIST_ITEM(link, struct hak_super, all_link);
        for (unsigned unit = 0; !super->is_mapping && unit < HAK_SUPER_UNITS; unit++) {
            const struct hak_run *slab = &super->slabs[unit];
            if ((super->free_units >> unit & 1) == 0 && super->first[unit] == unit &&
                slab->state == HAK_RUN_SLAB) {
                hak_slab_verify(slab);
                ++*slabs;
                out += hak_load_relaxed(&slab->fresh) - slab->free_blocks;
            }
        }
    }
    return out;
}

static inline size_t census_out(void)
{
    size_t slabs;
    return census_look(&slabs);
}

static inline int census_compare(const void *a, const void *b)
{
    const char *left = *(const char *const *)a;
    const char *right = *(const char *const *)b;
    return (left > right) - (left < right);
}

// `held`: the blocks that the test holds. NULLs among them do not count.
static inline void census_check(void *const *held, size_t count)
{
    static struct census census;
    census.count = 0;
    census.slabs = 0;
    for (size_t i = 0; i < count; i++) {
        if (held[i] != NULL) {
            census_note(&census, held[i]);
        }
    }
    for (struct hak_cache *cache = hak_registry.all; cache != NULL; cache = cache->next) {
        census_cache(&census, cache);
    }
    census_cache(&census, &hak_cache_shared);
    qsort(census.blocks, census.count, sizeof census.blocks[0], census_compare);
    for (size_t i = 0; i < census.count; i++) {
        UNIT_CHECK(i == 0 || census.blocks[i] != census.blocks[i - 1]);
        UNIT_CHECK(hak_slab_is_out(hak_run_of(census.blocks[i]), census.blocks[i]));
    }
    size_t slabs;
    UNIT_EQUAL(census.count, census_look(&slabs));
    UNIT_EQUAL(census.slabs, slabs);
}

// Act as another thread.
static inline void become(struct hak_cache *cache)
{
    hak_cache_self = cache;
}

// A new thread without magazines (seldom.h).
static inline struct hak_cache *new_quiet_thread(void)
{
    hak_cache_self = &hak_cache_nobody;
    struct hak_cache *cache = hak_start_thread(NULL);
    UNIT_CHECK(cache != NULL && cache != &hak_cache_nobody);
    return cache;
}

// A new thread that gets a magazine with its first request of a class.
static inline struct hak_cache *new_thread(void)
{
    struct hak_cache *cache = new_quiet_thread();
    hak_seldom_end(cache);
    return cache;
}

static inline void *alloc(unsigned size_class)
{
    return hak_cache_alloc(hak_cache_self, hak_classes[size_class].bytes, size_class);
}

static inline void give(void *block)
{
    hak_cache_free(hak_cache_self, block);
}

// The program has two threads, and therefore a sweeper, whose work the test does by hand.
static inline void census_have_sweeper(void)
{
    hak_sweeper_thread_came(true);
    hak_sweeper_thread_came(true);
    UNIT_CHECK(hak_due_has_sweeper());
}

#endif
