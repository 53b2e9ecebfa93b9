// args: 1 60 1
// args in secure: 1 25 1
// args in asan: 1 20 1
// secure too
// linked too
//
// Programs with one thread in which a timer signal's handler forks, wherever the program is: in the middle of a call of malloc or
// free, too. Some children end at once, some start a program, and some return from the handler and continue the interrupted call,
// as the parent does. Some of the programs once had a second thread; the C library cannot tell that it has ended.
#include "../support/stress.h"

#include "../support/model.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>

enum { BLOCKS = 3000, SIGNALS = 20, AFTER = 2000, LARGEST = 90000, TIMEOUT_S = 40 };

#ifdef HAK_TESTS_SUPPORT_HAK_NAMES_H
// Else the sanitizer looks for leaks at each exit, with a process that stops and traces this one: that is not what is tested here.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

static volatile sig_atomic_t handled;
static volatile sig_atomic_t goes_on; // a child that has returned from the handler

static void fork_and_wait(int signal)
{
    (void)signal;
    const int before = errno;
    const pid_t child = fork();
    HT_CHECK(child >= 0, "no child: errno %d", errno);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (handled % 3 == 0) {
            _exit(0);
        } else if (handled % 3 == 1) {
            ht_run_what_ends();
        }
        goes_on = 1;
        return;
    }
    ht_wait_child(child, "a child of a handler");
    handled++;
    errno = before;
}

// Not before the last signal was handled, so that the program makes progress.
static void ask_for_signal(struct ht_random *random)
{
    const struct itimerval when = {{0, 0}, {0, 100 + (long)ht_random_below(random, 900)}};
    HT_CHECK(setitimer(ITIMER_REAL, &when, NULL) == 0, "no timer");
}

static void *end_at_once(void *nothing)
{
    free(malloc(1000));
    return nothing;
}

_Noreturn static void allocate(struct ht_random random, bool has_had_thread)
{
    static struct ht_slot slots[BLOCKS];
    sig_atomic_t seen = -1;
    size_t steps_as_child = 0;
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (has_had_thread) {
        HT_CHECK(pthread_create(&thread, NULL, end_at_once, NULL) == 0, "no thread");
        pthread_join(thread, NULL);
    }
    signal(SIGALRM, fork_and_wait);
    while (handled < SIGNALS && steps_as_child < AFTER) {
        steps_as_child += goes_on != 0;
        if (seen != handled && !goes_on) {
            seen = handled;
            ask_for_signal(&random);
        }
        const size_t largest = ht_random_below(&random, 100) == 0 ? LARGEST : 600;
        ht_slot_step(&slots[ht_random_below(&random, BLOCKS)], &random, largest);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    const struct ht_stress stress = ht_stress_start(argc, argv);
    for (size_t i = 0; i < stress.operations; i++) {
        const pid_t child = fork();
        if (child == 0) {
            allocate((struct ht_random){stress.seed * 1000 + i}, i % 4 == 3);
        }
        alarm(TIMEOUT_S); // ends us, and the test; a child has no alarm, which would be its timer's
        ht_wait_child(child, "a program");
    }
    printf("%zu signals handled\n", stress.operations * SIGNALS);
    return 0;
}
