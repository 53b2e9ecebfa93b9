// args: 16 250 1
// args in tsan: 16 80 1
// args in aarch64: 16 80 1
// args in mte: 16 80 1
// env: HAKMEM_ARENA_SHARDS=8
// tsan
// secure too
//
// Thousands of threads come and go, a bounded number at once. Each frees what
// earlier ones left and leaves blocks of its own behind; some end with their
// caches full, by pthread_exit, or detached.
#include "../support/stress.h"

#include "../support/model.h"

enum { LEFT = 4096, BLOCKS = 60, LARGEST = 5000 };

static _Atomic(struct ht_slot *) left[LEFT];

static void swap_blocks(struct ht_random *random)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        struct ht_slot *slot = malloc(sizeof *slot);
        HT_CHECK(slot != NULL, "no slot");
        size_t size = 1 + ht_random_size(random, LARGEST);
        ht_slot_take(slot, malloc(size), size, _Alignof(max_align_t), i);
        size_t place = ht_random_below(random, LEFT);
        slot = atomic_exchange(&left[place], slot);
        if (slot != NULL) {
            ht_slot_free(slot);
            free(slot);
        }
    }
}

static void *visit(void *seed)
{
    struct ht_random random = {(uintptr_t)seed};
    swap_blocks(&random);
    if (ht_random_below(&random, 3) == 0) {
        pthread_exit(NULL);
    }
    return NULL;
}

// Starts one short-lived thread after the other.
static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    for (size_t i = 0; i < worker->operations; i++) {
        pthread_t thread;
        void *seed = (void *)(uintptr_t)ht_random_next(&worker->random);
        int error = pthread_create(&thread, NULL, visit, seed);
        HT_CHECK(error == 0, "no thread: %d", error);
        if (i % 50 == 49) {
            pthread_detach(thread);
            ht_sleep_ms(1);
        } else {
            pthread_join(thread, NULL);
        }
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    ht_run_threads(&stress, stress.threads, work);
    ht_sleep_ms(100); // for the detached threads
    for (size_t i = 0; i < LEFT; i++) {
        struct ht_slot *slot = atomic_exchange(&left[i], NULL);
        if (slot != NULL) {
            ht_slot_free(slot);
            free(slot);
        }
    }
    return 0;
}
