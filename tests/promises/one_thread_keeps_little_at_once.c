// args in musl: 2
// serial
// native only
// static too
// not secure: blocks wait in quarantine, and with a block there its page
// A program with one thread frees, and makes no call afterwards: at once, 8 MiB or a sixteenth of the bytes in use stay beyond
// those, however often it has done so. If it swings by less than 48 MiB, and has taken that again at once, that stays, too.
#include "../support/peak.h"

enum { WIDE = 64 * HT_MIB, NARROW = 40 * HT_MIB, SIZES = 4, KEEP_ONE_IN = 10 };

static const size_t sizes[SIZES] = {32, 1000, 20000, 2000000};

// One in ten stays, consecutive ones: memory beside blocks in use cannot go back.
static void run(void **blocks, size_t bytes, size_t size, unsigned rounds, bool keeps)
{
    const size_t count = bytes / size;
    const size_t kept = keeps ? count / KEEP_ONE_IN : 0;
    const long baseline = ht_rss_kib();
    ht_fill(blocks, kept, size);
    for (unsigned round = 0; round < rounds; round++) {
        ht_fill(blocks + kept, count - kept, size);
        ht_put_in_order(blocks + kept, count - kept, round % HT_ORDERS);
        ht_free_all(blocks + kept, count - kept);
    }
    char what[80];
    snprintf(what, sizeof what, "blocks of %zu bytes, %u times, %zu in use", size, rounds, kept);
    const size_t more = rounds > 1 && bytes == NARROW ? NARROW : 0;
    ht_expect_rss(ht_fallen_kib(baseline, kept * size + more), 0, what);
}

// In a process of its own: what one run has taken again and again is no reason for the next to keep it.
static void run_apart(void **blocks, size_t bytes, size_t size, unsigned rounds, bool keeps)
{
    const pid_t child = fork();
    if (child == 0) {
        run(blocks, bytes, size, rounds, keeps);
        _exit(0);
    }
    ht_wait_child(child, "frees, and makes no call");
}

int main(int count, char **arguments)
{
    ht_start();
    const unsigned often = count > 1 ? (unsigned)strtoul(arguments[1], NULL, 10) : 4;
    void **blocks = ht_map(WIDE / sizes[0] * sizeof *blocks);
    for (unsigned i = 0; i < SIZES; i++) {
        for (unsigned keeps = 0; keeps <= 1; keeps++) {
            run_apart(blocks, WIDE, sizes[i], 1, keeps);
            run_apart(blocks, WIDE, sizes[i], often, keeps);
            run_apart(blocks, NARROW, sizes[i], 1, keeps);
            run_apart(blocks, NARROW, sizes[i], often, keeps);
        }
    }
    return 0;
}
