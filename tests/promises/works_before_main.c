// static too
//
// Allocation works before main: in constructors of any priority, which run
// before hakmem's own when it is linked in, and from their threads.
#include "../support/promise.h"

#include <pthread.h>

static unsigned char *earliest[64];
static unsigned char *early;
static char *from_thread;

static void *duplicate(void *unused)
{
    from_thread = strdup("from a thread before main");
    return unused;
}

// 0 to 100 are the system's own priorities; 101 comes first of a program's.
__attribute__((constructor(101))) static void construct_first(void)
{
    for (size_t i = 0; i < 64; i++) {
        earliest[i] = malloc(1 + i * i * i);
        HT_CHECK(earliest[i] != NULL, "the earliest constructor got no memory");
        memset(earliest[i], (int)i, 1 + i * i * i);
    }
    free(earliest[10]);
    earliest[10] = calloc(1, 1001);
    HT_CHECK(earliest[10] != NULL && earliest[10][1000] == 0, "calloc in a constructor");
}

__attribute__((constructor)) static void construct(void)
{
    early = realloc(malloc(10), 100000);
    HT_CHECK(early != NULL, "a constructor got no memory");
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, duplicate, NULL) == 0, "no thread before main");
    pthread_join(thread, NULL);
}

int main(void)
{
    ht_start();
    for (size_t i = 0; i < 64; i++) {
        size_t last = i == 10 ? 1000 : i * i * i;
        HT_CHECK(i == 10 || earliest[i][last] == i, "a constructor's block %zu changed", i);
        free(earliest[i]);
    }
    HT_CHECK(strcmp(from_thread, "from a thread before main") == 0, "a thread's block changed");
    free(from_thread);
    free(early);
    return 0;
}
