// glibc only: musl takes the numbers of ioctl for int
// native only
// sleeps
// A program with threads sets up a filter that refuses membarrier. Memory still goes back as far as possible, and
// the kernel is asked again after a pause that doubles.
#include "../support/memory.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { THREADS = 16, ROUNDS = 40, BLOCKS = 4000, LARGE = 3 << 20, MOST_ASKED = 8 };

static atomic_int listener = -1;
static atomic_uint asked;
static atomic_uint started;
static pthread_barrier_t over;

// Answers in place of the kernel. It allocates nothing, so nothing starts the sweeper before the filter exists.
static void *refuse(void *unused)
{
    for (;;) {
        struct seccomp_notif question = {0};
        if (ioctl(atomic_load(&listener), SECCOMP_IOCTL_NOTIF_RECV, &question) == 0) {
            struct seccomp_notif_resp answer = {.id = question.id, .error = -EPERM};
            atomic_fetch_add(&asked, 1);
            ioctl(atomic_load(&listener), SECCOMP_IOCTL_NOTIF_SEND, &answer);
        }
    }
    return unused;
}

static int filter(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the system call's number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(
        SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

// Sleeps with blocks in its magazines, which the sweeper tries to steal.
static void *work_and_sleep(void *unused)
{
    static void *blocks[THREADS][BLOCKS];
    void **mine = blocks[atomic_fetch_add(&started, 1)];
    for (size_t i = 0; i < BLOCKS; i++) {
        mine[i] = malloc(16 * (1 + i % 4));
        HT_CHECK(mine[i] != NULL, "malloc failed");
    }
    ht_free_all(mine, BLOCKS);
    pthread_barrier_wait(&over);
    return unused;
}

// So that the sweeper does not sleep.
static void free_large_blocks(void)
{
    for (size_t i = 0; i < ROUNDS; i++) {
        char *block = malloc(LARGE);
        HT_CHECK(block != NULL, "malloc failed");
        memset(block, 1, LARGE);
        free(block);
        ht_sleep_ms(50);
    }
}

int main(void)
{
    ht_start();
    pthread_t threads[THREADS];
    pthread_t kernel;
    const int file = filter();
    if (file < 0) {
        HT_SKIP("no seccomp with notifications here");
    }
    atomic_store(&listener, file);
    pthread_barrier_init(&over, NULL, THREADS + 1);
    HT_CHECK(pthread_create(&kernel, NULL, refuse, NULL) == 0, "no thread");
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, work_and_sleep, NULL) == 0, "no thread");
    }
    free_large_blocks();
    const unsigned count = atomic_load(&asked);
    pthread_barrier_wait(&over);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    HT_CHECK(count > 0, "nobody has asked for a barrier");
    HT_CHECK(count <= MOST_ASKED, "%u barriers were asked for", count);
    return 0;
}
