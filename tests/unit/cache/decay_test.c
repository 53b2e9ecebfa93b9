// Free pages wait for longer when those that did not wait were used again.
#include "cache/decay.h"

#include "../unit.h"
#include "base/bits.h"
#include "meta/map.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/runs.h"

static struct hak_decay decay;
static size_t retaken;

// So much is given back, in three ticks, and `part` of it used again some time later.
static void swell(size_t bytes, size_t part)
{
    for (unsigned i = 0; i < 3; i++) {
        hak_decay_tick(&decay, bytes / 3, retaken);
    }
    retaken += part;
    for (unsigned i = 0; i < HAK_DECAY_CALM_TICKS; i++) {
        hak_decay_tick(&decay, 0, retaken);
    }
}

static void what_is_used_again_waits_longer(void)
{
    swell(HAK_MIB(6), HAK_MIB(5));
    UNIT_EQUAL(decay.steps, 0); // nothing is judged before the next
    for (unsigned i = 1; i < 10; i++) {
        swell(HAK_MIB(6), HAK_MIB(5));
        UNIT_EQUAL(decay.steps, i < HAK_DECAY_STEPS ? i : HAK_DECAY_STEPS);
    }
}

static void what_is_not_makes_it_less_so(void)
{
    swell(HAK_MIB(6), HAK_MIB(2));
    UNIT_EQUAL(decay.steps, HAK_DECAY_STEPS);
    swell(HAK_MIB(6), 0); // judges the one before: a third, as before
    UNIT_EQUAL(decay.steps, HAK_DECAY_STEPS);
    for (unsigned i = 1; i <= HAK_DECAY_STEPS + 1; i++) {
        swell(HAK_MIB(6), 0);
        UNIT_EQUAL(decay.steps, i < HAK_DECAY_STEPS ? HAK_DECAY_STEPS - i : 0);
    }
}

// Units are counted as used again once, when they were given back and are taken.
static void the_arena_counts_what_is_used_again(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    const struct hak_purge_age now = {0, 0};
    struct hak_slab *run = hak_runs_take(0, HAK_MIB(1), 1, HAK_SLAB_LARGE);
    UNIT_EQUAL(hak_arena.retaken_bytes, 0); // was never used
    hak_runs_give(run);
    run = hak_runs_take(0, HAK_MIB(1), 1, HAK_SLAB_LARGE);
    UNIT_EQUAL(hak_arena.retaken_bytes, 0); // was not given back
    hak_runs_give(run);
    UNIT_EQUAL(hak_purge(now, SIZE_MAX), HAK_MIB(1));
    run = hak_runs_take(0, HAK_KIB(512), 1, HAK_SLAB_LARGE);
    UNIT_EQUAL(hak_arena.retaken_bytes, HAK_KIB(512));
    hak_runs_give(run);
    run = hak_runs_take(0, HAK_KIB(512), 1, HAK_SLAB_LARGE);
    UNIT_EQUAL(hak_arena.retaken_bytes, HAK_KIB(512));
    hak_runs_give(run);
}

int main(void)
{
    what_is_used_again_waits_longer();
    what_is_not_makes_it_less_so();
    the_arena_counts_what_is_used_again();
    return 0;
}
