// args: 8 150 1
// args in asan: 8 50 1
// args in aarch64: 8 50 1
// Not under ThreadSanitizer: its runtime leaves a thread before the last round of destructors.
//
// Threads end with destructors that allocate, free their own blocks, free other
// threads' blocks, and set new values to be destroyed in the next round. In the
// last round they continue for a while, beside new threads.
#include "../support/stress.h"

#include <sched.h>

#include "../support/model.h"

enum { KEYS = 4, ROUNDS = 3, SHARED = 64, LAST_VALUES = 20 };

struct value {
    struct ht_slot slot;
    size_t key;
    int rounds;
};

static pthread_key_t keys[KEYS];
static _Atomic(struct value *) shared[SHARED];

static struct value *make_value(size_t key, int rounds, size_t size)
{
    struct value *value = malloc(sizeof *value);
    HT_CHECK(value != NULL, "no value");
    value->key = key;
    value->rounds = rounds;
    ht_slot_take(&value->slot, malloc(size), size, _Alignof(max_align_t), size);
    return value;
}

static void leave(struct value *value)
{
    value = atomic_exchange(&shared[value->slot.size % SHARED], value);
    if (value != NULL) {
        ht_slot_free(&value->slot);
        free(value);
    }
}

static void destroy(void *argument)
{
    struct value *value = argument;
    size_t size = value->slot.size;
    if (value->rounds > 0) {
        pthread_setspecific(keys[value->key],
                            make_value(value->key, value->rounds - 1, size * 3 + 1));
    } else {
        for (size_t i = 0; i < LAST_VALUES; i++) {
            leave(make_value(value->key, 0, 1 + (size + i * 37) % 2000));
            sched_yield();
        }
    }
    leave(value);
}

static void *visit(void *seed)
{
    struct ht_random random = {(uintptr_t)seed};
    for (size_t i = 0; i < KEYS; i++) {
        pthread_setspecific(keys[i], make_value(i, ROUNDS, 1 + ht_random_size(&random, 2000)));
    }
    return NULL;
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    for (size_t i = 0; i < worker->operations; i++) {
        pthread_t thread;
        void *seed = (void *)(uintptr_t)ht_random_next(&worker->random);
        HT_CHECK(pthread_create(&thread, NULL, visit, seed) == 0, "no thread");
        pthread_join(thread, NULL);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    struct ht_stress stress = ht_stress_start(count, arguments);
    for (size_t i = 0; i < KEYS; i++) {
        HT_CHECK(pthread_key_create(&keys[i], destroy) == 0, "no key");
    }
    ht_run_rising_threads(&stress, work);
    for (size_t i = 0; i < SHARED; i++) {
        struct value *value = atomic_exchange(&shared[i], NULL);
        if (value != NULL) {
            ht_slot_free(&value->slot);
            free(value);
        }
    }
    return 0;
}
