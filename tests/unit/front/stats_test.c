// with features
// A free block counts as free wherever it waits; only what the program holds is live.
#include <hakmem/hakmem.h>

#include "../census.h"
#include "base/check.h"
#include "cache/ended.h"
#include "cache/magazine.h"
#include "cache/parcels.h"
#include "cache/reclaim.h"
#include "cache/refill.h"
#include "cache/remote.h"
#include "report/figures.h"

enum { CLASS = 6, OTHER_CLASS = 20, BLOCKS = 300, PARCEL = HAK_PARCEL_BLOCKS };

static struct hak_cache *owner;
static struct hak_cache *other;
static void *held[BLOCKS];
static size_t live;

static void expect_live(void)
{
    struct hak_stats stats;
    hak_stats_read(&stats);
    UNIT_EQUAL(stats.live_blocks, live);
    UNIT_EQUAL(stats.live_bytes, live * hak_classes[CLASS].bytes);
    UNIT_EQUAL(stats.cached_bytes + stats.live_bytes, census_out() * hak_classes[CLASS].bytes);
}

static void free_next(size_t count)
{
    for (; count > 0; count--) {
        give(held[--live]);
    }
}

static void blocks_in_magazines(void)
{
    free_next(20);
    expect_live();
}

static void blocks_in_parcels(void)
{
    become(other);
    free_next(PARCEL + 10); // one parcel sent, one begun
    UNIT_CHECK(owner->owner.inbox != NULL);
    expect_live();
    become(owner);
    hak_lock_take(&owner->owner.lock);
    hak_magazine_flush_all(owner);
    hak_refill_by_parcels(owner, CLASS, 1);
    hak_lock_drop(&owner->owner.lock);
    expect_live();
}

static void blocks_without_a_parcel(void)
{
    hak_lock_take(&other->owner.lock);
    hak_remote_post_all(other);
    hak_lock_drop(&other->owner.lock);
    uint32_t count; // no memory for a parcel
    while (hak_pool_shelf_take(&hak_parcels, &count) != NULL) {
        hak_fake.refuse_asks = true;
    }
    become(other);
    free_next(30);
    UNIT_CHECK(owner->owner.loose != NULL);
    expect_live();
    hak_fake.refuse_asks = false;
}

static void text_is_counted_and_cut(void)
{
    static char text[HAK_FIGURES_BYTES];
    const size_t length = hak_stats_json(text, sizeof text);
    UNIT_EQUAL(strlen(text), length);
    UNIT_CHECK(strstr(text, "\"walked\":true") != NULL);
    UNIT_CHECK(strstr(text, "{\"bytes\":112,\"slabs\":") != NULL);
    char less[100] = "";
    UNIT_EQUAL(hak_stats_json(less, sizeof less), length);
    UNIT_EQUAL(strlen(less), sizeof less - 1);
    UNIT_CHECK(strncmp(text, less, sizeof less - 1) == 0);
}

// As in a signal handler that has interrupted the holder of the lock.
static void what_is_locked_is_not_waited_for(void)
{
    static char text[HAK_FIGURES_BYTES];
    hak_lock_take(&owner->owner.lock);
    hak_stats_json(text, sizeof text);
    UNIT_CHECK(strstr(text, "\"walked\":false") != NULL);
    UNIT_CHECK(strstr(text, "\"live_blocks\":0,") != NULL);
    hak_lock_drop(&owner->owner.lock);
    hak_lock_take(&hak_arena.lock); // the locks before it were released again
    hak_stats_json(text, sizeof text);
    UNIT_CHECK(strstr(text, "\"walked\":false") != NULL);
    hak_lock_drop(&hak_arena.lock);
    hak_stats_json(text, sizeof text);
    UNIT_CHECK(strstr(text, "\"walked\":true") != NULL);
}

static void what_passes_is_counted(void)
{
    struct hak_figures figures;
    hak_figures_read(&figures, 0);
    const struct hak_class_figures *of_class = &figures.classes[CLASS];
    UNIT_CHECK(of_class->refilled_blocks >= BLOCKS && of_class->spilled_blocks > 0);
    UNIT_EQUAL(of_class->live_blocks, live);
    UNIT_CHECK(of_class->refills > 0 && figures.sent_parcels > 0);
    UNIT_CHECK(figures.opened_parcels <= figures.sent_parcels);
    UNIT_CHECK(figures.sent_blocks >= figures.sent_parcels);
    UNIT_EQUAL(of_class->slabs_made - of_class->slabs_ended, of_class->slabs);
}

// One cache made the slab, another one retires it.
static void slabs_of_all_caches_are_added_up(void)
{
    struct hak_cache *maker = new_thread();
    void *block = alloc(OTHER_CLASS);
    hak_ended_bury(maker);
    hak_reclaim_break_up_dead(maker, UINT_MAX);
    become(other);
    void *mine = alloc(OTHER_CLASS);
    UNIT_CHECK(hak_run_of(mine) == hak_run_of(block) && hak_run_of(mine)->owner == &other->owner);
    give(mine);
    give(block);
    hak_lock_take(&other->owner.lock);
    hak_magazine_flush_all(other);
    hak_lock_drop(&other->owner.lock);
    UNIT_EQUAL(maker->owner.classes[OTHER_CLASS].made_slabs, 1);
    UNIT_EQUAL(other->owner.classes[OTHER_CLASS].ended_slabs, 1);
    struct hak_figures figures;
    hak_figures_read(&figures, 0);
    UNIT_EQUAL(figures.classes[OTHER_CLASS].slabs_made, 1);
    UNIT_EQUAL(figures.classes[OTHER_CLASS].slabs_ended, 1);
    become(owner);
}

static uint64_t looks_of_stats(void)
{
    struct hak_stats stats;
    const uint64_t before = hak_load_relaxed(&hak_looks);
    hak_stats_read(&stats);
    return hak_load_relaxed(&hak_looks) - before;
}

// All threads wait for who reads statistics: of each cache he looks at the classes that it had, not at all.
static void a_cache_costs_what_it_had(void)
{
    enum { THREADS = 50 };
    void *blocks[THREADS];
    const uint64_t before = looks_of_stats();
    for (unsigned i = 0; i < THREADS; i++) {
        new_thread();
        blocks[i] = alloc(CLASS);
    }
    UNIT_CHECK(looks_of_stats() - before <= 2 * THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        give(blocks[i]);
    }
}

int main(void)
{
    other = new_thread();
    owner = new_thread();
    for (live = 0; live < BLOCKS; live++) {
        held[live] = alloc(CLASS);
    }
    expect_live();
    blocks_in_magazines();
    blocks_in_parcels();
    what_passes_is_counted();
    slabs_of_all_caches_are_added_up();
    text_is_counted_and_cut();
    what_is_locked_is_not_waited_for();
    blocks_without_a_parcel();
    a_cache_costs_what_it_had();
    return 0;
}
