// args: 4000 50 1
// timeout: 60
// native only
// secure too
// linked too
//
// Thousands of threads work, wait for each other, free their blocks, and end at the same moment: all wait for the same
// few locks. The cost of one thread must not depend on their number. (If waiting threads wake by themselves to try
// again, 3,000 of them take minutes.)
#include "../support/stress.h"

enum { MOST_BLOCKS = 100, STACK = 64 << 10 };

static pthread_barrier_t together;
static size_t blocks_each;

static void *work(void *unused)
{
    void *blocks[MOST_BLOCKS];
    for (size_t i = 0; i < blocks_each; i++) {
        blocks[i] = malloc(16 + i * 50);
        HT_CHECK(blocks[i] != NULL, "no memory");
        memset(blocks[i], 1, 16 + i * 50);
    }
    pthread_barrier_wait(&together);
    for (size_t i = 0; i < blocks_each; i++) {
        free(blocks[i]);
    }
    return unused;
}

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    blocks_each = stress.operations;
    HT_CHECK(blocks_each <= MOST_BLOCKS, "at most %d blocks", MOST_BLOCKS);
    pthread_t *threads = malloc(stress.threads * sizeof *threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_barrier_init(&together, NULL, (unsigned)stress.threads);
    for (size_t i = 0; i < stress.threads; i++) {
        const int error = pthread_create(&threads[i], &attributes, work, NULL);
        if (error != 0 && i == 0) {
            return 1;
        }
        if (error != 0) {
            HT_SKIP("no more than %zu threads here", i);
        }
    }
    for (size_t i = 0; i < stress.threads; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
    return 0;
}
