// Options may change in the middle of a purge. What is recorded of the pages is what was done, not what the options say
// afterwards.
#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"
#include "slab/arena.h"
#include "slab/purge.h"
#include "slab/ranges.h"
#include "slab/runs.h"

static enum hak_free_policy policy_meanwhile;
static uint64_t batch_meanwhile;

static void change(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
    hak_options.free_policy = policy_meanwhile;
    hak_options.batch_madvise = batch_meanwhile;
}

// Pages that were given back under one policy while the option changed to another: do they read as zeros?
static bool are_zeroed(enum hak_free_policy before, enum hak_free_policy meanwhile)
{
    struct hak_run *run = hak_runs_take(0, HAK_MIB(1), 1, HAK_RUN_LARGE, false);
    UNIT_CHECK(run != NULL);
    memset(run->base, 1, HAK_MIB(1));
    hak_runs_give(run);
    hak_options.free_policy = before;
    policy_meanwhile = meanwhile;
    hak_fake.on_purge = change;
    UNIT_EQUAL(hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX), HAK_MIB(1));
    hak_fake.on_purge = NULL;
    run = hak_runs_take(0, HAK_MIB(1), 1, HAK_RUN_LARGE, false);
    const bool zeroed = run->zeroed;
    hak_runs_give(run);
    hak_options.free_policy = HAK_FREE_NOW;
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    return zeroed;
}

static void zeros_are_what_was_made_zero(void)
{
    UNIT_CHECK(are_zeroed(HAK_FREE_NOW, HAK_FREE_NOW));
    UNIT_CHECK(!are_zeroed(HAK_FREE_LAZILY, HAK_FREE_LAZILY));
    UNIT_CHECK(!are_zeroed(HAK_FREE_LAZILY, HAK_FREE_NOW));
    UNIT_CHECK(are_zeroed(HAK_FREE_NOW, HAK_FREE_LAZILY));
}

// A page is enough for a call of its own, but not for a batch with others: what is recorded of it is what was done.
static void enough_is_what_was_enough(void)
{
    char *page = hak_os_map(hak_os_page_bytes());
    struct hak_ranges ranges = {.count = 0};
    hak_ranges_add(&ranges, page, hak_os_page_bytes());
    page[0] = 1;
    hak_options.batch_madvise = 0;
    batch_meanwhile = 1;
    policy_meanwhile = HAK_FREE_NOW;
    hak_fake.on_purge = change;
    struct hak_purged purged = hak_ranges_purge(&ranges);
    hak_fake.on_purge = NULL;
    UNIT_CHECK(purged.is_tried && purged.is_zeroed && purged.done == 1 && page[0] == 0);
    purged = hak_ranges_purge(&ranges);
    UNIT_CHECK(!purged.is_tried && purged.done == 0);
    hak_options.batch_madvise = 0;
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_options.huge_start_bytes = SIZE_MAX;
    batch_meanwhile = hak_options.batch_madvise;
    zeros_are_what_was_made_zero();
    enough_is_what_was_enough();
    return 0;
}
