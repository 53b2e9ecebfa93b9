// env: HAKMEM_HUGE_DEAR_US=0
// native only
// not secure
// What a process had before a fork stays shared with its child, also when either of them takes more and more.
#include "../support/memory.h"

enum { BLOCK_BYTES = 512, BEFORE = 7 * HT_MIB / BLOCK_BYTES, AFTER = 24 * HT_MIB / BLOCK_BYTES };

static void take(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *volatile block = malloc(BLOCK_BYTES);
        HT_CHECK(block != NULL, "no memory");
        memset(block, 1, BLOCK_BYTES);
    }
}

static void check_is_shared(const char *who)
{
    const long before = ht_proc_number(HT_SMAPS, "Shared_Dirty");
    take(AFTER);
    const long after = ht_proc_number(HT_SMAPS, "Shared_Dirty");
    HT_CHECK(before >= 6 * 1024, "%s: only %ld KiB are shared at first", who, before);
    HT_CHECK(
        after >= before - 1024, "%s: of %ld KiB only %ld are still shared", who, before, after);
}

int main(void)
{
    ht_start();
    take(BEFORE);
    if (ht_proc_number(HT_SMAPS, "Shared_Dirty") < 0) {
        return 0; // the kernel does not tell
    }
    pid_t child = fork();
    if (child == 0) {
        check_is_shared("the child");
        _exit(0);
    }
    ht_wait_child(child, "the first child");
    child = fork();
    if (child == 0) {
        pause();
    }
    check_is_shared("the parent");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
