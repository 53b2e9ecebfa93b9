// preload only
// serial
// native only
// A process that allocates little, as `true` does, holds at most 1 MiB more
// with the library than without it.
#include "../support/memory.h"

enum { MOST_KIB = 1024 };

// The peak resident size of this program, started again with or without the library.
static long peak_of_child(bool with_library)
{
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "pipe failed");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        if (!with_library) {
            unsetenv("LD_PRELOAD");
        }
        execl("/proc/self/exe", "child", "little", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    char text[32] = "";
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    ht_wait_child(child, "the small process");
    HT_CHECK(length > 0, "the small process said nothing");
    return strtol(text, NULL, 10);
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "little") == 0) {
        for (size_t size = 8; size < 5000; size *= 2) {
            memset(ht_hide(malloc(size)), 1, size);
        }
        printf("%ld\n", ht_peak_rss_kib());
        return 0;
    }
    ht_start();
    if (getenv("LD_PRELOAD") == NULL && !ht_is_any()) {
        HT_SKIP("not preloaded");
    }
    long least_without = 1 << 30;
    long least_with = 1 << 30;
    // The kernel maps file pages around each fault, more or fewer depending on what
    // is in its cache: compare the smallest of some runs.
    for (int round = 0; round < 5; round++) {
        long without = peak_of_child(false);
        long with = peak_of_child(true);
        least_without = without < least_without ? without : least_without;
        least_with = with < least_with ? with : least_with;
    }
    HT_CHECK(least_with <= least_without + MOST_KIB,
             "%ld KiB with the library, %ld without",
             least_with,
             least_without);
    return 0;
}
