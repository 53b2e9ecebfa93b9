// native only
// static too
// A program that may lock 8 MiB (systemd's default), and asks for all memory to come to be locked before its first request, gets
// blocks: the first length of the address map that is not refused leaves room for them.
#include "../support/promise.h"

#include <sys/mman.h>

enum { BLOCKS = 20, BYTES = 100000, NOBODY = 65534 };

// Nothing may have been allocated before.
static int use_memory(void)
{
    const struct rlimit limit = {8 * HT_MIB, 8 * HT_MIB};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (geteuid() == 0 && setuid(NOBODY) != 0) ||
        mlockall(MCL_FUTURE) != 0) {
        return HT_SKIPPED;
    }
    for (int i = 0; i < BLOCKS; i++) {
        char *block = ht_hide(malloc(BYTES));
        if (block == NULL) {
            return HT_BROKEN;
        }
        memset(block, i, BYTES);
    }
    return 0;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        return use_memory();
    }
    ht_start();
    const pid_t child = fork();
    HT_CHECK(child >= 0, "no child: errno %d", errno);
    if (child == 0) {
        execl("/proc/self/exe", "locked", "use", (char *)NULL);
        _exit(HT_BROKEN);
    }
    int status = 0;
    HT_CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
    if (WIFEXITED(status) && WEXITSTATUS(status) == HT_SKIPPED) {
        HT_SKIP("memory cannot be locked");
    }
    HT_CHECK(status == 0, "refused: status %#x", (unsigned)status);
    return 0;
}
