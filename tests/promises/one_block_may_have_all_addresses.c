// native only
// If addresses are limited (RLIMIT_AS), realloc may grow one block until it has nearly all of them: also with other blocks
// that are allocated on the way.
#include "../support/memory.h"

#include <sys/resource.h>

#define LIMIT (1400 * HT_MIB)
#define LEAST (1100 * HT_MIB)

static void limit_addresses(void)
{
    const struct rlimit limit = {LIMIT, LIMIT};
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
        _exit(HT_SKIPPED);
    }
}

// Grow from `start` bytes by `step`, with another block of `other` bytes after each of the first steps.
static void grow(size_t start, size_t step, size_t other)
{
    enum { OTHERS = 8 };
    unsigned steps = 0;
    size_t bytes = start;
    unsigned char *block = malloc(bytes);
    HT_CHECK(block != NULL, "%zu bytes", bytes);
    block[0] = 1;
    unsigned char *longer = block;
    while (longer != NULL && bytes < LIMIT) {
        if (other != 0 && steps++ < OTHERS) {
            HT_CHECK(ht_hide(malloc(other)) != NULL, "another of %zu bytes", other);
        }
        longer = realloc(block, bytes + step);
        block = longer != NULL ? longer : block;
        bytes += longer != NULL ? step : 0;
    }
    HT_CHECK(block[0] == 1, "the first byte was lost");
    HT_CHECK(bytes >= LEAST, "refused at %zu of %zu MiB", bytes / HT_MIB, LIMIT / HT_MIB);
}

static void in_a_child(size_t start, size_t step, size_t other)
{
    const pid_t child = fork();
    if (child == 0) {
        limit_addresses();
        grow(start, step, other);
        _exit(0);
    }
    ht_wait_child(child, "a program that grows a block");
}

int main(void)
{
    ht_start();
    in_a_child(40000, HT_MIB, 0);
    in_a_child(40000, HT_MIB, 50000);
    in_a_child(300 * HT_MIB, 10 * HT_MIB, 0);
    in_a_child(600 * HT_MIB, 10 * HT_MIB, 0);
    in_a_child(300 * HT_MIB, 100 * HT_MIB, HT_MIB);
    in_a_child(500 * HT_MIB, 50 * HT_MIB, HT_MIB);
    in_a_child(600 * HT_MIB, 100 * HT_MIB, HT_MIB);
    return 0;
}
