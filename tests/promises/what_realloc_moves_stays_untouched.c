// serial
// native only
// Pages of a long block that were never written stay untouched when realloc makes the block longer: while it grows in place,
// also beyond the size from which blocks have mappings of their own, and when another block is in its way.
#include "../support/memory.h"

enum { MARK_STEP = 1 << 24 };
#define MOST_KIB (16L * 1024) // with all that the test itself needs

// Write one byte in each 16 MiB, from `from` on, and the last one.
static void mark(unsigned char *block, size_t from, size_t bytes)
{
    for (size_t at = (from + MARK_STEP - 1) / MARK_STEP * MARK_STEP; at < bytes; at += MARK_STEP) {
        block[at] = (unsigned char)(1 + at / MARK_STEP % 255);
    }
}

static void check(const unsigned char *block, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += MARK_STEP) {
        HT_CHECK(block[at] == (unsigned char)(1 + at / MARK_STEP % 255), "byte %zu was lost", at);
    }
}

static unsigned char *grow(unsigned char *block, size_t bytes, size_t longer)
{
    block = realloc(block, longer);
    HT_CHECK(block != NULL, "realloc to %zu", longer);
    mark(block, bytes, longer);
    check(block, longer);
    return block;
}

static void expect_untouched(long before_kib, const char *what)
{
    const long more = ht_peak_rss_kib() - before_kib;
    HT_CHECK(more < MOST_KIB, "%s: %ld KiB became resident", what, more);
}

// By a third each time, or to twice the length.
static void one_that_grows(size_t divisor)
{
    const long before_kib = ht_rss_kib();
    size_t bytes = 40000;
    unsigned char *block = malloc(bytes);
    mark(block, 0, bytes);
    while (bytes < 1300 * HT_MIB) {
        const size_t longer = bytes + bytes / divisor;
        block = grow(block, bytes, longer);
        bytes = longer;
    }
    free(block);
    expect_untouched(before_kib, "one that grows");
}

static void one_in_the_way_of_another(size_t bytes)
{
    const long before_kib = ht_rss_kib();
    unsigned char *block = malloc(bytes);
    unsigned char *other = malloc(bytes);
    mark(block, 0, bytes);
    mark(other, 0, bytes);
    block = grow(block, bytes, bytes + bytes / 2);
    other = grow(other, bytes, bytes + bytes / 3);
    block = grow(block, bytes + bytes / 2, 3 * bytes);
    other = realloc(other, bytes / 2);
    check(other, bytes / 2);
    check(block, 3 * bytes);
    free(block);
    free(other);
    expect_untouched(before_kib, "two beside each other");
}

int main(void)
{
    ht_start();
    for (size_t mib = 8; mib <= 600; mib *= 2) {
        one_in_the_way_of_another(mib * HT_MIB);
    }
    one_in_the_way_of_another(500 * HT_MIB);
    one_that_grows(3);
    one_that_grows(1);
    return 0;
}
