// args: 8 6 1
// native only
// with features
//
// The life of a server: rounds in which threads start, work with blocks of all sizes, pass some to each
// other, fork children that do the same, and end. After each round everything is freed: the statistics
// agree to the block, their parts add up to what is mapped, and resident memory does not grow.
#include "../support/api.h"

#include "../support/memory.h"
#include "../support/model.h"
#include "../support/stress.h"

enum {
    SLOTS = 150,
    LARGEST = 2 << 20,
    STEPS = 4000,
    SHARED = 256,
    QUIET_ROUNDS = 2,
    MARGIN_KIB = 48 * 1024
};

static void *_Atomic shared[SHARED];
static _Atomic(size_t) forks;
static _Atomic(size_t) steps_done;

static __typeof__(hak_stats_read) *api_hak_stats_read;
static __typeof__(hak_trim) *api_hak_trim;

static void churn(struct ht_random *random, size_t steps)
{
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    for (size_t i = 0; i < steps; i++) {
        ht_slot_step(&slots[ht_random_below(random, SLOTS)], random, LARGEST);
        void *mine = malloc(1 + ht_random_size(random, 3000));
        HT_CHECK(mine != NULL, "malloc failed");
        free(atomic_exchange(&shared[ht_random_below(random, SHARED)], mine));
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
    atomic_fetch_add(&steps_done, steps);
}

static void *live(void *argument)
{
    struct ht_worker *worker = argument;
    churn(&worker->random, STEPS);
    if (worker->index % 4 == 0) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            churn(&worker->random, STEPS / 8);
            _exit(0);
        }
        ht_wait_child(child, "a child");
        atomic_fetch_add(&forks, 1);
    }
    return NULL;
}

static struct hak_stats check_statistics(size_t live_blocks)
{
    struct hak_stats stats;
    api_hak_stats_read(&stats);
    HT_CHECK(stats.live_blocks <= live_blocks,
             "all is freed, but %zu blocks are live, at first %zu",
             stats.live_blocks,
             live_blocks);
    const size_t parts = stats.live_bytes + stats.cached_bytes + stats.kept_bytes +
                         stats.slab_free_bytes + stats.unit_free_bytes;
    HT_CHECK(parts <= stats.mapped_bytes, "parts of %zu in %zu mapped", parts, stats.mapped_bytes);
    HT_CHECK(stats.dirty_bytes <= stats.unit_free_bytes, "more is dirty than is free");
    return stats;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    HT_API_FIND(hak_stats_read);
    HT_API_FIND(hak_trim);
    long first_kib = 0;
    size_t live_blocks = 0;
    struct hak_stats stats;
    for (size_t round = 0; round < stress.operations + QUIET_ROUNDS; round++) {
        stress.seed++;
        ht_run_threads(&stress, 1 + (round * 5 + 3) % stress.threads, live);
        for (size_t i = 0; i < SHARED; i++) {
            free(atomic_exchange(&shared[i], NULL));
        }
        api_hak_trim();
        if (round < QUIET_ROUNDS) { // the C library's own blocks, for its threads' stacks and more
            api_hak_stats_read(&stats);
            live_blocks = stats.live_blocks > live_blocks ? stats.live_blocks : live_blocks;
            first_kib = ht_rss_kib() > first_kib ? ht_rss_kib() : first_kib;
            continue;
        }
        stats = check_statistics(live_blocks + stress.threads);
        const long kib = ht_rss_kib();
        HT_CHECK(kib <= first_kib + MARGIN_KIB, "%ld KiB resident, at first %ld", kib, first_kib);
    }
    printf(
        "%zu steps, %zu forks; %zu KiB mapped, %zu blocks live, %ld KiB resident, at first %ld\n",
        atomic_load(&steps_done),
        atomic_load(&forks),
        stats.mapped_bytes / 1024,
        stats.live_blocks,
        ht_rss_kib(),
        first_kib);
    return 0;
}
