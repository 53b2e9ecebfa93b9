// A free unit that becomes memory of a hardened heap's pool gets guards around it; if the kernel refuses them, it stays free.
#include "slab/feed.h"

#include <unistd.h>

#include "../census.h"
#include "cache/start.h"
#include "cache/sweep.h"
#include "meta/pool.h"
#include "slab/runs.h"

enum { UNITS = 8 };

static bool can_be_read(const char *place)
{
    int ends[2];
    UNIT_CHECK(pipe(ends) == 0);
    const bool can = write(ends[1], place, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

static void no_memory_is_left(void)
{
    hak_fake.refuse_asks = true;
    for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) {
        while (hak_pool_take(bytes) != NULL) {
        }
    }
}

int main(void)
{
    hak_option_choose(&hak_options.zero_on_free, 1, HAK_FROM_PROGRAM);
    hak_start_process();
    new_thread();
    const size_t page = hak_os_page_bytes();
    struct hak_run *run = hak_runs_take(0, UNITS * HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false);
    memset(run->base, 1, UNITS * HAK_UNIT_BYTES);
    hak_runs_give(run);
    no_memory_is_left();
    const size_t free_bytes = hak_arena.free_bytes;
    const size_t slab_bytes = hak_arena.slab_bytes;
    hak_fake.refuse_guard = true;
    UNIT_CHECK(!hak_feed_pool(0, 1, page));
    UNIT_EQUAL(hak_arena.free_bytes, free_bytes);
    UNIT_EQUAL(hak_arena.slab_bytes, slab_bytes);
    hak_fake.refuse_guard = false;
    UNIT_CHECK(!hak_feed_pool(0, 1, HAK_UNIT_BYTES)); // no item of that size would be made
    UNIT_CHECK(hak_feed_pool(0, 1, page));
    UNIT_EQUAL(hak_arena.free_bytes, free_bytes - HAK_UNIT_BYTES);
    const char *unit = run->base;
    UNIT_CHECK(!can_be_read(unit) && !can_be_read(unit + HAK_UNIT_BYTES - 1));
    for (size_t at = page; at < HAK_UNIT_BYTES - page; at++) {
        UNIT_EQUAL(unit[at], 0);
    }
    UNIT_CHECK(!hak_feed_pool(0, 1, page)); // the pool has some
    char *item = hak_pool_take(page);
    UNIT_CHECK(item >= unit + page && item + 2 * page <= unit + HAK_UNIT_BYTES);
    return 0;
}
