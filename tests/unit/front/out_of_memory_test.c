// pages: 16384 65536
// A scripted run in which every ask for memory fails once, alone and with all after it: the call
// returns NULL with ENOMEM, nothing is lost, and everything works when there is memory again.
#include <errno.h>
#include <hakmem/hakmem.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/options.h"
#include "cache/start.h"

enum { HELD = 48, STEPS = 260, LARGEST = 24 << 20, LONE = 513 << 20 };

static unsigned char *held[HELD];
static size_t held_bytes[HELD];
static unsigned refusals;

// Of a block its first bytes and a few others are written and looked at.
static size_t next_byte(size_t at)
{
    return at < 64 ? at + 1 : at + at / 4;
}

static void check_content(unsigned i, size_t bytes)
{
    for (size_t at = 0; at < bytes; at = next_byte(at)) {
        UNIT_EQUAL(held[i][at], (unsigned char)(i + 1));
    }
}

static void fill(unsigned i)
{
    for (size_t at = 0; at < held_bytes[i]; at = next_byte(at)) {
        held[i][at] = (unsigned char)(i + 1);
    }
}

static void check_result(const void *block)
{
    if (block == NULL) {
        UNIT_EQUAL(errno, ENOMEM);
        refusals++;
        hak_fake.fail_times = 0; // the shortage ends with the first call that notices it
    }
}

static void take(unsigned i, size_t bytes, size_t how)
{
    errno = 0;
    held_bytes[i] = bytes;
    if (how == 0) {
        held[i] = hak_calloc(1, bytes);
        for (size_t at = 0; held[i] != NULL && at < bytes; at = next_byte(at)) {
            UNIT_EQUAL(held[i][at], 0);
        }
    } else if (how == 1) {
        held[i] = hak_aligned_alloc((size_t)4096 << i % 12, bytes);
    } else {
        held[i] = hak_malloc(bytes);
    }
    check_result(held[i]);
    if (held[i] != NULL) {
        fill(i);
    }
}

static void change(unsigned i, size_t bytes)
{
    errno = 0;
    unsigned char *changed = hak_realloc(held[i], bytes);
    check_result(changed);
    if (changed != NULL) {
        held[i] = changed;
        check_content(i, bytes < held_bytes[i] ? bytes : held_bytes[i]);
        held_bytes[i] = bytes;
        fill(i);
    }
    check_content(i, held_bytes[i]); // if not: as before
}

static void drop(unsigned i)
{
    check_content(i, held_bytes[i]);
    errno = 0;
    hak_free(held[i]);
    UNIT_EQUAL(errno, 0);
    held[i] = NULL;
}

static void step(struct ht_random *random)
{
    const unsigned i = (unsigned)ht_random_below(random, HELD);
    const size_t what = ht_random_below(random, 10);
    const size_t bytes =
        1 + (i < 4 ? LONE + ht_random_below(random, LARGEST) : ht_random_size(random, LARGEST));
    if (held[i] == NULL) {
        take(i, bytes, what);
    } else if (what < 3) {
        change(i, bytes);
    } else {
        drop(i);
    }
}

// A heap, used and destroyed; whatever part of it there was memory for.
static void use_a_heap(void)
{
    errno = 0;
    struct hak_heap *heap = hak_heap_create();
    check_result(heap);
    for (size_t bytes = 16; heap != NULL && bytes < HAK_MIB(1); bytes *= 3) {
        errno = 0;
        void *block = hak_heap_malloc(heap, bytes);
        check_result(block);
        if (block != NULL) {
            memset(block, 0xee, bytes);
        }
    }
    hak_heap_destroy(heap);
}

static void check_statistics(void)
{
    struct hak_stats stats;
    hak_stats_read(&stats);
    size_t blocks = 0;
    size_t bytes = 0;
    for (unsigned i = 0; i < HELD; i++) {
        if (held[i] != NULL) {
            check_content(i, held_bytes[i]);
            blocks++;
            bytes += hak_usable_size(held[i]);
        }
    }
    UNIT_EQUAL(stats.live_blocks, blocks);
    UNIT_EQUAL(stats.live_bytes, bytes);
    UNIT_CHECK(stats.dirty_bytes <= stats.unit_free_bytes);
    UNIT_CHECK(bytes + stats.cached_bytes + stats.kept_bytes + stats.slab_free_bytes +
                   stats.unit_free_bytes <=
               stats.mapped_bytes);
}

static void whole_run(uint64_t seed)
{
    struct ht_random random = {seed};
    for (unsigned i = 0; i < STEPS; i++) {
        step(&random);
        if (i % 64 == 63) {
            hak_trim();
            use_a_heap();
        }
    }
    check_statistics();
    hak_fake.fail_times = 0;
    for (unsigned i = 0; i < HELD; i++) { // and now there is memory
        if (held[i] != NULL) {
            drop(i);
        }
        const unsigned before = refusals;
        take(i, 1 + ht_random_size(&random, HAK_MIB(1)), 2);
        UNIT_EQUAL(refusals, before);
    }
    check_statistics();
    for (unsigned i = 0; i < HELD; i++) {
        drop(i);
    }
    check_statistics();
    hak_trim();
    struct hak_stats stats;
    hak_stats_read(&stats);
    UNIT_EQUAL(stats.mapping_count, 0);
    UNIT_EQUAL(stats.unit_free_bytes + stats.cached_bytes + stats.slab_free_bytes > 0 ||
                   stats.superslab_count == 0,
               true);
}

// In a child, so that each run begins with nothing: what the first allocations need fails too.
static void run_with(size_t count, size_t times, bool must_notice)
{
    const pid_t child = fork();
    UNIT_CHECK(child >= 0);
    if (child == 0) {
        hak_fake_fail_in(count, times);
        whole_run(1);
        UNIT_CHECK(!must_notice || refusals > 0);
        _exit(0);
    }
    int status = 0;
    UNIT_CHECK(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "fails when ask %zu is refused, %zu times\n", count, times);
        _Exit(1);
    }
}

// The asks of a run in which none fails.
static size_t asks_of_a_run(void)
{
    int ends[2];
    UNIT_EQUAL(pipe(ends), 0);
    const pid_t child = fork();
    UNIT_CHECK(child >= 0);
    if (child == 0) {
        whole_run(1);
        UNIT_EQUAL(refusals, 0);
        const size_t asks = hak_fake.asks;
        _exit(write(ends[1], &asks, sizeof asks) == sizeof asks ? 0 : 1);
    }
    close(ends[1]);
    size_t asks = 0;
    UNIT_EQUAL(read(ends[0], &asks, sizeof asks), sizeof asks);
    waitpid(child, NULL, 0);
    close(ends[0]);
    return asks;
}

int main(void)
{
    hak_options.purger = 0; // its thread would not run here
    const size_t asks = asks_of_a_run();
    UNIT_CHECK(asks > 20);
    for (size_t n = 1; n <= asks; n++) {
        run_with(n, 1, false); // most calls try a second time and succeed
        run_with(n, 2, false);
        run_with(n, SIZE_MAX / 2, n < asks / 2);
    }
    return 0;
}
