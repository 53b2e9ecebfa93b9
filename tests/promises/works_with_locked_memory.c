// native only
// A program may lock all its memory, present and to come (mlockall): the allocator works, its own
// reservations do not become resident, and its background thread does not stay without work.
#include "../support/crowd.h"
#include "../support/memory.h"

#include <sys/resource.h>

int main(void)
{
    ht_start();
    ht_need_memory(600 * HT_MIB);
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_MEMLOCK, &none);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        HT_SKIP("mlockall: errno %d", errno);
    }
    const long before = ht_rss_kib();
    for (int i = 0; i < 3; i++) {
        ht_crowd_run();
        malloc_trim(0);
    }
    const long grown = ht_rss_kib() - before;
    HT_CHECK(grown < 400 * 1024, "%ld KiB more are resident", grown);
    ht_expect_one_thread(20000);
    return 0;
}
