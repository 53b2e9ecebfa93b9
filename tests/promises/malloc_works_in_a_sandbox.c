// glibc only: musl does not tell that there is one thread, so there is a membarrier
// native only
// static too
// A worker with one thread allows itself what malloc needs, mmap, munmap, mremap, madvise, mprotect and futex, and is
// killed for any other call: it still allocates and frees as it likes.
#include "../support/memory.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { ROUNDS = 4, BLOCKS = 200000, REFUSED = 3 };

extern char __libc_single_threaded __attribute__((weak));

static void on_refused_call(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    char text[64];
    const int length = snprintf(text, sizeof text, "system call %d\n", info->si_syscall);
    (void)!write(2, text, (size_t)length);
    _exit(REFUSED);
}

static void enter_sandbox(void)
{
    static const int allowed[] = {SYS_mmap,
                                  SYS_munmap,
                                  SYS_mremap,
                                  SYS_madvise,
                                  SYS_mprotect,
                                  SYS_futex,
                                  SYS_write,
                                  SYS_exit,
                                  SYS_exit_group,
                                  SYS_rt_sigreturn};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[ALLOWED + 3];
    unsigned length = 0;
    filter[length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < ALLOWED; i++) {
        filter[length++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(ALLOWED - i), 0);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)length, filter};
    struct sigaction action = {.sa_sigaction = on_refused_call, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    HT_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no prctl");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(HT_SKIPPED);
    }
}

static void *blocks[BLOCKS];

int main(void)
{
    ht_start();
    if (&__libc_single_threaded == NULL && dlsym(RTLD_DEFAULT, "__libc_single_threaded") == NULL) {
        HT_SKIP("this C library does not tell that there is one thread: there is a membarrier");
    }
    ht_need_memory(512 * HT_MIB);
    free(ht_hide(malloc(1)));
    const pid_t child = fork();
    if (child == 0) {
        enter_sandbox();
        for (int round = 0; round < ROUNDS; round++) {
            for (size_t i = 0; i < BLOCKS; i++) {
                blocks[i] = malloc(i % 1000 == 0 ? 300000 : 16 + i % 1500);
                *(char *)blocks[i] = 1;
            }
            for (size_t i = 0; i < BLOCKS; i++) {
                blocks[i] = i % 100 == 0 ? realloc(blocks[i], 700000) : blocks[i];
                free(blocks[i]);
            }
            free(calloc(1, 40 * HT_MIB));
        }
        // Refused by the kernel, and because of the size.
        if (malloc(ht_hide_size((size_t)1 << 46)) != NULL ||
            malloc(ht_hide_size((size_t)1 << 50)) != NULL) {
            _exit(1);
        }
        _exit(0);
    }
    ht_wait_child(child, "the worker");
    return 0;
}
