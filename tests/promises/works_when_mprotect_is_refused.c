// native only
// A sandbox (seccomp) may refuse mprotect from some moment on. A program that then uses far more addresses than
// before, but has no more memory in use, is refused nothing: blocks whose addresses are new each time, as the largest ones' are,
// and in mode secure those above 32 KiB.
#include "../support/filter.h"

#include <sys/mman.h>

// One after the other, these use 20 GiB of addresses. The map is made writable for 16 GiB at a time.
enum { SMALLER = 5000, LARGEST = 34 };

static void refuse(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the system call's number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    ht_filter_calls(rules, sizeof rules / sizeof *rules);
    HT_CHECK(mprotect(NULL, 0, PROT_READ) != 0 && errno == EPERM, "mprotect is not refused");
}

static void take(size_t bytes, int times)
{
    for (int i = 0; i < times; i++) {
        char *block = malloc(bytes);
        HT_CHECK(block != NULL, "request %d for %zu bytes was refused", i, bytes);
        block[0] = 1;
        block[bytes - 1] = 1;
        free(block);
    }
}

int main(void)
{
    ht_start();
    take(600 * HT_MIB, 1);
    take(40000, 1);
    refuse();
    take(40000, SMALLER);
    take(600 * HT_MIB, LARGEST);
    return 0;
}
