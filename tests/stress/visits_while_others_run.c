// args: 4 30000 1
// tsan
// secure too
// with features
// A walk over all live blocks visits each block that is left alone exactly once, while other threads allocate,
// free, pass blocks on, and end.
#include "../support/api.h"

#include "../support/stress.h"

enum { KEPT = 5000, SHARED = 256 };

// Sorted by address, so that a visitor finds its own blocks without a lock.
static uintptr_t kept[KEPT];
static unsigned seen[KEPT];
static _Atomic(void *) shared[SHARED]; // any thread takes and frees these blocks

static void *churn(void *argument)
{
    struct ht_worker *worker = argument;
    void *mine[64] = {NULL};
    for (size_t i = 0; i < worker->operations; i++) {
        void **place = &mine[ht_random_below(&worker->random, 64)];
        free(*place);
        *place = malloc(1 + ht_random_size(&worker->random, 50000));
        HT_CHECK(*place != NULL, "no memory");
        free(atomic_exchange(&shared[ht_random_below(&worker->random, SHARED)], *place));
        *place = NULL;
    }
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = *(const uintptr_t *)a;
    const uintptr_t y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

static bool see(void *block, size_t bytes, void *argument)
{
    const uintptr_t address = (uintptr_t)block;
    const uintptr_t *known = bsearch(&address, kept, KEPT, sizeof *kept, by_address);
    (void)argument;
    if (known != NULL) {
        seen[known - kept] += bytes >= 64 ? 1 : 1000;
    }
    return true;
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    if (worker->index != 0) {
        return churn(argument);
    }
    HT_API(hak_visit_blocks);
    for (size_t round = 0; round < 30; round++) {
        memset(seen, 0, sizeof seen);
        HT_CHECK(api_hak_visit_blocks(NULL, see, NULL), "not all were visited");
        for (size_t i = 0; i < KEPT; i++) {
            HT_CHECK(seen[i] == 1, "round %zu: block %zu was seen %u times", round, i, seen[i]);
        }
        sched_yield();
    }
    return NULL;
}

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    for (size_t i = 0; i < KEPT; i++) {
        kept[i] = (uintptr_t)malloc(64 + i % 3000);
    }
    qsort(kept, KEPT, sizeof *kept, by_address);
    for (unsigned times = 0; times < 3; times++) { // caches of ended threads are used again
        ht_run_threads(&stress, stress.threads, work);
    }
    for (size_t i = 0; i < SHARED; i++) {
        free(atomic_exchange(&shared[i], NULL));
    }
    for (size_t i = 0; i < KEPT; i++) {
        free((void *)kept[i]);
    }
    return 0;
}
