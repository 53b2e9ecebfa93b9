// preload only
// native only
// The library starts and serves where address space is scarce: below
// `ulimit -v 524288`, and below a quarter of that.
#include "../support/promise.h"

#include <sys/resource.h>

static int live_in(size_t mib)
{
    // Two fifths of the limit for the program; the rest is the C library's, the
    // stack's and the allocator's own.
    size_t want = mib * HT_MIB / 5 * 2;
    static char *blocks[400];
    for (size_t i = 0; i < 400; i++) {
        blocks[i] = malloc(want / 400);
        HT_CHECK(blocks[i] != NULL, "under %zu MiB: %zu of 400 blocks, then no more", mib, i);
        memset(blocks[i], 1, want / 400);
    }
    for (size_t i = 0; i < 400; i++) {
        free(blocks[i]);
    }
    char *large = malloc(want / 2);
    HT_CHECK(large != NULL, "under %zu MiB: no block of %zu", mib, want / 2);
    memset(large, 1, want / 2);
    free(large);
    return 0;
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        return live_in(strtoul(arguments[1], NULL, 10));
    }
    static const char *const limits[] = {"2048", "512", "128"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        pid_t child = fork();
        if (child == 0) {
            rlim_t bytes = strtoul(limits[i], NULL, 10) * HT_MIB;
            struct rlimit limit = {bytes, bytes};
            HT_CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit failed");
            execl("/proc/self/exe", "small", limits[i], (char *)NULL);
            _exit(1);
        }
        ht_wait_child(child, limits[i]);
    }
    return 0;
}
