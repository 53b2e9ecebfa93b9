// args: 200
// args in aarch64: 20
// args in mte: 20
// env: HAKMEM_MODE=secure
// with features
//
// Two threads free one block within the same few instructions: one of them ends the program, at once, with the message for a
// double free.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "../support/promise.h"

enum { SKEWS = 100 };

static atomic_int ready;

// The thread that comes second sees the block first: it waits for some more steps, another number in each round.
static void free_with_the_other(void *block, int skew)
{
    free(malloc(64)); // the thread has a cache
    const bool is_second = atomic_fetch_add(&ready, 1) == 1;
    while (atomic_load(&ready) < 2) {
    }
    for (volatile int step = 0; is_second && step < skew; step++) {
    }
    free(block);
}

static int skew_of_round;

static void *in_thread(void *block)
{
    free_with_the_other(block, skew_of_round);
    return NULL;
}

// In a process of its own, whose messages go to `lines`.
static void free_twice(int lines)
{
    dup2(lines, STDERR_FILENO);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    char *block = malloc(64);
    pthread_t thread;
    HT_CHECK(block != NULL && pthread_create(&thread, NULL, in_thread, block) == 0, "no thread");
    free_with_the_other(block, skew_of_round);
    pthread_join(thread, NULL);
    _exit(0);
}

int main(int count, char **arguments)
{
    const int rounds = count > 1 ? atoi(arguments[1]) : 1;
    ht_start();
    for (int round = 0; round < rounds; round++) {
        int ends[2];
        HT_CHECK(pipe(ends) == 0, "no pipe");
        skew_of_round = round % SKEWS;
        const pid_t child = fork();
        if (child == 0) {
            free_twice(ends[1]);
        }
        close(ends[1]);
        char line[HT_LINE_MAX] = "";
        const ssize_t length = read(ends[0], line, sizeof line - 1);
        close(ends[0]);
        int status = 0;
        HT_CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
        HT_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && length > 0 &&
                     strstr(line, "double free: ") != NULL,
                 "round %d: the process ended with %x: %s",
                 round,
                 (unsigned)status,
                 line);
    }
    return 0;
}
