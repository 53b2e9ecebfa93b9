// env: HAKMEM_BATCH_MADVISE=on HAKMEM_PURGER=0
// native only
// With option batch_madvise one system call purges many ranges, and needs a file for a moment. While
// the table of files is full, ranges are purged one by one, and together again when it is not.
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
    watch();
    if (calls_of_a_trim() == 0) {
        HT_SKIP("this kernel opens no file for a process");
    }
    struct rlimit limit;
    HT_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0, "no limit");
    const struct rlimit none = {0, limit.rlim_max};
    HT_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "the table cannot be filled");
    HT_CHECK(calls_of_a_trim() == 0, "it has found a file");
    HT_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "the table cannot be emptied");
    HT_CHECK(calls_of_a_trim() > 0, "it has given up for good");
    return 0;
}
