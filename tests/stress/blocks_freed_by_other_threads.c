// args: 16 60000 1
// args in tsan: 16 8000 1
// args in mte: 16 6000 1
// tsan
// secure too
//
// Every thread allocates, and passes most of its blocks in batches to
// any other thread, which checks and frees them.
#include "../support/stress.h"

#include "../support/model.h"

enum { BATCH = 40, SHELVES = 24, LARGEST = 3000 };

struct batch {
    struct ht_slot slots[BATCH];
};

static _Atomic(struct batch *) shelves[SHELVES];

static void free_batch(struct batch *batch)
{
    if (batch == NULL) {
        return;
    }
    for (size_t i = 0; i < BATCH; i++) {
        ht_slot_free(&batch->slots[i]);
    }
    free(batch); // itself another thread's block
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    for (size_t i = 0; i < worker->operations; i += BATCH) {
        struct batch *batch = calloc(1, sizeof *batch);
        HT_CHECK(batch != NULL, "calloc of a batch failed");
        size_t largest = ht_random_below(&worker->random, 20) == 0 ? 60 * LARGEST : LARGEST;
        for (size_t j = 0; j < BATCH; j++) {
            ht_slot_step(&batch->slots[j], &worker->random, largest);
        }
        size_t shelf = ht_random_below(&worker->random, SHELVES);
        free_batch(atomic_exchange(&shelves[shelf], batch));
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    ht_run_rising_threads(&stress, work);
    for (size_t i = 0; i < SHELVES; i++) {
        free_batch(atomic_load(&shelves[i]));
    }
    return 0;
}
