// args: 16 150000 1
// args in tsan: 16 25000 1
// args in mte: 16 15000 1
// tsan
// secure too
//
// Half of the threads only allocate, the other half only free, through queues
// of bounded length: the freeing threads own no slabs.
#include "../support/stress.h"

#include "../support/model.h"

enum { QUEUE = 512, LARGEST = 2000 };

struct queue {
    _Atomic(struct ht_slot *) slots[QUEUE];
    atomic_bool finished;
};

static struct queue queues[HT_MOST_THREADS / 2];

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct queue *queue = &queues[worker->index / 2];
    bool allocates = worker->index % 2 == 0;
    for (size_t i = 0; i < worker->operations; i++) {
        _Atomic(struct ht_slot *) *place = &queue->slots[i % QUEUE];
        struct ht_slot *slot = NULL;
        if (allocates) {
            size_t size = sizeof *slot + ht_random_below(&worker->random, LARGEST);
            slot = malloc(sizeof *slot);
            HT_CHECK(slot != NULL, "no slot");
            ht_slot_take(slot, malloc(size), size, _Alignof(max_align_t), i);
            while (atomic_load(place) != NULL) {
                sched_yield();
            }
            atomic_store(place, slot);
        } else {
            while ((slot = atomic_exchange(place, NULL)) == NULL) {
                sched_yield();
            }
            ht_slot_free(slot);
            free(slot);
        }
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    for (size_t threads = 2; threads <= stress.threads; threads *= 2) {
        struct ht_stress part = stress;
        part.operations = stress.operations / threads;
        ht_run_threads(&part, threads, work);
    }
    return 0;
}
