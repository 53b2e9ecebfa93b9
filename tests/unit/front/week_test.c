// soak in: tsan aarch64
// args: 216000
// A service that runs for a long time, on a clock of its own: the argument is the number of ticks of 100 ms, here six hours;
// tools/soak runs a week. The service has peaks of load, quiet hours and nights, other sizes every ten minutes, and threads that
// end and leave their blocks behind. The sweeper's ticks pass 2^32 on the way. The mapped bytes, the metadata, and what waits to
// be purged at night do not grow.
#include <hakmem/hakmem.h>
#include <pthread.h>

#include "../unit.h"
#include "base/options.h"
#include "cache/sweeper.h"
#include "meta/pool.h"
#include "slab/arena.h"

enum {
    LIVE = 4000,
    TICKS_AN_HOUR = 36000,
    TICKS_A_PHASE = 6000,
    TICKS_A_THREAD = 9000,
    CALLS_A_TICK = 40,
    PARTS = 4, // of the whole time: what holds in the second part holds in the last
};

static char *live[LIVE];
static size_t sizes[LIVE];
static struct ht_random random_state = {1};
static size_t ticks;
static size_t last_tick;

struct most {
    size_t mapped;
    size_t own; // metadata
    size_t at_night;
};
static struct most most_of[PARTS];

static size_t size_now(void)
{
    static const size_t largest[] = {256, 4096, 60000, 1024};
    const size_t phase = ticks / TICKS_A_PHASE % 4;
    const bool is_large = ht_random_below(&random_state, 2000) == 0;
    return 1 + ht_random_size(&random_state, is_large ? HAK_MIB(2) : largest[phase]);
}

static void replace(size_t i)
{
    if (live[i] != NULL) {
        UNIT_CHECK(live[i][0] == (char)i && live[i][sizes[i] - 1] == (char)i);
        hak_free(live[i]);
    }
    sizes[i] = size_now();
    live[i] = hak_malloc(sizes[i]);
    UNIT_CHECK(live[i] != NULL);
    live[i][0] = (char)i;
    live[i][sizes[i] - 1] = (char)i;
}

static void *replace_some(void *unused)
{
    for (unsigned i = 0; i < CALLS_A_TICK; i++) {
        replace(ht_random_below(&random_state, LIVE));
    }
    return unused;
}

static bool is_night(void)
{
    return ticks / TICKS_AN_HOUR % 4 == 3; // short days, so that there are more of them
}

static void note(size_t *most, size_t now)
{
    *most = now > *most ? now : *most;
}

// The work of a tenth of a second.
static void live_on(void)
{
    struct most *most = &most_of[ticks * PARTS / last_tick];
    if (!is_night()) {
        replace_some(NULL);
    } else if (ticks % TICKS_AN_HOUR > TICKS_AN_HOUR / 2) {
        note(&most->at_night, hak_arena.dirty_bytes);
    }
    if (ticks % TICKS_A_THREAD == 0) {
        pthread_t thread;
        UNIT_EQUAL(pthread_create(&thread, NULL, replace_some, NULL), 0);
        pthread_join(thread, NULL);
    }
    note(&most->mapped, hak_arena.super_bytes + hak_arena.mapping_bytes);
    note(&most->own, hak_pool.mapped_bytes);
    ticks += ticks + 1 < last_tick;
    hak_options.purger = ticks + 1 < last_tick;
}

int main(int argc, char **argv)
{
    UNIT_EQUAL(argc, 2);
    last_tick = strtoul(argv[1], NULL, 10);
    hak_free(hak_malloc(1));
    hak_sweeper_thread_came(true); // a second thread, so that there is a sweeper
    hak_arena.tick = UINT32_MAX - last_tick / 40;
    hak_fake.on_wait = live_on; // while the sweeper runs
    while (ticks + 1 < last_tick) {
        if (hak_sweep_runs != 0) {
            hak_sweeper_work();
        } else {
            live_on();
            hak_fake.now_ns += UINT64_C(100000000);
        }
    }
    const struct most *before = &most_of[1];
    const struct most *after = &most_of[PARTS - 1];
    UNIT_CHECK(after->mapped <= before->mapped + before->mapped / 8);
    UNIT_CHECK(after->own <= before->own + before->own / 8);
    UNIT_CHECK(after->at_night <= before->at_night + HAK_MIB(1));
    UNIT_CHECK(hak_arena.tick > UINT32_MAX);
    return 0;
}
