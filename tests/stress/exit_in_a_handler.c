// args: 3 400 1
// args in asan: 3 130 1
// args in aarch64: 3 80 1
// args in mte: 3 12 1
// secure too
//
// Processes in which a timer signal's handler calls exit() in the middle of a call of malloc or free, as daemons' handlers of
// SIGTERM do. The handler and the code that runs at exit allocate nothing. All end at once: exit must not wait for anything that
// the interrupted call holds. Every fourth has threads that do the same, and the signal may interrupt any of them.
#include "../support/stress.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { BLOCKS = 20000, TIMEOUT_S = 20, FIRST_US = 500, STEP_US = 37 };

static void on_alarm(int signal)
{
    (void)signal;
    exit(0);
}

_Noreturn static void allocate_until_exit(struct ht_random *random)
{
    void **blocks = mmap(
        NULL, BLOCKS * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(blocks != MAP_FAILED, "no memory");
    for (;;) {
        const size_t slot = ht_random_below(random, BLOCKS);
        const size_t largest = ht_random_below(random, 100) == 0 ? 200000 : 600;
        free(blocks[slot]);
        blocks[slot] = malloc(1 + ht_random_below(random, largest));
        HT_CHECK(blocks[slot] != NULL, "no block");
        *(char *)blocks[slot] = 1;
    }
}

static void *allocate_in_thread(void *worker)
{
    allocate_until_exit(&((struct ht_worker *)worker)->random);
}

_Noreturn static void live_until_exit(uint64_t seed, size_t threads, long us)
{
    static struct ht_worker workers[HT_MOST_THREADS];
    const struct itimerval when = {{0, 0}, {0, us}};
    for (size_t i = 0; i < threads; i++) {
        workers[i].random.state = seed + i;
    }
    signal(SIGALRM, on_alarm);
    for (size_t i = 1; i < threads; i++) {
        HT_CHECK(pthread_create(&workers[i].thread, NULL, allocate_in_thread, &workers[i]) == 0,
                 "no thread");
    }
    setitimer(ITIMER_REAL, &when, NULL);
    allocate_until_exit(&workers[0].random);
}

int main(int argc, char **argv)
{
    const struct ht_stress stress = ht_stress_start(argc, argv);
    for (size_t i = 0; i < stress.operations; i++) {
        const pid_t child = fork();
        HT_CHECK(child >= 0, "no child: errno %d", errno);
        if (child == 0) {
            live_until_exit(stress.seed + i * 100,
                            i % 4 == 3 ? stress.threads : 1,
                            FIRST_US + STEP_US * (long)(i % 200));
        }
        alarm(TIMEOUT_S); // ends us, and the test
        int status = 0;
        HT_CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
        HT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                 "child %zu ended with %#x",
                 i,
                 (unsigned)status);
    }
    return 0;
}
