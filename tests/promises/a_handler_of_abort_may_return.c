// static too
// timeout: 20
// If a crash reporter's handler of SIGABRT returns, the process still ends by SIGABRT, as abort() ensures, so it leaves a core
// dump. The same holds if the signal is ignored or blocked.
#include "../support/promise.h"

#include <fcntl.h>
#include <signal.h>

static int report_end;

static void report(int signal)
{
    (void)signal;
    HT_CHECK(write(report_end, "saved", 5) == 5, "the handler cannot write");
}

static void misuse(void (*handler)(int), bool is_blocked)
{
    signal(SIGABRT, handler);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGABRT);
    HT_CHECK(sigprocmask(is_blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL) == 0, "sigprocmask");
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    char *block = ht_hide(malloc(5 * HT_MIB));
    free(block);
    free(ht_hide(block));
}

static void expect_abort(void (*handler)(int), bool is_blocked, bool is_reported, const char *what)
{
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "pipe failed");
    const pid_t child = fork();
    HT_CHECK(child >= 0, "no child: errno %d", errno);
    if (child == 0) {
        report_end = ends[1];
        misuse(handler, is_blocked);
        _exit(0);
    }
    close(ends[1]);
    char text[16];
    const bool has_said = read(ends[0], text, sizeof text) == 5;
    close(ends[0]);
    int status = 0;
    HT_CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
    HT_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
             "%s: status %#x",
             what,
             (unsigned)status);
    HT_CHECK(has_said == is_reported, "%s: the handler has run: %d", what, has_said);
}

int main(void)
{
    ht_start();
    expect_abort(SIG_DFL, false, false, "no handler");
    expect_abort(report, false, true, "a handler that returns");
    expect_abort(report, true, true, "a handler, and the signal blocked");
    expect_abort(SIG_IGN, false, false, "the signal ignored");
    return 0;
}
