// glibc only: the kernel is not told of a thread's mutexes in time
// native only
// not secure: blocks wait in quarantine
// Threads that allocate for the first time in a key's destructor, in the last round, after which no destructor is
// called; and threads that end by the system call, without destructors: what they had serves later threads.
#include "../support/memory.h"

#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>

enum { THREADS = 1000, BLOCKS = 100, BYTES = 500, MOST_KIB = 4096 };

static pthread_key_t key;
static volatile bool is_in_child;

static void allocate(void)
{
    void *blocks[BLOCKS];
    ht_fill(blocks, BLOCKS, BYTES);
    ht_free_all(blocks, BLOCKS);
}

static void *pass(void *unused)
{
    pthread_setspecific(key, (void *)1);
    return unused;
}

static void allocate_in_the_last_round(void *round)
{
    if ((uintptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(key, (char *)round + 1);
        return;
    }
    allocate();
}

static void *leave(void *unused)
{
    allocate();
    syscall(SYS_exit, 0);
    return unused;
}

static void run(void *work(void *), unsigned threads)
{
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        HT_CHECK(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
        HT_CHECK(pthread_join(thread, NULL) == 0, "no join");
    }
}

static void expect_nothing(void *work(void *), const char *what)
{
    run(work, THREADS / 10);
    const long before = ht_rss_kib();
    run(work, THREADS);
    const long after = ht_rss_kib();
    HT_CHECK(after - before <= MOST_KIB,
             "%s%s: %ld KiB before %d threads, then %ld",
             what,
             is_in_child ? ", in a child" : "",
             before,
             THREADS,
             after);
}

static void *only_allocate(void *unused)
{
    allocate();
    return unused;
}

static void expect_nothing_of_all(void)
{
    expect_nothing(pass, "destructors");
    expect_nothing(leave, "the system call");
    // Later threads find and end what the others have left.
    run(only_allocate, 10);
    ht_expect_one_thread(1000);
}

int main(void)
{
    ht_start();
    HT_CHECK(pthread_key_create(&key, allocate_in_the_last_round) == 0, "no key");
    expect_nothing_of_all();
    const pid_t child = fork();
    if (child == 0) {
        is_in_child = true;
        expect_nothing_of_all();
        _exit(0);
    }
    ht_wait_child(child, "a child");
    return 0;
}
