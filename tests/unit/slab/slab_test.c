// pages: 16384 65536
// Slabs: every block is handed out exactly once, misuse ends the process, pages of free blocks go back.
#include "slab/purge.h"
#include "slab/ranges.h"
#include "slab/slab.h"
#include "slab/superslabs.h"

#include "../unit.h"
#include "meta/map.h"
#include "owner/owner.h"
#include "slab/arena.h"

enum { MOST_BLOCKS = 4096, TAG = 0x500 };

static struct hak_owner owner, other; // only their addresses count

static struct hak_run *make(unsigned size_class)
{
    struct hak_run *slab = hak_slab_make(&owner, TAG, size_class);
    UNIT_CHECK(slab != NULL);
    hak_slab_verify(slab);
    return slab;
}

static void end(struct hak_run *slab)
{
    char *base = slab->base;
    hak_slab_verify(slab);
    hak_slab_end(slab);
    UNIT_EQUAL(hak_map_entry(base), HAK_MAP_NOTHING);
    UNIT_CHECK(hak_run_of(base) == NULL);
}

static void put_all(struct hak_run *slab, void **blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        hak_slab_put(slab, blocks[i]);
    }
}

static unsigned index_of(const struct hak_run *slab, const void *block)
{
    const size_t offset = (size_t)((const char *)block - slab->base);
    const size_t bytes = hak_classes[slab->size_class].bytes;
    UNIT_EQUAL(offset % bytes, 0);
    UNIT_CHECK(offset / bytes < hak_classes[slab->size_class].blocks);
    return (unsigned)(offset / bytes);
}

// Take and put random batches; a shadow knows which blocks are out.
static void random_batches(unsigned size_class)
{
    static void *out[MOST_BLOCKS];
    static bool is_out[MOST_BLOCKS];
    memset(is_out, 0, sizeof is_out);
    struct ht_random random = {size_class};
    struct hak_run *slab = make(size_class);
    const unsigned blocks = hak_classes[size_class].blocks;
    unsigned held = 0;
    for (unsigned round = 0; round < 100; round++) {
        const unsigned want = (unsigned)ht_random_below(&random, blocks) + 1;
        const unsigned room = blocks - held;
        const unsigned old_fresh = hak_load_relaxed(&slab->fresh);
        const unsigned got = hak_slab_take(slab, out + held, want);
        UNIT_EQUAL(got, want < room ? want : room);
        for (unsigned i = held; i < held + got; i++) {
            const unsigned index = index_of(slab, out[i]);
            UNIT_CHECK(!is_out[index] && hak_slab_is_out(slab, out[i]));
            UNIT_CHECK(i == held || out[i] < out[i - 1]); // the lowest address last
            is_out[index] = true;
        }
        held += got;
        UNIT_CHECK(hak_load_relaxed(&slab->fresh) == old_fresh ||
                   slab->free_blocks == 0); // used ones first
        UNIT_EQUAL(hak_load_relaxed(&slab->fresh) - slab->free_blocks, held);
        hak_slab_verify(slab);
        for (size_t puts = ht_random_below(&random, held + 1); puts > 0; puts--) {
            const size_t i = ht_random_below(&random, held);
            is_out[index_of(slab, out[i])] = false;
            hak_slab_put(slab, out[i]);
            UNIT_CHECK(!hak_slab_is_out(slab, out[i]));
            out[i] = out[--held];
        }
        hak_slab_verify(slab);
        UNIT_EQUAL(hak_slab_has_blocks(slab), held < blocks);
        UNIT_EQUAL(hak_slab_is_idle(slab), held == 0);
    }
    put_all(slab, out, held);
    UNIT_CHECK(hak_slab_is_idle(slab));
    end(slab);
}

static void every_address_leads_to_the_slab(void)
{
    struct hak_run *slab = make(71); // four units
    for (size_t offset = 0; offset < slab->units * HAK_UNIT_BYTES; offset += 4096) {
        UNIT_CHECK(hak_run_of(slab->base + offset) == slab);
        UNIT_EQUAL(hak_map_entry(slab->base + offset), TAG | 71);
    }
    UNIT_CHECK(hak_run_of(slab->base - 1) != slab);
    UNIT_CHECK(hak_run_of(slab->base + slab->units * HAK_UNIT_BYTES) != slab);
    hak_slab_move(slab, &other, 0x900);
    UNIT_CHECK(slab->owner == &other);
    UNIT_EQUAL(hak_map_entry(slab->base + 3 * HAK_UNIT_BYTES), 0x900 | 71);
    end(slab);
}

static void fresh_blocks_are_untouched(void)
{
    struct hak_run *slab = make(63); // 16 KiB, two units
    void *block;
    unsigned count = 0;
    for (; (block = hak_slab_take_fresh(slab)) != NULL; count++) {
        UNIT_EQUAL(index_of(slab, block), count);
        UNIT_EQUAL(*(unsigned char *)block, 0);
    }
    UNIT_EQUAL(count, hak_classes[63].blocks);
    UNIT_CHECK(!hak_slab_has_blocks(slab));
    hak_slab_put(slab, slab->base);
    UNIT_CHECK(hak_slab_take_fresh(slab) == NULL); // free, but not fresh
    for (unsigned i = 1; i < count; i++) {
        hak_slab_put(slab, slab->base + i * (size_t)hak_classes[63].bytes);
    }
    end(slab);
}

static void misuse_dies(void)
{
    struct hak_run *slab = make(3); // 64 bytes
    void *blocks[10];
    UNIT_EQUAL(hak_slab_take(slab, blocks, 10), 10);
    hak_slab_put(slab, blocks[4]);
    UNIT_DIES(hak_slab_put(slab, blocks[4]), "double free: ");
    UNIT_DIES(hak_slab_put(slab, (char *)blocks[5] + 8), "points 8 bytes into a block of 64 bytes");
    UNIT_DIES(hak_slab_put(slab, slab->base + 10 * 64), "(block of 64 bytes) was never allocated");
    UNIT_DIES(hak_slab_is_out(slab, (char *)blocks[4] + 16), "points 16 bytes into");
    hak_slab_verify(slab);
    UNIT_EQUAL(slab->free_blocks, 1);
    hak_slab_take(slab, blocks + 4, 1);
    put_all(slab, blocks, 10);
    end(slab);
}

static void broken_invariants_die(void)
{
    struct hak_run *slab = make(0);
    void *blocks[100];
    hak_slab_take(slab, blocks, 100);
    UNIT_DIES(hak_slab_end(slab), "internal: ");
    put_all(slab, blocks, 100);
    slab->free_blocks++;
    UNIT_DIES(hak_slab_verify(slab), "internal: ");
    slab->free_blocks--;
    slab->summary ^= 2;
    UNIT_DIES(hak_slab_verify(slab), "internal: ");
    slab->summary ^= 2;
    hak_store_relaxed(&slab->fresh, 99);
    UNIT_DIES(hak_slab_verify(slab), "internal: ");
    hak_store_relaxed(&slab->fresh, 100);
    end(slab);
}

static size_t purged_bytes(struct hak_run *slab)
{
    const size_t before = hak_fake.purged_bytes;
    struct hak_ranges ranges = {.count = 0};
    hak_slab_purge(slab, &ranges);
    hak_ranges_purge(&ranges);
    return hak_fake.purged_bytes - before;
}

// 640 bytes: blocks straddle pages, and a page is free only if all blocks that touch it are.
static void pages_of_free_blocks_go_back(void)
{
    const unsigned size_class = 27;
    const size_t bytes = hak_classes[size_class].bytes;
    const size_t page = hak_os_page_bytes();
    UNIT_CHECK(bytes % page != 0 && page % bytes != 0);
    const unsigned blocks = hak_classes[size_class].blocks;
    static void *all[MOST_BLOCKS];
    struct hak_run *slab = make(size_class);
    UNIT_EQUAL(hak_slab_take(slab, all, blocks), blocks);
    memset(slab->base, 0xab, blocks * bytes);
    UNIT_EQUAL(purged_bytes(slab), 0);
    // Leave two blocks out: the pages that they touch stay.
    const unsigned left[] = {3, 50};
    unsigned touched = 0;
    for (size_t start = 0; start < blocks * bytes; start += page) {
        bool stays = false;
        for (unsigned i = 0; i < 2; i++) {
            stays |= left[i] * bytes < start + page && (left[i] + 1) * bytes > start;
        }
        touched += stays;
    }
    for (unsigned i = 0; i < blocks; i++) {
        const unsigned index = index_of(slab, all[i]);
        if (index != left[0] && index != left[1]) {
            hak_slab_put(slab, all[i]);
        }
    }
    const size_t pages = (blocks * bytes + page - 1) / page;
    UNIT_EQUAL(purged_bytes(slab), (pages - touched) * page);
    UNIT_EQUAL(purged_bytes(slab), 0); // nothing was freed since
    for (unsigned i = 0; i < 2; i++) {
        const unsigned char *block = (unsigned char *)slab->base + left[i] * bytes;
        for (size_t b = 0; b < bytes; b++) {
            UNIT_EQUAL(block[b], 0xab);
        }
        hak_slab_put(slab, slab->base + left[i] * bytes);
        const size_t first = left[i] * bytes / page;
        const size_t last = ((left[i] + 1) * bytes - 1) / page;
        const bool is_shared = i == 0 && last == left[1] * bytes / page;
        UNIT_EQUAL(purged_bytes(slab), (last + 1 - first - is_shared) * page); // no page twice
    }
    UNIT_EQUAL(hak_slab_take(slab, all, 1), 1); // its page is resident again
    hak_slab_put(slab, all[0]);
    UNIT_EQUAL(purged_bytes(slab), pages * page);
    end(slab);
}

// A new slab has found them there, and has not used them yet.
static void pages_of_the_last_user_go_back(void)
{
    static void *all[MOST_BLOCKS];
    void *block;
    const unsigned blocks = hak_classes[27].blocks;
    struct hak_run *slab = make(27);
    UNIT_EQUAL(hak_slab_take(slab, all, blocks), blocks);
    put_all(slab, all, blocks);
    end(slab);
    slab = make(3);
    UNIT_EQUAL(hak_slab_take(slab, &block, 1), 1);
    UNIT_EQUAL(purged_bytes(slab), HAK_UNIT_BYTES - hak_os_page_bytes());
    UNIT_EQUAL(purged_bytes(slab), 0);
    hak_slab_note_unpurged(slab); // the kernel has refused
    UNIT_EQUAL(purged_bytes(slab), HAK_UNIT_BYTES - hak_os_page_bytes());
    put_all(slab, &block, 1);
    end(slab);
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    slab = make(3);
    UNIT_EQUAL(hak_slab_take(slab, &block, 1), 1);
    UNIT_EQUAL(purged_bytes(slab), 0); // none is left
    put_all(slab, &block, 1);
    end(slab);
}

// A slab of which all pages but the first were purged. Returns their bytes.
static size_t end_with_holes(void)
{
    static void *all[MOST_BLOCKS];
    struct hak_run *slab = make(27);
    const unsigned blocks = hak_classes[27].blocks;
    UNIT_EQUAL(hak_slab_take(slab, all, blocks), blocks);
    for (unsigned i = 0; i < blocks; i++) {
        if (index_of(slab, all[i]) != 0) {
            hak_slab_put(slab, all[i]);
        }
    }
    const size_t holes = purged_bytes(slab);
    UNIT_CHECK(holes > 0 || hak_os_page_bytes() == HAK_UNIT_BYTES);
    UNIT_EQUAL(hak_slab_purged_bytes(slab), holes);
    hak_slab_put(slab, slab->base);
    end(slab);
    return holes;
}

// A slab's purged pages count as taken again with their unit, unless the unit is purged first: then the whole unit counts.
static void what_went_before_is_counted_once(void)
{
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    const size_t holes = end_with_holes();
    const size_t retaken = hak_arena.retaken_bytes;
    struct hak_run *slab = make(27);
    UNIT_EQUAL(hak_arena.retaken_bytes - retaken, holes);
    end(slab);
    end(make(27));
    UNIT_EQUAL(hak_arena.retaken_bytes - retaken, holes);
    UNIT_EQUAL(end_with_holes(), holes);
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    end(make(27));
    UNIT_EQUAL(hak_arena.retaken_bytes - retaken, holes + HAK_UNIT_BYTES);
}

static void without_memory_nothing_is_lost(void)
{
    // Until no ask is left that can fail: the bitmap's, the superslab's, its descriptor's.
    struct hak_run *slab = NULL;
    unsigned failures = 0;
    for (size_t n = 1; slab == NULL || hak_fake.asks >= hak_fake.fail_first; n++) {
        if (slab != NULL) {
            end(slab);
        }
        hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
        hak_superslabs_trim();
        UNIT_EQUAL(hak_arena.super_bytes, hak_arena.free_bytes);
        hak_fake_fail_in(n, SIZE_MAX / 2);
        slab = hak_slab_make(&owner, TAG, 71);
        if (slab == NULL) {
            failures++;
            UNIT_EQUAL(hak_arena.free_bytes, hak_arena.super_bytes);
        }
    }
    hak_fake.fail_times = 0;
    UNIT_CHECK(failures >= 1);
    end(slab);
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        random_batches(size_class);
    }
    every_address_leads_to_the_slab();
    fresh_blocks_are_untouched();
    misuse_dies();
    broken_invariants_die();
    pages_of_free_blocks_go_back();
    pages_of_the_last_user_go_back();
    what_went_before_is_counted_once();
    without_memory_nothing_is_lost();
    UNIT_EQUAL(hak_arena.free_bytes, hak_arena.super_bytes);
    return 0;
}
