// native only
// A thread that is cancelled while its keys are destroyed, which is too late, still returns its own result, also if it is the
// last one beside the first and the sweeper ends with it; and the next threads have a sweeper again.
#include "../support/memory.h"

#include <pthread.h>

enum { THREADS = 20, TOGETHER = 4 };

static pthread_key_t key;
static pthread_barrier_t all_run;
static pthread_barrier_t all_end;

static void cancel_at_end(void *block)
{
    free(block);
    pthread_cancel(pthread_self());
}

static void *work(void *unused)
{
    pthread_setspecific(key, malloc(10));
    ht_sleep_ms(5);
    return unused;
}

static void *work_together(void *unused)
{
    free(ht_hide(malloc(1000)));
    pthread_barrier_wait(&all_run);
    pthread_barrier_wait(&all_end);
    return unused;
}

int main(void)
{
    ht_start();
    HT_CHECK(pthread_key_create(&key, cancel_at_end) == 0, "no key");
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *result = NULL;
        HT_CHECK(pthread_create(&thread, NULL, work, &key) == 0, "no thread");
        HT_CHECK(pthread_join(thread, &result) == 0, "no join");
        HT_CHECK(result == (void *)&key, "thread %d has returned %p", i, result);
    }
    pthread_t threads[TOGETHER];
    pthread_barrier_init(&all_run, NULL, TOGETHER + 1);
    pthread_barrier_init(&all_end, NULL, TOGETHER + 1);
    for (int i = 0; i < TOGETHER; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, work_together, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&all_run);
    const long tasks = ht_proc_number("/proc/self/status", "Threads");
    pthread_barrier_wait(&all_end);
    for (int i = 0; i < TOGETHER; i++) {
        pthread_join(threads[i], NULL);
    }
    HT_CHECK(tasks == TOGETHER + 2, "%ld tasks, and ours is not among them", tasks);
    return 0;
}
