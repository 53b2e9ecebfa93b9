// native only
// with features
// static too
// If hakmem's lines go to a pipe that nobody reads any more, or to a file at its limit (RLIMIT_FSIZE), the program goes on: no
// SIGPIPE or SIGXFSZ ends it. A misuse ends it by SIGABRT, as ever. What the program has pending of these signals stays. If no
// signal can have come, as for a full disk, a sandbox that kills for rt_sigtimedwait has no reason to.
#include "../support/filter.h"
#include "../support/nameless.h"

#include <fcntl.h>
#include <signal.h>

enum { DONE = 7 };

static int work(void)
{
    ht_hide(malloc(ht_hide_size(1))); // anything: the lines are about the whole process
    return DONE;
}

// Its SIGPIPE is blocked and waits: it is still there after a line of ours, and only one.
static int wait_with_pipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGPIPE);
    if (malloc(ht_hide_size((size_t)1 << 60)) != NULL) {
        return 1; // refused, with a line (trace_failures)
    }
    const struct timespec at_once = {0, 0};
    const bool was_there = sigtimedwait(&set, NULL, &at_once) == SIGPIPE;
    const bool is_gone = sigtimedwait(&set, NULL, &at_once) == -1 && errno == EAGAIN;
    return was_there && is_gone ? DONE : 1;
}

static int work_in_sandbox(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigtimedwait, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    ht_filter_calls(rules, sizeof rules / sizeof *rules);
    return work();
}

static int misuse(void)
{
    char *block = ht_hide(malloc(5 * HT_MIB));
    free(block);
    free(ht_hide(block));
    return 1;
}

static int run(const char *name, const char *value, int errors, const char *what, rlim_t longest)
{
    const pid_t child = fork();
    HT_CHECK(child >= 0, "no child: errno %d", errno);
    if (child == 0) {
        const struct rlimit limit = {longest, longest};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        dup2(errors, STDERR_FILENO);
        setenv(name, value, 1);
        execl("/proc/self/exe", "lines", what, (char *)NULL);
        _exit(1);
    }
    int status = 0;
    HT_CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
    return status;
}

static void expect_done(int status, const char *what)
{
    HT_CHECK(
        WIFEXITED(status) && WEXITSTATUS(status) == DONE, "%s: status %#x", what, (unsigned)status);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        const char what = arguments[1][0];
        return what == 'w'   ? work()
               : what == 'p' ? wait_with_pipe()
               : what == 's' ? work_in_sandbox()
                             : misuse();
    }
    ht_start();
    int ends[2];
    HT_CHECK(pipe2(ends, O_CLOEXEC) == 0, "pipe failed");
    close(ends[0]);
    expect_done(run("HAKMEM_STATS", "1", ends[1], "work", RLIM_INFINITY), "statistics");
    expect_done(run("HAKMEM_DECAY_MS", "soon", ends[1], "work", RLIM_INFINITY), "a wrong option");
    expect_done(run("HAKMEM_TRACE_FAILURES", "1", ends[1], "pending", RLIM_INFINITY),
                "SIGPIPE waits");
    const int status = run("HAKMEM_CHECK", "1", ends[1], "misuse", RLIM_INFINITY);
    HT_CHECK(
        WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "misuse: status %#x", (unsigned)status);
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const int sandboxed = run("HAKMEM_STATS", "1", full, "sandbox", RLIM_INFINITY);
    if (!WIFEXITED(sandboxed) || WEXITSTATUS(sandboxed) != HT_SKIPPED) {
        expect_done(sandboxed, "a full disk in a sandbox");
    }
    char path[HT_NAMELESS_PATH];
    ht_nameless_file("", path);
    expect_done(run("HAKMEM_STATS", path, ends[1], "work", 0), "no room in the file at all");
    expect_done(run("HAKMEM_STATS", path, ends[1], "work", 100),
                "room for the beginning of the line");
    return 0;
}
