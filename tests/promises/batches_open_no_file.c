// not secure: large blocks are unmapped at once, so no ranges are purged
// env: HAKMEM_BATCH_MADVISE=on HAKMEM_PURGER=0
// native only
// With option batch_madvise one system call purges many ranges. It opens no file, whose number the program could
// take over meanwhile for one of its own, so batches go on while the process may have none.
#include "../support/filter.h"
#include "../support/memory.h"

#include <signal.h>
#include <sys/resource.h>

#ifndef SYS_process_madvise
#    define SYS_process_madvise 440
#endif

enum { BLOCKS = 40, BYTES = 700 << 10 };

static volatile sig_atomic_t calls;

// Runs in place of the system call, which then seems to have purged little.
static void count_call(int signal_number)
{
    (void)signal_number;
    calls++;
}

static void watch(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the system call's number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    signal(SIGSYS, count_call);
    ht_filter_calls(rules, sizeof rules / sizeof *rules);
}

// Purge calls made while every second block is given back.
static int calls_of_a_trim(void)
{
    static char *blocks[BLOCKS];
    const int before = calls;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        HT_CHECK(blocks[i] != NULL, "no memory");
        memset(blocks[i], 1, BYTES);
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        free(blocks[i]);
    }
    malloc_trim(0);
    for (int i = 1; i < BLOCKS; i += 2) {
        free(blocks[i]);
    }
    malloc_trim(0);
    return calls - before;
}

int main(void)
{
    ht_start();
#ifndef __GLIBC__
    HT_SKIP("glibc alone has an madvise that is known to be nobody's listener");
#endif
    watch();
    const struct rlimit none = {0, 0};
    HT_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "the table of files cannot be closed");
    HT_CHECK(calls_of_a_trim() > 0, "a batch needs a file");
    return 0;
}
