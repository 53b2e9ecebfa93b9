// soak in: core
// args: 1 300 1
// secure too
//
// One thread forks beside one that trims and two that allocate. A trim holds the locks of caches for long, mostly in mode secure;
// so their threads sleep on them, and the thread that forks waits for them to be free. No thread sleeps for ever.
#include "../support/stress.h"

#include <malloc.h>

enum { MAKERS = 2, BLOCKS = 600, LARGEST = 3000, TIMEOUT_S = 40 };

static atomic_bool is_over;
static atomic_size_t rounds[MAKERS];

static void *make(void *round)
{
    struct ht_random random = {(uintptr_t)round};
    void *blocks[BLOCKS];
    while (!atomic_load(&is_over)) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(ht_random_below(&random, LARGEST));
            HT_CHECK(blocks[i] != NULL, "no block");
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            free(blocks[i]);
        }
        atomic_fetch_add((atomic_size_t *)round, 1);
    }
    return NULL;
}

static void *trim(void *unused)
{
    while (!atomic_load(&is_over)) {
        malloc_trim(0);
    }
    return unused;
}

// Until each maker has done some work since.
static void wait_for_makers(void)
{
    for (size_t i = 0; i < MAKERS; i++) {
        const size_t before = atomic_load(&rounds[i]);
        while (atomic_load(&rounds[i]) == before) {
            ht_sleep_ms(1);
        }
    }
}

int main(int argc, char **argv)
{
#ifdef HAK_TESTS_SUPPORT_HAK_NAMES_H
    HT_SKIP("the sanitizer serves the C library");
#endif
    const struct ht_stress stress = ht_stress_start(argc, argv);
    pthread_t threads[MAKERS + 1];
    for (size_t i = 0; i < MAKERS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, make, &rounds[i]) == 0, "no thread");
    }
    HT_CHECK(pthread_create(&threads[MAKERS], NULL, trim, NULL) == 0, "no thread");
    for (size_t i = 0; i < stress.operations; i++) {
        alarm(TIMEOUT_S); // ends us, and the test
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        ht_wait_child(child, "a child");
        if (i % 16 == 0) {
            wait_for_makers();
        }
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i <= MAKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%zu forks\n", stress.operations);
    return 0;
}
