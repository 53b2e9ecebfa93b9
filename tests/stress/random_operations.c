// pages: 65536
// args: 64 6000 1
// args in tsan: 64 800 1
// args in secure: 64 2500 1
// args in mte: 64 800 1
// tsan
// secure too
//
// Random operations of the whole malloc family in many threads, each on its own
// slots: contents, alignment, zeros and sizes agree with the model; no overlap.
#include "../support/stress.h"

#include "../support/model.h"

enum { SLOTS = 200, LARGEST = 400000 };

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    for (size_t i = 0; i < worker->operations; i++) {
        size_t slot = ht_random_below(&worker->random, SLOTS);
        // Now and then a block that has a mapping of its own.
        size_t largest = ht_random_below(&worker->random, 500) == 0 ? 10 * LARGEST : LARGEST;
        ht_slot_step(&slots[slot], &worker->random, largest);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    ht_run_rising_threads(&stress, work);
    return 0;
}
