// preload only
// native only
// not secure: there are no magazines, and no way to see a class from outside
// With option prewarm_tls the first blocks of every size are ready when a thread starts, with their
// pages resident: allocating and writing them takes no page fault.
#include "../support/api.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

enum { CLASSES = 72 };

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static void *take_first_blocks(void *result)
{
    free(ht_hide(malloc(1))); // the thread's own start
    const long before = faults();
    size_t bytes = 1;
    for (size_t i = 0; i < CLASSES; i++) {
        void *block = malloc(bytes);
        bytes = malloc_usable_size(block);
        memset(block, 1, bytes);
        bytes++; // of the next class
    }
    HT_CHECK(bytes == 32 * HT_KIB + 1, "%zu bytes: there are more classes, or fewer", bytes - 1);
    *(long *)result = faults() - before;
    return NULL;
}

static long faults_of_a_thread(void)
{
    pthread_t thread;
    long result = -1;
    HT_CHECK(pthread_create(&thread, NULL, take_first_blocks, &result) == 0, "no thread");
    pthread_join(thread, NULL);
    return result;
}

int main(void)
{
    HT_API(hak_option_set);
    ht_start();
    // The first thread's blocks stay in use, and the second thread, which reclaims its cache, finds none ready.
    const long cold = faults_of_a_thread();
    HT_CHECK(cold > CLASSES, "only %ld page faults without prewarming", cold);
    HT_CHECK(api_hak_option_set("prewarm_tls", 1), "not set");
    const long warm = faults_of_a_thread();
    HT_CHECK(warm <= 2, "%ld page faults after prewarming, %ld without", warm, cold);
    return 0;
}
