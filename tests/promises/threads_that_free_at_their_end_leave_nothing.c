// native only
// not secure: blocks wait in quarantine
// A thread's first call is a free in a key's destructor, in the last round, after which no destructor is
// called: nothing of ours stays for it, neither memory nor a task.
#include "../support/memory.h"

#include <limits.h>
#include <pthread.h>

enum { THREADS = 1000, BLOCKS = 100, BYTES = 500, MOST_KIB = 4096 };

static pthread_key_t key;
static void *blocks[BLOCKS];

static void *pass(void *unused)
{
    pthread_setspecific(key, (void *)1);
    return unused;
}

static void free_in_the_last_round(void *round)
{
    if ((uintptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(key, (char *)round + 1);
        return;
    }
    ht_free_all(blocks, BLOCKS);
}

static void run(unsigned threads)
{
    for (unsigned i = 0; i < threads; i++) {
        ht_fill(blocks, BLOCKS, BYTES);
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, pass, NULL) == 0, "no thread");
        HT_CHECK(pthread_join(thread, NULL) == 0, "no join");
    }
}

int main(void)
{
    ht_start();
    HT_CHECK(pthread_key_create(&key, free_in_the_last_round) == 0, "no key");
    run(THREADS / 10);
    const long before = ht_rss_kib();
    run(THREADS);
    const long after = ht_rss_kib();
    HT_CHECK(
        after - before <= MOST_KIB, "%ld KiB before %d threads, then %ld", before, THREADS, after);
    ht_expect_one_thread(1000);
    return 0;
}
