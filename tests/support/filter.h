// filter.h -- filters this process's system calls (seccomp) from now on.
#ifndef HAK_TESTS_SUPPORT_FILTER_H
#define HAK_TESTS_SUPPORT_FILTER_H

#include "promise.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// Skips the test where there are no filters.
static inline void ht_filter_calls(struct sock_filter *rules, size_t count)
{
    const struct sock_fprog program = {(unsigned short)count, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        HT_SKIP("no seccomp here: errno %d", errno);
    }
}

#endif
