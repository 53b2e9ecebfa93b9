// native only
// timeout: 20
// The first process of a container ignores signals that it has no handler for, SIGKILL from inside too. A
// misuse ends it nevertheless.
#include "../support/promise.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>

static int misuse(void)
{
    char *block = ht_hide(malloc(5 * HT_MIB));
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    HT_CHECK(block != NULL && nowhere >= 0, "no block");
    dup2(nowhere, STDERR_FILENO);
    free(block);
    free(ht_hide(block));
    return 0;
}

int main(void)
{
    ht_start();
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
        HT_SKIP("no process numbers of one's own: errno %d", errno);
    }
    const pid_t first = fork();
    HT_CHECK(first >= 0, "no child: errno %d", errno);
    if (first == 0) {
        HT_CHECK(getpid() == 1, "this is not the first process");
        _exit(misuse());
    }
    int status = 0;
    HT_CHECK(waitpid(first, &status, 0) == first, "waitpid: errno %d", errno);
    HT_CHECK(WIFSIGNALED(status), "it went on, and ended with %d", status);
    return 0;
}
