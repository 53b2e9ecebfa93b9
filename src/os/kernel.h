// kernel.h -- numbers of the kernel's interface, for which not every C library has headers
//
// Included  by files of its layer only.
//
// The kernel's own headers are not installed everywhere: musl's compiler does not find them by default.
#pragma once

// futex(2)
enum {
    HAK_FUTEX_WAIT = 0,
    HAK_FUTEX_CMP_REQUEUE = 4,
    HAK_FUTEX_WAIT_BITSET = 9,
    HAK_FUTEX_WAKE_BITSET = 10,
    HAK_FUTEX_PRIVATE = 128,
};
#define HAK_FUTEX_ANY UINT32_MAX // the bits of every wake-up

// prctl(2): Linux 5.17
enum {
    HAK_PRCTL_VMA = 0x53564d41,
    HAK_PRCTL_VMA_NAME = 0,
};

// membarrier(2)
enum {
    HAK_BARRIER_PRIVATE = 1 << 3,
    HAK_BARRIER_REGISTER_PRIVATE = 1 << 4,
};

// pidfd_open(2), PIDFD_SELF_PROCESS: Linux 6.15
enum { HAK_THIS_PROCESS = -10001 };
