// native only
// A sandbox (seccomp) may refuse madvise, mremap, membarrier and, where threads are made by clone3, clone:
// everything works, only less memory goes back. Nothing is printed.
#include "../support/crowd.h"
#include "../support/filter.h"

#include <sys/mman.h>

#ifndef SYS_process_madvise
#    define SYS_process_madvise 440
#endif

#define REFUSE(number)                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(number), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

// Refuse the calls that every variant refuses, and `also`.
static void refuse(long also)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the system call's number
        REFUSE(SYS_madvise),
        REFUSE(SYS_process_madvise),
        REFUSE(SYS_mremap),
        REFUSE(SYS_membarrier),
        REFUSE(also),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    ht_filter_calls(rules, sizeof rules / sizeof *rules);
    HT_CHECK(madvise(NULL, 0, MADV_NORMAL) != 0 && errno == EPERM, "madvise is not refused");
}

static void *nothing(void *unused)
{
    return unused;
}

// Does pthread_create call clone, as musl's and an old glibc's do, and not clone3?
static bool threads_are_made_by_clone(void)
{
    const pid_t child = fork();
    if (child == 0) {
        refuse(SYS_clone);
        pthread_t thread;
        _exit(pthread_create(&thread, NULL, nothing, NULL) != 0);
    }
    int status;
    HT_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status), "the trial has crashed");
    return WEXITSTATUS(status) != 0;
}

int main(void)
{
    ht_start();
    refuse(threads_are_made_by_clone() ? SYS_membarrier : SYS_clone);
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "no pipe");
    const int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    for (int i = 0; i < 5; i++) {
        ht_crowd_run();
        malloc_trim(0);
    }
    char *large = malloc(100 * HT_MIB); // mremap makes it grow elsewhere
    HT_CHECK(large != NULL, "no large block");
    memset(large, 7, 100 * HT_MIB);
    large = realloc(large, 300 * HT_MIB);
    HT_CHECK(large != NULL && large[0] == 7 && large[100 * HT_MIB - 1] == 7, "realloc lost it");
    free(large);
    dup2(saved, STDERR_FILENO);
    close(ends[1]);
    char text[200];
    const ssize_t length = read(ends[0], text, sizeof text);
    HT_CHECK(length == 0, "it printed: %.*s", (int)length, text);
    return 0;
}
