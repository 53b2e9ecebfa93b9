// script.h -- a scripted program that uses memory of each kind, and in which each request may be refused.
//
// A call that finds no memory returns NULL with ENOMEM and changes nothing; nothing that the program holds is lost or
// changed; and the statistics add up.
#ifndef HAK_TESTS_UNIT_SCRIPT_H
#define HAK_TESTS_UNIT_SCRIPT_H

#include <errno.h>
#include <hakmem/hakmem.h>

#include "../unit.h"
#include "cache/start.h"

enum { HELD = 48, LARGEST = 24 << 20, MAPPING = 513 << 20 };

static unsigned char *held[HELD];
static size_t held_bytes[HELD];
static unsigned refusals;

// Only a block's first bytes and a few others are written and checked.
static inline size_t next_byte(size_t at)
{
    return at < 64 ? at + 1 : at + at / 4;
}

static inline void check_content(unsigned i, size_t bytes)
{
    for (size_t at = 0; at < bytes; at = next_byte(at)) {
        UNIT_EQUAL(held[i][at], (unsigned char)(i + 1));
    }
}

static inline void fill(unsigned i)
{
    for (size_t at = 0; at < held_bytes[i]; at = next_byte(at)) {
        held[i][at] = (unsigned char)(i + 1);
    }
}

static inline void check_result(const void *block)
{
    if (block == NULL) {
        UNIT_EQUAL(errno, ENOMEM);
        refusals++;
        hak_fake.fail_times = 0; // the shortage ends with the first call that notices it
        hak_fake.refuse_times = 0;
    }
}

static inline void take(unsigned i, size_t bytes, size_t how)
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

static inline void change(unsigned i, size_t bytes)
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
    check_content(i, held_bytes[i]); // the realloc failed: as before
}

static inline void drop(unsigned i)
{
    check_content(i, held_bytes[i]);
    errno = 0;
    hak_free(held[i]);
    UNIT_EQUAL(errno, 0);
    held[i] = NULL;
}

static inline void step(struct ht_random *random)
{
    const unsigned i = (unsigned)ht_random_below(random, HELD);
    const size_t what = ht_random_below(random, 10);
    const size_t bytes =
        1 + (i < 4 ? MAPPING + ht_random_below(random, LARGEST) : ht_random_size(random, LARGEST));
    if (held[i] == NULL) {
        take(i, bytes, what);
    } else if (what < 3) {
        change(i, bytes);
    } else {
        drop(i);
    }
}

// A heap is used and destroyed, or the part of it that there was memory for.
static inline void use_a_heap(void)
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

static inline void check_statistics(void)
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

#endif
