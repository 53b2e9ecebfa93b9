// native only
// Large blocks of calloc that were used before are zero, and pages of them that were not used stay untouched, however
// much the kernel tells about pages: by PAGEMAP_SCAN, by the words of pagemap, or nothing at all.
#include "../support/memory.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LARGE (24 * HT_MIB + 100)

// The kernel says no to a system call from now on.
static void refuse(unsigned number, int error)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the system call's number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        HT_SKIP("no seccomp here: errno %d", errno);
    }
}

// A block of which one page in `step` was written by whoever had it before.
static void check_sparse(size_t step, bool stays_sparse)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *before = malloc(LARGE);
    HT_CHECK(before != NULL, "malloc(%zu) failed", (size_t)LARGE);
    for (size_t i = 0; i < LARGE; i += step * page) {
        before[i] = 0xa5;
    }
    before[LARGE - 1] = 0xa5;
    free(ht_hide(before));
    const long resident = stays_sparse ? ht_rss_kib() : 0;
    unsigned char *block = calloc(LARGE, 1);
    HT_CHECK(block != NULL, "calloc(%zu) failed", (size_t)LARGE);
    const long grown = stays_sparse ? ht_rss_kib() - resident : 0;
    HT_CHECK(grown < 4096, "calloc made %ld KiB resident", grown);
    for (size_t i = 0; i < LARGE; i++) {
        HT_CHECK(block[i] == 0, "one page in %zu was used: byte %zu is %d", step, i, block[i]);
    }
    free(block);
    malloc_trim(0);
}

static void check_all(bool stays_sparse)
{
    ht_start();
    for (size_t step = 1; step < 100; step = 2 * step + 1) {
        check_sparse(step, stays_sparse);
    }
}

static void with_all(void)
{
    check_all(true);
}

static void without_scan(void)
{
    refuse(SYS_ioctl, ENOTTY); // as a kernel that does not know it
    HT_CHECK(ioctl(STDIN_FILENO, 0, NULL) == -1 && errno == ENOTTY, "ioctl is not refused");
    check_all(true);
}

static void without_words(void)
{
    refuse(SYS_ioctl, ENOTTY);
    refuse(SYS_pread64, EPERM);
    check_all(false);
}

static void without_pagemap(void)
{
    refuse(SYS_openat, EACCES);
    check_all(false);
}

int main(void)
{
    static void (*const ways[])(void) = {with_all, without_scan, without_words, without_pagemap};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const pid_t child = fork();
        if (child == 0) {
            ways[i]();
            exit(0);
        }
        int status = 0;
        HT_CHECK(waitpid(child, &status, 0) == child, "no child");
        HT_CHECK(WIFEXITED(status), "way %zu was ended by signal %d", i, WTERMSIG(status));
        if (WEXITSTATUS(status) != 0) {
            return WEXITSTATUS(status);
        }
    }
    return 0;
}
