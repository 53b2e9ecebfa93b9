// A vfork child runs in its parent's memory. What it frees there may be worth giving back, but a
// thread for that would be the child's, and would end with the child in the middle of its work.
// The parent gives it back.
#include "../support/memory.h"

#include <sys/stat.h>

enum { BLOCKS = 64 };

static void *blocks[BLOCKS];
static volatile unsigned threads_of_child;

// A folder has a link from its own entry, one from its parent and one from each folder in it.
static unsigned threads(void)
{
    struct stat tasks;
    HT_CHECK(stat("/proc/self/task", &tasks) == 0, "no /proc/self/task");
    return (unsigned)tasks.st_nlink - 2;
}

int main(void)
{
    ht_start();
    const long baseline = ht_rss_kib();
    for (int round = 0; round < 3; round++) {
        ht_fill(blocks, BLOCKS, HT_MIB);
        pid_t child = vfork();
        if (child == 0) {
            ht_free_all(blocks, BLOCKS);
            threads_of_child = threads();
            _exit(0);
        }
        ht_wait_child(child, "the child");
        HT_CHECK(threads_of_child == 1, "the child had %u threads", threads_of_child);
        free(ht_hide(malloc(2 * HT_MIB))); // the parent first sees what waits
        ht_expect_rss(ht_fallen_kib(baseline, 0), 20000, "after the child");
    }
    return 0;
}
