// glibc only: musl's munmap has more to do, so it is called
// native only
// If nobody listens to munmap, madvise and mremap, the C library's are not called: memory goes back by system calls of our own.
#include "../support/promise.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

static volatile sig_atomic_t seen;
static const void *volatile elsewhere;

// The call is refused, and not made.
static void trapped(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    ucontext_t *at = context;
#if defined(__x86_64__)
    at->uc_mcontext.gregs[REG_RAX] = -ENOMEM;
#else
    at->uc_mcontext.regs[0] = (unsigned long long)-ENOMEM;
#endif
    Dl_info where;
    const bool is_ours =
        dladdr(info->si_call_addr, &where) != 0 && strcmp(where.dli_fname, ht_malloc_file()) == 0;
    elsewhere = is_ours ? elsewhere : info->si_call_addr;
    seen = seen + 1;
}

int main(void)
{
    ht_start();
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    const struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        HT_SKIP("no filter for system calls");
    }
    char *large = ht_hide(malloc(600 * HT_MIB)); // has a mapping of its own
    large[0] = 1;
    large = realloc(large, 1200 * HT_MIB);
    free(ht_hide(large));
    for (size_t size = 100; size < 10 * HT_MIB; size *= 10) {
        free(memset(ht_hide(malloc(size)), 1, size));
    }
    malloc_trim(0);
    HT_CHECK(seen > 0, "nothing was given back");
    HT_CHECK(elsewhere == NULL, "a call came from %p, which is not ours", elsewhere);
    return 0;
}
