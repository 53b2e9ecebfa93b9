// serial
// native only
// A program whose live memory keeps its size may run for ever: changing
// sizes, large blocks that come and go, and realloc leave nothing behind.
#include "../support/memory.h"

enum { SLOTS = 300, WARM_UP = 60000, STEPS = 400000 };

static void *blocks[SLOTS];

static void churn(struct ht_random *random, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        size_t slot = ht_random_below(random, SLOTS);
        // Slots keep their magnitude, so that the live memory keeps its size.
        size_t largest = slot % 50 == 0 ? 3000000 : slot % 10 == 0 ? 200000 : 4000;
        size_t size = 1 + ht_random_below(random, largest);
        if (i % 3 == 0) {
            void *block = realloc(blocks[slot], size);
            HT_CHECK(block != NULL, "realloc(%zu) failed", size);
            blocks[slot] = block;
        } else {
            free(blocks[slot]);
            blocks[slot] = i % 7 == 0 ? aligned_alloc(1024, size) : malloc(size);
            HT_CHECK(blocks[slot] != NULL, "malloc(%zu) failed", size);
        }
        ((char *)blocks[slot])[0] = 1;
        ((char *)blocks[slot])[size - 1] = 1;
    }
}

int main(void)
{
    ht_start();
    struct ht_random random = {9};
    churn(&random, WARM_UP);
    long address_space = ht_proc_number("/proc/self/status", "VmPeak");
    long peak = ht_peak_rss_kib();
    churn(&random, STEPS);
    long grown = ht_peak_rss_kib() - peak;
    HT_CHECK(grown < 24 * 1024, "%ld KiB more resident after a long run", grown);
    grown = ht_proc_number("/proc/self/status", "VmPeak") - address_space;
    HT_CHECK(grown < 64 * 1024, "%ld KiB more address space after a long run", grown);
    ht_free_all(blocks, SLOTS);
    return 0;
}
