// args: 5 8000 1
// tsan
// secure too
// with features
// Sampling may start, change its rate and end at any moment, while other threads allocate, pass blocks to
// each other and free them, sampled or not: every block keeps its content.
#include "../support/api.h"

#include "../support/model.h"
#include "../support/stress.h"

enum { SHELVES = 64, LARGEST = 3000 };

static struct ht_slot shelves[SHELVES];
static atomic_flag taken[SHELVES];
static _Atomic(size_t) working;

// Allocates, and checks and frees the blocks that others have left.
static void *churn(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_slot own[16] = {{NULL, 0, 0}};
    for (size_t i = 0; i < worker->operations; i++) {
        const size_t largest = ht_random_below(&worker->random, 50) == 0 ? 60 * LARGEST : LARGEST;
        const size_t shelf = ht_random_below(&worker->random, SHELVES);
        ht_slot_step(&own[i % 16], &worker->random, largest);
        if (!atomic_flag_test_and_set(&taken[shelf])) {
            ht_slot_step(&shelves[shelf], &worker->random, largest);
            atomic_flag_clear(&taken[shelf]);
        }
    }
    for (size_t i = 0; i < 16; i++) {
        ht_slot_free(&own[i]);
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static void *work(void *argument)
{
    static const size_t distances[] = {1, 500, 20000, 500000};
    struct ht_worker *worker = argument;
    if (worker->index != 0) {
        return churn(argument);
    }
    HT_API(hak_profile_start);
    HT_API(hak_profile_stop);
    while (atomic_load(&working) != 0) {
        const size_t distance = distances[ht_random_below(&worker->random, 4)];
        HT_CHECK(api_hak_profile_start(distance), "cannot sample one in %zu bytes", distance);
        usleep((useconds_t)ht_random_below(&worker->random, 3000));
        if (ht_random_below(&worker->random, 2) == 0) {
            api_hak_profile_stop();
            usleep((useconds_t)ht_random_below(&worker->random, 3000));
        }
    }
    api_hak_profile_stop();
    return NULL;
}

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    for (unsigned times = 0; times < 3; times++) { // caches of ended threads are used again
        atomic_store(&working, stress.threads - 1);
        ht_run_threads(&stress, stress.threads, work);
    }
    for (size_t i = 0; i < SHELVES; i++) {
        ht_slot_free(&shelves[i]);
    }
    return 0;
}
