// peak.h -- fills the heap, frees most of it, and expects the memory to go back.
#ifndef HAK_TESTS_SUPPORT_PEAK_H
#define HAK_TESTS_SUPPORT_PEAK_H

#include "memory.h"

enum { HT_FALL_MS = 2000 };

enum ht_order { HT_FORWARD, HT_BACKWARD, HT_SHUFFLED, HT_INTERLEAVED, HT_ORDERS };

static const char *const ht_order_names[HT_ORDERS] = {
    "forward", "backward", "shuffled", "interleaved"};

static inline void ht_put_in_order(void **blocks, size_t count, enum ht_order order)
{
    if (order == HT_SHUFFLED) {
        ht_shuffle(blocks, count, 5);
        return;
    }
    void **ordered = ht_map(count * sizeof *ordered);
    for (size_t i = 0; i < count; i++) {
        size_t half = (count + 1) / 2;
        size_t from = order == HT_BACKWARD ? count - 1 - i : i;
        if (order == HT_INTERLEAVED) {
            from = i < half ? 2 * i : 2 * (i - half) + 1;
        }
        ordered[i] = blocks[from];
    }
    memcpy(blocks, ordered, count * sizeof *ordered);
    munmap(ordered, count * sizeof *ordered);
}

// Allocate `bytes` in blocks of `size`; keep the last tenth in use, free the
// rest in each order, and sleep: resident memory has to fall by itself.
static inline void ht_check_peaks(size_t size, size_t bytes)
{
    size_t count = bytes / size;
    size_t live = count / 10;
    void **blocks = ht_map(count * sizeof *blocks);
    free(ht_hide(malloc(size))); // the first call sets the heap up
    // Their descriptors stay.
    long baseline = ht_rss_kib() + (long)(bytes / 64 / HT_KIB);
    for (enum ht_order order = 0; order < HT_ORDERS; order++) {
        ht_fill(blocks, count, size);
        HT_CHECK(ht_rss_kib() - baseline >= (long)(bytes / HT_KIB) * 17 / 20,
                 "no peak: nothing to measure");
        ht_put_in_order(blocks, count - live, order);
        ht_free_all(blocks, count - live);
        char what[96];
        snprintf(what, sizeof what, "blocks of %zu freed %s", size, ht_order_names[order]);
        ht_expect_rss(ht_fallen_kib(baseline, live * size), HT_FALL_MS, what);
        ht_free_all(blocks + count - live, live);
    }
    ht_expect_rss(ht_fallen_kib(baseline, 0), HT_FALL_MS, "all blocks freed");
    munmap(blocks, count * sizeof *blocks);
}

// The same for several sizes at once, each in a process of its own, as most of the time is sleep.
static inline void ht_check_peaks_of(const size_t *sizes, size_t count, size_t bytes)
{
    ht_need_memory(2 * count * bytes);
    pid_t children[8];
    HT_CHECK(count - 1 <= sizeof children / sizeof *children, "too many sizes");
    for (size_t i = 0; i < count - 1; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            ht_check_peaks(sizes[i], bytes);
            _exit(0);
        }
    }
    ht_check_peaks(sizes[count - 1], bytes);
    for (size_t i = 0; i < count - 1; i++) {
        char what[64];
        snprintf(what, sizeof what, "the process for blocks of %zu", sizes[i]);
        ht_wait_child(children[i], what);
    }
}

#endif
