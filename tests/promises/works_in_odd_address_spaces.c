// preload only
// native only
// The program works without randomised addresses, with the kernel's old layout of mappings, with an
// unlimited stack (which also brings that layout), with a limit on its data, and without huge pages.
#include "../support/crowd.h"

#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum way { PLAIN, FIXED, OLD_LAYOUT, BOTH, STACK, DATA, NO_HUGE_PAGES, WAYS };
static const char *const names[WAYS] = {"as ever",
                                        "no randomisation",
                                        "the old layout",
                                        "both",
                                        "a stack without limit",
                                        "a limit on data",
                                        "no huge pages"};

static void limit(int what, rlim_t bytes)
{
    struct rlimit value;
    HT_CHECK(getrlimit((ht_resource)what, &value) == 0, "getrlimit failed");
    value.rlim_cur = bytes;
    if (setrlimit((ht_resource)what, &value) != 0) {
        HT_SKIP("setrlimit: errno %d", errno);
    }
}

static void arrange(enum way way)
{
    const unsigned long flags = (way == FIXED || way == BOTH ? ADDR_NO_RANDOMIZE : 0) |
                                (way == OLD_LAYOUT || way == BOTH ? ADDR_COMPAT_LAYOUT : 0);
    if (flags != 0 && personality(flags) < 0) {
        HT_SKIP("personality: errno %d", errno);
    }
    if (way == STACK) {
        limit(RLIMIT_STACK, RLIM_INFINITY);
    } else if (way == DATA) {
        limit(RLIMIT_DATA, 400 * HT_MIB);
    } else if (way == NO_HUGE_PAGES) {
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); // inherited
    }
}

static void live(enum way way)
{
    ht_crowd_run();
    if (way == DATA) {
        size_t got = 0;
        void *blocks[100];
        while (got < 100 && (blocks[got] = malloc(8 * HT_MIB)) != NULL) {
            got++;
        }
        HT_CHECK(got > 5 && got < 60, "%zu blocks of 8 MiB under a limit of 400", got);
        for (size_t i = 0; i < got; i++) {
            free(blocks[i]);
        }
        ht_crowd_run();
    }
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        live((enum way)strtol(arguments[1], NULL, 10));
        return 0;
    }
    for (enum way way = 0; way < WAYS; way++) {
        pid_t child = fork();
        if (child == 0) {
            char number[4];
            snprintf(number, sizeof number, "%d", (int)way);
            arrange(way);
            execl("/proc/self/exe", "odd", number, (char *)NULL);
            _exit(1);
        }
        int status = 0;
        HT_CHECK(waitpid(child, &status, 0) == child, "no child");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != HT_SKIPPED) {
            HT_CHECK(status == 0, "%s: status %x", names[way], (unsigned)status);
        }
    }
    return 0;
}
