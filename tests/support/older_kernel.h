// older_kernel.h -- gives this process and those that it starts a kernel without guard regions (before Linux 6.13).
#ifndef HAK_TESTS_SUPPORT_OLDER_KERNEL_H
#define HAK_TESTS_SUPPORT_OLDER_KERNEL_H

#include "filter.h"

// madvise advices that such a kernel does not know.
enum { HT_GUARD_INSTALL = 102, HT_GUARD_REMOVE = 103 };

static inline void ht_become_older_kernel(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, HT_GUARD_INSTALL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    ht_filter_calls(rules, sizeof rules / sizeof *rules);
}

// Run `promise` here and, in a child, on such a kernel: before the process has had a large block.
static inline void ht_on_both_kernels(void (*promise)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        ht_become_older_kernel();
        promise();
        _exit(0);
    }
    ht_wait_child(child, "an older kernel");
    promise();
}

#endif
