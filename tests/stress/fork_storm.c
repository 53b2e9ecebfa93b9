// args: 8 40 1
// args in secure: 8 15 1
// env: ASAN_OPTIONS=detect_leaks=0
// secure too
//
// All threads of a program fork while all allocate. Each child checks and frees
// every block it can see, allocates, starts threads and ends; the parent's
// blocks stay as they were. (The leak checker would look in each child for the parent's threads.)
#include "../support/stress.h"

#include "../support/model.h"

enum { SLOTS = 100, LARGEST = 60000, TIMEOUT_S = 60 };

struct crew {
    struct ht_slot slots[SLOTS];
    atomic_bool at_work; // its slots are in the middle of an operation
};

static struct crew crews[HT_MOST_THREADS];

// gcc 12's AddressSanitizer does not take its own allocator's locks around fork, and every thread
// uses that allocator when it starts and when it ends: a child that is forked at such a moment would hang
// when it starts a thread of its own, with any malloc. So under it no thread starts or ends while others
// fork, nor does the sweeper, which starts with a thread's first malloc; elsewhere they may.
#ifdef __SANITIZE_ADDRESS__
#    define STAY_TOGETHER()                                   \
        do {                                                  \
            free(ht_hide(malloc(1)));                         \
            ht_meet();                                        \
            ht_sleep_ms(100); /* the sweeper is on its way */ \
        } while (0)
#else
#    define STAY_TOGETHER() ((void)0)
#endif

static void *work_a_little(void *seed)
{
    struct ht_random random = {(uintptr_t)seed};
    struct ht_slot slots[20] = {{NULL, 0, 0}};
    for (size_t i = 0; i < 300; i++) {
        ht_slot_step(&slots[ht_random_below(&random, 20)], &random, LARGEST);
    }
    for (size_t i = 0; i < 20; i++) {
        ht_slot_free(&slots[i]);
    }
    return NULL;
}

_Noreturn static void live_as_child(size_t forker, struct ht_random *random)
{
    alarm(TIMEOUT_S); // a lock held by a thread that is not here would block us for ever
    for (size_t i = 0; i < HT_MOST_THREADS; i++) {
        // The slot that a thread was working on may be half done.
        if (i == forker || !atomic_load(&crews[i].at_work)) {
            for (size_t j = 0; j < SLOTS; j++) {
                ht_slot_free(&crews[i].slots[j]);
            }
        }
    }
    work_a_little((void *)(uintptr_t)ht_random_next(random));
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, work_a_little, (void *)1) == 0, "no thread in a child");
    pthread_join(thread, NULL);
    exit(0);
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    struct crew *crew = &crews[worker->index];
    STAY_TOGETHER();
    for (size_t i = 0; i < worker->operations; i++) {
        atomic_store(&crew->at_work, true);
        for (size_t j = 0; j < 2000; j++) {
            size_t slot = ht_random_below(&worker->random, SLOTS);
            ht_slot_step(&crew->slots[slot], &worker->random, LARGEST);
        }
        atomic_store(&crew->at_work, false);
        pid_t child = fork();
        if (child == 0) {
            live_as_child(worker->index, &worker->random);
        }
        ht_wait_child(child, "a child");
    }
    atomic_store(&crew->at_work, true);
    for (size_t i = 0; i < SLOTS; i++) {
        ht_slot_free(&crew->slots[i]);
    }
    STAY_TOGETHER();
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    ht_run_rising_threads(&stress, work);
    return 0;
}
