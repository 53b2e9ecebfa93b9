// soak in: aarch64 mte
// args: 1
// args in asan: 3
// args in aarch64: 5
// timeout: 300
// with features
//
// Every system call that may be refused is refused, alone or with all that follow until the program
// notices; then calls are refused at random. Three threads come and go and pass each other blocks,
// and a sweeper works: nothing is lost or changed, and when no more calls are refused, everything works as before.
// The argument n means that only every n-th call has its turn.
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "cache/ended.h"
#include "cache/sweep.h"
#include "cache/sweeper.h"
#include "cache/thread.h"
#include "script.h"

enum { STEPS = 150, THREADS = 3, RANDOM_RUNS = 30 };

static struct hak_cache *threads[THREADS] = {
    &hak_cache_nobody, &hak_cache_nobody, &hak_cache_nobody};

// Run the sweeper, if it was woken.
static void sweep(void)
{
    if (hak_sweep_runs != 0) {
        hak_sweeper_work();
    }
}

static void end_thread(size_t i)
{
    if (threads[i] != &hak_cache_nobody) {
        hak_cache_self = &hak_cache_shared;
        hak_ended_bury(threads[i]);
        threads[i] = &hak_cache_nobody;
    }
}

static void one_turn(struct ht_random *random, unsigned number)
{
    const size_t i = ht_random_below(random, THREADS);
    hak_cache_self = threads[i];
    for (unsigned steps = 0; steps < 6; steps++) {
        step(random);
    }
    if (number % 8 == 0) {
        use_a_heap();
    }
    if (number % 10 == 0) {
        hak_trim();
    }
    threads[i] = hak_cache_self;
    if (ht_random_below(random, 6) == 0) {
        end_thread(i);
    }
    sweep();
}

static void everything_works(struct ht_random *random)
{
    hak_fake.refuse_times = 0;
    hak_fake.refuse_one_in = 0;
    refusals = 0;
    for (unsigned i = 0; i < HELD; i++) {
        hak_cache_self = threads[i % THREADS];
        if (held[i] != NULL) {
            drop(i);
        }
        take(i, 1 + ht_random_size(random, HAK_MIB(1)), 2);
        threads[i % THREADS] = hak_cache_self;
    }
    UNIT_EQUAL(refusals, 0);
    check_statistics();
}

static void nothing_is_left(void)
{
    hak_cache_self = threads[0];
    for (unsigned i = 0; i < HELD; i++) {
        drop(i);
    }
    for (size_t i = 1; i < THREADS; i++) {
        end_thread(i);
    }
    hak_trim();
    check_statistics();
    struct hak_stats stats;
    hak_stats_read(&stats);
    UNIT_EQUAL(stats.mapping_count, 0);
    UNIT_EQUAL(stats.dirty_bytes, 0);
}

static void whole_run(uint64_t seed)
{
    struct ht_random random = {seed};
    for (unsigned number = 1; number <= STEPS / 6; number++) {
        one_turn(&random, number);
    }
    check_statistics();
    everything_works(&random);
    nothing_is_left();
}

struct outcome {
    size_t calls;
    size_t refusals;
};

// In a child, so that each run starts from nothing: the calls of the first allocations are refused, too.
static struct outcome run_with(size_t first, size_t times, uint64_t one_in, uint64_t seed)
{
    int ends[2];
    UNIT_EQUAL(pipe(ends), 0);
    const pid_t child = fork();
    UNIT_CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        hak_fake.refuse_first = first;
        hak_fake.refuse_times = times;
        hak_fake.refuse_one_in = one_in;
        hak_fake.random = seed;
        whole_run(seed);
        const struct outcome outcome = {hak_fake.calls, hak_fake.refusals};
        _exit(write(ends[1], &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
    }
    close(ends[1]);
    struct outcome outcome = {0, 0};
    const bool is_there = read(ends[0], &outcome, sizeof outcome) == sizeof outcome;
    close(ends[0]);
    int status = 0;
    UNIT_CHECK(waitpid(child, &status, 0) == child);
    if (!is_there || status != 0) {
        fprintf(stderr,
                "fails when from call %zu %zu are refused, and one in %zu; seed %zu\n",
                first,
                times,
                (size_t)one_in,
                (size_t)seed);
        _Exit(1);
    }
    return outcome;
}

int main(int count, char **arguments)
{
#if HAK_TSAN
    return 77; // one thread in many processes: slow there, and it has nothing to check
#endif
    UNIT_CHECK(count == 2);
    const size_t step_calls = strtoul(arguments[1], NULL, 10);
    UNIT_CHECK(step_calls > 0);
    size_t refused = 0;
    size_t runs = 0;
    const size_t calls = run_with(0, 0, 0, 1).calls;
    UNIT_CHECK(calls > 100);
    for (size_t n = 1; n <= calls; n += step_calls, runs++) {
        // Each call in turn, every fourth with all that follow.
        refused += run_with(n, n % 4 == 0 ? SIZE_MAX / 2 : 1, 0, 1).refusals;
    }
    for (uint64_t seed = 1; seed <= RANDOM_RUNS; seed++, runs++) {
        refused += run_with(0, 0, 2 + seed % 8, seed).refusals;
    }
    UNIT_CHECK(refused > calls / step_calls);
    printf("%zu calls, %zu runs, %zu calls refused\n", calls, runs, refused);
    return 0;
}
