// preload only
// not secure: what a block may hold is what was asked for, whatever pool it is of
// with features
// A pool that an option switches off hands out no more blocks; its earlier blocks can still be freed.
#include "../support/options.h"

static void *blocks[3][100];

static size_t usable(const void *block)
{
    HT_API(hak_usable_size);
    return api_hak_usable_size(block);
}

static size_t mappings(void)
{
    HT_API(hak_stats_read);
    struct hak_stats stats;
    api_hak_stats_read(&stats);
    return stats.mapping_count;
}

// Blocks of a class that nothing else here allocates: no magazine has any ready.
static void fill(void **row, size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        row[i] = malloc(bytes);
        HT_CHECK(row[i] != NULL, "no %zu bytes", bytes);
        memset(row[i], 0x5a, bytes);
    }
}

int main(void)
{
    ht_start();
    fill(blocks[0], 10, 700);
    HT_CHECK(usable(blocks[0][0]) <= 768, "the tiny pool is not on at first");

    ht_set_option("tiny_pool", 0);
    fill(blocks[1], 100, 900);
    HT_CHECK(usable(blocks[1][99]) > 1024, "a tiny block, though the pool is off");
    HT_CHECK(usable(blocks[1][99]) <= 2048, "from a larger pool than the next");
    void *aligned = ht_hide(aligned_alloc(512, 512));
    HT_CHECK((uintptr_t)aligned % 512 == 0, "the larger class has lost the alignment");
    char *zeros = calloc(1, 450);
    for (size_t i = 0; i < 450; i++) {
        HT_CHECK(zeros[i] == 0, "calloc's block is not zero");
    }

    ht_set_option("pool", 0);
    fill(blocks[2], 100, 20000);
    HT_CHECK(usable(blocks[2][99]) > 32768, "a block of the pool, though it is off");
    void *small = malloc(330);
    HT_CHECK(usable(small) > 32768, "with both off a small request has to be a large block");

    ht_set_option("guard_large",
                  1); // a guarded block ends with a page, and need not start with one
    for (size_t i = 0; i < 10; i++) {
        void *guarded = ht_hide(aligned_alloc(8192, 8192));
        HT_CHECK((uintptr_t)guarded % 8192 == 0, "a guarded block has lost the alignment");
    }
    ht_set_option("guard_large", 0);

    ht_set_option("large_pool", 0);
    const size_t before = mappings();
    void *large = malloc(300000);
    HT_CHECK(mappings() == before + 1, "no mapping of its own, though the large pool is off");

    ht_set_option("tiny_pool", 1);
    ht_set_option("pool", 1);
    ht_set_option("large_pool", 1);
    for (size_t i = 0; i < 100; i++) {
        free(blocks[0][i]);
        free(blocks[1][i]);
        free(blocks[2][i]);
    }
    free(aligned);
    free(zeros);
    free(small);
    free(large);
    void *again = malloc(830);
    HT_CHECK(usable(again) <= 1024, "the tiny pool does not come back");
    free(again);
    return 0;
}
