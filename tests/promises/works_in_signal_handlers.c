// A signal handler may allocate and free if it interrupts anything but the
// allocator itself, here a computation; its blocks stay valid afterwards.
#include "../support/promise.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

enum { SIGNALS = 300 };

static volatile sig_atomic_t handled;
static char *volatile left_by_handler;

static void handle(int signal_number)
{
    (void)signal_number;
    int saved = errno;
    for (size_t size = 8; size < 300000; size *= 6) {
        char *block = malloc(size);
        HT_CHECK(block != NULL, "malloc(%zu) failed in a handler", size);
        memset(block, 1, size);
        free(ht_hide(block));
    }
    free(left_by_handler);
    left_by_handler = malloc(77);
    HT_CHECK(left_by_handler != NULL, "malloc failed in a handler");
    memset(left_by_handler, 42, 77);
    errno = saved;
    handled++;
}

static volatile double sum;

static void *compute(void *unused)
{
    while (handled < SIGNALS) {
        for (int i = 1; i < 1000; i++) {
            sum += 1.0 / i;
        }
    }
    // The end of a thread runs code of the allocator.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    return unused;
}

int main(void)
{
    ht_start();
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    pthread_t thread;
    // A thread that never allocated gets the signals: its first malloc is in a handler.
    HT_CHECK(pthread_create(&thread, NULL, compute, NULL) == 0, "no thread");
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    pthread_join(thread, NULL);
    HT_CHECK(left_by_handler[76] == 42, "the handler's block changed");
    free(left_by_handler);
    return 0;
}
