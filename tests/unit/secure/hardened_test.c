// The blocks in a thread's stock and quarantine go back into their slabs, also if there is no memory for parcels,
// and if the owner is busy.
#include "secure/hardened.h"

#include "../census.h"
#include "cache/ended.h"
#include "cache/reclaim.h"
#include "cache/start.h"
#include "cache/sweep.h"
#include "meta/pool.h"

enum { CLASS = 6, BLOCKS = 300 };

static char *blocks[BLOCKS];

static void start(void)
{
    hak_option_choose(&hak_options.zero_on_free, 1, HAK_FROM_PROGRAM);
    hak_option_choose(&hak_options.quarantine_bytes, 1 << 20, HAK_FROM_PROGRAM);
    hak_start_process();
    new_thread();
    hak_sweep_everything(); // it has a cache of its own from now on
}

static void no_memory_is_left(void)
{
    hak_fake.refuse_asks = true;
    for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) {
        while (hak_pool_take(bytes) != NULL) {
        }
    }
}

static size_t out_of_their_slab(void)
{
    size_t out = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const struct hak_run *slab = hak_run_of(blocks[i]);
        if (slab != NULL && slab->state == HAK_RUN_SLAB) {
            const size_t index =
                hak_size_class_index(&hak_classes[CLASS], (size_t)(blocks[i] - slab->base));
            out += (slab->bitmap[index / 64] >> (index % 64) & 1) == 0;
        }
    }
    return out;
}

// Blocks of one thread that another one frees: they are in the other's quarantine.
static struct hak_cache *freed_by_another(struct hak_cache *owner)
{
    become(owner);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = alloc(CLASS);
        UNIT_CHECK(blocks[i] != NULL);
        memset(blocks[i], 0x5a, hak_classes[CLASS].bytes);
    }
    struct hak_cache *other = new_thread();
    for (int i = 0; i < BLOCKS; i++) {
        give(blocks[i]);
    }
    UNIT_EQUAL(out_of_their_slab(), BLOCKS);
    return other;
}

static void end(struct hak_cache *cache)
{
    hak_cache_self = &hak_cache_shared;
    hak_ended_bury(cache);
    hak_reclaim_break_up_dead(cache, UINT_MAX);
}

static void they_go_home_without_memory(struct hak_cache *owner)
{
    end(freed_by_another(owner));
    hak_hook_check(); // nothing was written into them
    UNIT_EQUAL(out_of_their_slab(), 0);
}

// No thread waits for a second lock: the blocks stay where they are until a thread comes again.
static void they_stay_while_their_owner_is_busy(struct hak_cache *owner)
{
    struct hak_cache *other = freed_by_another(owner);
    hak_lock_take(&owner->owner.lock);
    end(other);
    hak_lock_drop(&owner->owner.lock);
    UNIT_EQUAL(out_of_their_slab(), BLOCKS);
    hak_hook_check();
    hak_sweep_everything();
    UNIT_EQUAL(out_of_their_slab(), 0);
    hak_hook_check();
}

int main(void)
{
    start();
    struct hak_cache *owner = new_thread();
    end(freed_by_another(owner)); // all that this needs exists from now on
    no_memory_is_left();
    they_go_home_without_memory(owner);
    they_stay_while_their_owner_is_busy(owner);
    return 0;
}
