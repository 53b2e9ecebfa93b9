// soak in: aarch64 mte
// pages: 16384 65536
// with features
// A scripted run in which every ask for memory fails once, alone and with all asks after it: the call
// returns NULL with ENOMEM, nothing is lost, and everything works once there is memory again.
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "script.h"

enum { STEPS = 260 };

static void whole_run(uint64_t seed)
{
    struct ht_random random = {seed};
    for (unsigned i = 0; i < STEPS; i++) {
        step(&random);
        if (i % 64 == 63) {
            hak_trim();
            use_a_heap();
        }
    }
    check_statistics();
    hak_fake.fail_times = 0;
    for (unsigned i = 0; i < HELD; i++) { // and now there is memory
        if (held[i] != NULL) {
            drop(i);
        }
        const unsigned before = refusals;
        take(i, 1 + ht_random_size(&random, HAK_MIB(1)), 2);
        UNIT_EQUAL(refusals, before);
    }
    check_statistics();
    for (unsigned i = 0; i < HELD; i++) {
        drop(i);
    }
    check_statistics();
    hak_trim();
    struct hak_stats stats;
    hak_stats_read(&stats);
    UNIT_EQUAL(stats.mapping_count, 0);
    UNIT_EQUAL(stats.unit_free_bytes + stats.cached_bytes + stats.slab_free_bytes > 0 ||
                   stats.superslab_count == 0,
               true);
}

// In a child, so that each run starts from nothing: the asks of the first allocations fail, too.
static void run_with(size_t count, size_t times, bool must_notice)
{
    const pid_t child = fork();
    UNIT_CHECK(child >= 0);
    if (child == 0) {
        hak_fake_fail_in(count, times);
        whole_run(1);
        UNIT_CHECK(!must_notice || refusals > 0);
        _exit(0);
    }
    int status = 0;
    UNIT_CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "fails when ask %zu is refused, %zu times\n", count, times);
        _Exit(1);
    }
}

// The number of asks in a run in which none fails.
static size_t asks_of_a_run(void)
{
    int ends[2];
    UNIT_EQUAL(pipe(ends), 0);
    const pid_t child = fork();
    UNIT_CHECK(child >= 0);
    if (child == 0) {
        whole_run(1);
        UNIT_EQUAL(refusals, 0);
        const size_t asks = hak_fake.asks;
        _exit(write(ends[1], &asks, sizeof asks) == sizeof asks ? 0 : 1);
    }
    close(ends[1]);
    size_t asks = 0;
    UNIT_EQUAL(read(ends[0], &asks, sizeof asks), sizeof asks);
    waitpid(child, NULL, 0);
    close(ends[0]);
    return asks;
}

int main(void)
{
#if HAK_TSAN
    return 77; // one thread in many processes: slow there, and it has nothing to check
#endif
    hak_options.purger = 0; // the sweeper's thread would not run here
    const size_t asks = asks_of_a_run();
    UNIT_CHECK(asks > 20);
    for (size_t n = 1; n <= asks; n++) {
        run_with(n, 1, false); // most calls try again and succeed
        run_with(n, 2, false);
        run_with(n, SIZE_MAX / 2, n < asks / 2);
    }
    return 0;
}
