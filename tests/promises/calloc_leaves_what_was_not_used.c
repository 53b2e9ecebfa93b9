// native only
// Large blocks of calloc that were used before are zero, and their unused pages stay untouched. No file is opened to find
// those: for a moment it would take the number that another thread's open() counts on.
#include "../support/filter.h"
#include "../support/memory.h"

#define LARGE (24 * HT_MIB + 100)

// A call with that number ends the process from now on.
static void forbid(unsigned number)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the system call's number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    ht_filter_calls(rules, sizeof rules / sizeof *rules);
}

// A block of which one page in `step` was written before.
static void check_sparse(size_t step, bool may_read_files)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *before = malloc(LARGE);
    HT_CHECK(before != NULL, "malloc(%zu) failed", (size_t)LARGE);
    for (size_t i = 0; i < LARGE; i += step * page) {
        before[i] = 0xa5;
    }
    before[LARGE - 1] = 0xa5;
    free(ht_hide(before));
    const long resident = may_read_files ? ht_rss_kib() : 0;
    unsigned char *block = calloc(LARGE, 1);
    HT_CHECK(block != NULL, "calloc(%zu) failed", (size_t)LARGE);
    const long grown = may_read_files ? ht_rss_kib() - resident : 0;
    HT_CHECK(grown < 4096, "calloc made %ld KiB resident", grown);
    for (size_t i = 0; i < LARGE; i++) {
        HT_CHECK(block[i] == 0, "one page in %zu was used: byte %zu is %d", step, i, block[i]);
    }
    free(block);
}

static void check_all(bool may_read_files)
{
    for (size_t step = 1; step < 100; step = 2 * step + 1) {
        check_sparse(step, may_read_files);
        malloc_trim(0);
    }
}

int main(void)
{
    ht_start();
    check_all(true);
    const pid_t child = fork();
    if (child == 0) {
        forbid(SYS_openat);
        check_all(false);
        _exit(0);
    }
    ht_wait_child(child, "without files");
    return 0;
}
