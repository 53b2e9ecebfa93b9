// args: 4 300000 1
// args in tsan: 4 15000 1
// args in aarch64: 4 20000 1
// args in mte: 4 20000 1
// tsan
// secure too
//
// All free memory is given back, again and again, while other threads allocate and free: in mode secure each
// block of a slab is checked before its pages are purged, also blocks that change meanwhile.
#include "../support/stress.h"

#include "../support/model.h"

enum { SLOTS = 64, LARGEST = 30000 };

static atomic_size_t working;

static void *trim(void)
{
    while (atomic_load(&working) > 0) {
        malloc_trim(0);
    }
    return NULL;
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    if (worker->index == 0) {
        return trim();
    }
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    for (size_t i = 0; i < worker->operations; i++) {
        ht_slot_step(&slots[ht_random_below(&worker->random, SLOTS)], &worker->random, LARGEST);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    atomic_store(&working, stress.threads - 1);
    ht_run_threads(&stress, stress.threads, work);
    return 0;
}
