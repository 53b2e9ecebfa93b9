// args: 8 300 1
// args in aarch64: 8 100 1
//
// Threads are cancelled at any point: between allocations, in the C library's calls that allocate, while
// they start and while they end. Clean-up handlers and other threads free their blocks; nothing is
// lost. (No malloc promises that a thread can be cancelled at any instruction, PTHREAD_CANCEL_ASYNCHRONOUS.)
#include "../support/stress.h"

#include "../support/model.h"

enum { SLOTS = 40, LARGEST = 40000 };

static void clean_up(void *argument)
{
    struct ht_slot *slots = argument;
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&slots[i]);
    }
}

static void *be_cancelled(void *seed)
{
    struct ht_random random = {(uintptr_t)seed};
    struct ht_slot slots[SLOTS] = {{NULL, 0, 0}};
    pthread_cleanup_push(clean_up, slots);
    for (;;) {
        ht_slot_step(&slots[ht_random_below(&random, SLOTS)], &random, LARGEST);
        pthread_testcancel();
    }
    pthread_cleanup_pop(1);
    return NULL;
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    for (size_t i = 0; i < worker->operations; i++) {
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, be_cancelled, (void *)(uintptr_t)(i + 1)) == 0,
                 "no thread");
        for (size_t spin = ht_random_below(&worker->random, 20000); spin > 0; spin--) {
            ht_hide(NULL);
        }
        pthread_cancel(thread);
        void *result = NULL;
        pthread_join(thread, &result);
        HT_CHECK(result == PTHREAD_CANCELED, "a cancelled thread returned");
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    ht_run_rising_threads(&stress, work);
    return 0;
}
