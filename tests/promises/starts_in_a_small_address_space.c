// preload only
// native only
// The library starts and works with few addresses: with `ulimit -v 524288`, and with a quarter of that; and with
// little data: with `ulimit -d 8192`.
#include "../support/promise.h"

#include <sys/resource.h>

// This many fifths of the limit are for the program; the rest is the C library's, the stack's and the allocator's own.
static int live_in(size_t mib, size_t fifths)
{
    size_t want = mib * HT_MIB / 5 * fifths;
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
    if (count > 2) {
        return live_in(strtoul(arguments[1], NULL, 10), strtoul(arguments[2], NULL, 10));
    }
    static const struct {
        ht_resource resource;
        const char *mib;
        const char *fifths;
    } limits[] = {{RLIMIT_AS, "2048", "2"},
                  {RLIMIT_AS, "512", "2"},
                  {RLIMIT_AS, "128", "2"},
                  {RLIMIT_DATA, "512", "2"},
                  {RLIMIT_DATA, "64", "2"},
                  {RLIMIT_DATA, "16", "2"},
                  {RLIMIT_DATA, "8", "1"}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        pid_t child = fork();
        if (child == 0) {
            rlim_t bytes = strtoul(limits[i].mib, NULL, 10) * HT_MIB;
            struct rlimit limit = {bytes, bytes};
            HT_CHECK(setrlimit(limits[i].resource, &limit) == 0, "setrlimit failed");
            execl("/proc/self/exe", "small", limits[i].mib, limits[i].fifths, (char *)NULL);
            _exit(1);
        }
        ht_wait_child(child, limits[i].mib);
    }
    return 0;
}
