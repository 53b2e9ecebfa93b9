// with features
// native only
// A signal handler may allocate, also if it has interrupted pthread_create: the sweeper, which pthread_create
// starts, is not started there. It comes soon after, also if all threads block signals.
#include "../support/promise.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

// Counted by the folder's links, which allocates nothing.
static unsigned count_tasks(void)
{
    struct stat tasks;
    HT_CHECK(stat("/proc/self/task", &tasks) == 0, "no /proc/self/task");
    return (unsigned)tasks.st_nlink - 2;
}

static unsigned in_handler;
static _Atomic(bool) goes_on;
static _Atomic(bool) is_over;

static void await(_Atomic(bool) *flag)
{
    while (!*flag) {
        ht_sleep_ms(1);
    }
}

static void handle(int number)
{
    (void)number;
    free(ht_hide(malloc(100)));
    in_handler = count_tasks();
}

// Its first malloc is in the handler.
static void *work(void *unused)
{
    raise(SIGUSR1);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    static void *blocks[4000];
    for (size_t round = 0; round < 10; round++) {
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            blocks[i] = malloc(1000);
        }
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            free(blocks[i]);
        }
        ht_sleep_ms(50);
    }
    goes_on = true;
    await(&is_over);
    return unused;
}

int main(void)
{
    ht_start();
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    HT_CHECK(count_tasks() == 1, "there is a thread of ours before there are two");
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    await(&goes_on);
    const unsigned later = count_tasks();
    is_over = true;
    pthread_join(thread, NULL);
    HT_CHECK(in_handler == 2, "%u tasks while a handler has allocated", in_handler);
    HT_CHECK(later == 3, "%u tasks half a second later", later);
    return 0;
}
