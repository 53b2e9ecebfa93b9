// native only
// A process with one thread has one task, whatever it frees. A process with threads may have the sweeper's task as well: it has the
// program's credentials, takes none of its signals, and ends when the program has one thread again.
#include "../support/memory.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

enum { BLOCKS = 200, SIGNALS = 200, NOBODY = 65534 };

// A folder has a link from its own entry, one from its parent and one from each folder in it.
static unsigned tasks(void)
{
    struct stat folder;
    HT_CHECK(stat("/proc/self/task", &folder) == 0, "no /proc/self/task");
    return (unsigned)folder.st_nlink - 2;
}

static void burst(void)
{
    void *blocks[BLOCKS];
    ht_fill(blocks, BLOCKS, HT_MIB);
    ht_free_all(blocks, BLOCKS);
}

static pthread_barrier_t gate;

static void *work(void *unused)
{
    burst();
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    return unused;
}

static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
    (void)signal;
    handled++;
}

// All of the program's threads block the signal: no task may take it.
static void expect_no_signal_taken(void)
{
    for (int i = 0; i < SIGNALS; i++) {
        kill(getpid(), SIGUSR1);
        sched_yield();
    }
    sigset_t pending;
    sigpending(&pending);
    HT_CHECK(handled == 0 && sigismember(&pending, SIGUSR1), "%d signals were taken", handled);
}

// The user of each task, as the kernel reports it.
static void expect_all_are_nobody(void)
{
    char command[128];
    snprintf(command,
             sizeof command,
             "grep -h '^Uid' /proc/%d/task/*/status | grep -vq '%d.%d.%d'",
             (int)getpid(),
             NOBODY,
             NOBODY,
             NOBODY);
    HT_CHECK(system(command) != 0, "a task has other rights");
}

int main(void)
{
    ht_start();
    ht_need_memory(HT_GIB);
    burst();
    HT_CHECK(tasks() == 1, "%u tasks of a program with one thread", tasks());

    struct sigaction action = {.sa_handler = on_signal};
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigaction(SIGUSR1, &action, NULL);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    pthread_barrier_init(&gate, NULL, 3);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&gate);
    HT_CHECK(tasks() <= 4, "%u tasks of a program with three threads", tasks());
    expect_no_signal_taken();
    if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0) {
        expect_all_are_nobody();
    }
    pthread_barrier_wait(&gate);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    HT_CHECK(tasks() == 1, "%u tasks when the threads have ended", tasks());
    const pid_t child = fork();
    if (child == 0) {
        burst();
        HT_CHECK(tasks() == 1, "%u tasks of the child", tasks());
        _exit(0);
    }
    ht_wait_child(child, "the child");
    return 0;
}
