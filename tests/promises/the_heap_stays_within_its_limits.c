// preload only
// not secure: the addresses that guard a large block count
// A hard limit refuses a request that would exceed it, after all free memory was given back. Above
// a soft limit free memory no longer waits.
#include "../support/memory.h"
#include "../support/options.h"

#include <errno.h>

enum { BLOCKS = 4000 };
static void *blocks[BLOCKS];

// Returns how many bytes can be allocated in blocks of this size.
static size_t fill(size_t bytes)
{
    size_t count = 0;
    errno = 0;
    while (count < BLOCKS && (blocks[count] = malloc(bytes)) != NULL) {
        memset(blocks[count], 1, bytes);
        count++;
    }
    HT_CHECK(count < BLOCKS && errno == ENOMEM, "no end of memory below the limit");
    return count * bytes;
}

static void empty(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

static void check_hard(void)
{
    const size_t limit = 48 * HT_MIB;
    ht_set_option("decay_ms", 3600000); // nothing is given back because of its age
    ht_set_option("limit_hard", limit);
    const long before = ht_rss_kib();
    // What one size leaves free serves the next: it is given back before a request is refused.
    for (size_t bytes = 20 * HT_KIB; bytes < 4 * HT_MIB; bytes *= 6) {
        const size_t had = fill(bytes);
        HT_CHECK(had <= limit, "%zu bytes in blocks of %zu: over the limit", had, bytes);
        HT_CHECK(had >= limit / 8 * 6, "only %zu bytes in blocks of %zu", had, bytes);
        const long grown = ht_rss_kib() - before;
        HT_CHECK(grown <= (long)(limit / HT_KIB) + 2048, "%ld KiB resident", grown);
        empty();
    }
    char *grown = malloc(30 * HT_MIB);
    HT_CHECK(grown != NULL && realloc(grown, 60 * HT_MIB) == NULL, "realloc passes the limit");
    HT_CHECK(malloc(60 * HT_MIB) == NULL, "a long block passes the limit");
    free(grown);
    ht_set_option("limit_hard", 0);
    grown = malloc(60 * HT_MIB);
    HT_CHECK(grown != NULL, "the limit stays after it was lifted");
    free(grown);
}

static void check_soft(void)
{
    const long before = ht_rss_kib();
    ht_set_option("limit_soft", 8 * HT_MIB);
    for (size_t i = 0; i < 400; i++) {
        blocks[i] = malloc(100 * HT_KIB);
        memset(blocks[i], 1, 100 * HT_KIB);
    }
    empty();
    ht_expect_rss(before + 12 * 1024, 5000, "above a soft limit of 8 MiB");
}

int main(void)
{
    ht_start();
    check_hard();
    check_soft();
    return 0;
}
