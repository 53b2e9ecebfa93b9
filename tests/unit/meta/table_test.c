// A table is there from its first use on, for all threads the same one, of zeros; without memory it is not there.
// (ThreadSanitizer is the judge, too.)
#include "meta/table.h"

#include <pthread.h>

#include "../unit.h"
#include "base/bits.h"

enum { THREADS = 4, ROUNDS = 500, WORDS = HAK_KIB(64) / sizeof(uint64_t) };
#define BYTES (WORDS * sizeof(uint64_t))

static _Atomic(void *) tables[ROUNDS];
static uint64_t *seen[THREADS][ROUNDS];
static pthread_barrier_t start;

static void *take_all(void *argument)
{
    uint64_t **own = argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&start);
        own[i] = hak_table_take(&tables[i], BYTES);
        UNIT_CHECK(own[i] != NULL);
        UNIT_EQUAL(own[i][i], 0);
        UNIT_EQUAL(own[i][WORDS - 1], 0);
    }
    return NULL;
}

static void all_threads_have_the_same(void)
{
    pthread_t threads[THREADS];
    UNIT_EQUAL(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_EQUAL(pthread_create(&threads[i], NULL, take_all, seen[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned thread = 0; thread < THREADS; thread++) {
            UNIT_CHECK(seen[thread][i] == hak_table_find(&tables[i]));
        }
    }
}

static void without_memory_there_is_none(void)
{
    static _Atomic(void *) table;
    UNIT_CHECK(hak_table_find(&table) == NULL);
    hak_fake.refuse_asks = true;
    UNIT_CHECK(hak_table_take(&table, HAK_MIB(16)) == NULL);
    UNIT_CHECK(hak_table_find(&table) == NULL);
    hak_fake.refuse_asks = false;
    void *made = hak_table_take(&table, HAK_MIB(16));
    UNIT_CHECK(made != NULL && hak_table_find(&table) == made);
}

int main(void)
{
    all_threads_have_the_same();
    without_memory_there_is_none();
    return 0;
}
