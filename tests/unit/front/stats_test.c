// A free block counts as such wherever it waits; only what the program holds is live.
#include <hakmem/hakmem.h>

#include "../cache/census.h"
#include "meta/pool.h"

enum { CLASS = 6, BLOCKS = 300, PARCEL = HAK_PARCEL_BLOCKS };

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
    free_next(PARCEL + 10); // one sent, one begun
    UNIT_CHECK(owner->inbox != NULL);
    expect_live();
    become(owner);
    hak_lock_take(&owner->lock);
    hak_magazine_flush_all(owner);
    hak_inbox_refill(owner, CLASS, 1);
    hak_lock_drop(&owner->lock);
    expect_live();
}

static void blocks_without_a_parcel(void)
{
    hak_lock_take(&other->lock);
    hak_inbox_post_all(other);
    hak_lock_drop(&other->lock);
    while (other->spare_parcel != NULL) { // nothing to make a parcel of
        other->spare_parcel = other->spare_parcel->next;
    }
    while (hak_pool_take(sizeof(struct hak_parcel)) != NULL) {
        hak_fake.refuse_asks = true;
    }
    become(other);
    free_next(30);
    UNIT_CHECK(owner->loose != NULL);
    expect_live();
    hak_fake.refuse_asks = false;
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
    blocks_without_a_parcel();
    return 0;
}
