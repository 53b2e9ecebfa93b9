// slab.c -- see slab.h.
#include "slab/slab.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/check.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "os/os.h"
#include "os/tags.h"
#include "slab/arena.h"
#include "slab/hooks.h"
#include "slab/huge_pages.h"
#include "slab/ranges.h"
#include "slab/runs.h"

static size_t bitmap_words(const struct hak_class *info)
{
    return (info->blocks + 63U) / 64;
}

// Includes a byte for each block behind the bitmap, if the slab is hardened.
static size_t bitmap_bytes(const struct hak_class *info, bool is_hardened)
{
    return bitmap_words(info) * sizeof(uint64_t) + (is_hardened ? info->blocks : 0);
}

size_t hak_slab_described_bytes(unsigned size_class)
{
    return bitmap_bytes(&hak_classes[size_class], hak_hook_hardens());
}

// Put all blocks into the slab, so that any of them can be drawn at random.
static void slab_fill(struct hak_run *slab)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    for (unsigned index = 0; index < info->blocks; index++) {
        slab->bitmap[index / 64] |= UINT64_C(1) << (index % 64);
        slab->summary |= UINT64_C(1) << (index / 64);
    }
    hak_store_relaxed(&slab->fresh, info->blocks);
    slab->free_blocks = info->blocks;
}

struct hak_run *hak_slab_make(struct hak_owner *owner, uint32_t tag, unsigned size_class)
{
    const struct hak_class *info = &hak_classes[size_class];
    const bool is_hardened = hak_hook_hardens();
    uint64_t *bitmap = hak_pool_take(bitmap_bytes(info, is_hardened));
    if (bitmap == NULL) {
        return NULL;
    }
    hak_arena_read_clock();
    const size_t bytes = info->units * HAK_UNIT_BYTES;
    struct hak_run *slab = hak_runs_take(
        hak_arena_shard(tag), bytes, 1, HAK_RUN_NONE, hak_huge_pages_wanted(bytes, false));
    if (slab == NULL) {
        hak_pool_give(bitmap, bitmap_bytes(info, is_hardened));
        return NULL;
    }
    hak_store_relaxed(&slab->owner, owner);
    slab->bitmap = bitmap;
    slab->summary = 0;
    slab->free_blocks = 0;
    hak_store_relaxed(&slab->fresh, 0);
    slab->purged_blocks = 0;
    slab->sampled_blocks = 0;
    slab->is_swept = false;
    slab->has_old_pages = !slab->zeroed;
    slab->size_class = (uint8_t)size_class;
    slab->state = HAK_RUN_SLAB;
    slab->is_hardened = is_hardened;
    if (HAK_UNLIKELY(is_hardened)) {
        slab_fill(slab);
        hak_hook_slab_made(slab);
    }
    hak_map_set(slab->base, info->units, tag | size_class);
    return slab;
}

void hak_slab_end(struct hak_run *slab)
{
    HAK_ASSERT(hak_slab_is_idle(slab));
    slab->zeroed = false;
    if (HAK_UNLIKELY(slab->is_hardened)) {
        hak_hook_slab_ends(slab);
    }
    hak_map_set(slab->base, slab->units, HAK_MAP_NOTHING);
    hak_pool_give(slab->bitmap, bitmap_bytes(&hak_classes[slab->size_class], slab->is_hardened));
    hak_runs_give(slab);
}

void hak_slab_move(struct hak_run *slab, struct hak_owner *owner, uint32_t tag)
{
    // A thread that finds the owner without a lock must find it initialised: the owner may be newer than the block.
    hak_store_release(&slab->owner, owner); // pairs with: hak_owner_of
    const uint32_t mark = slab->sampled_blocks != 0 ? HAK_MAP_SAMPLED : 0;
    hak_map_set(slab->base, slab->units, tag | slab->size_class | mark);
}

// The first free block at or behind `index`, wrapping around.
static unsigned index_behind(const struct hak_run *slab, unsigned index)
{
    unsigned word = index / 64;
    uint64_t bits = slab->bitmap[word] & ~UINT64_C(0) << (index % 64);
    if (bits == 0) {
        const uint64_t behind = word < 63 ? slab->summary & ~UINT64_C(0) << (word + 1) : 0;
        word = hak_lowest_bit(behind != 0 ? behind : slab->summary);
        bits = slab->bitmap[word];
    }
    return word * 64 + hak_lowest_bit(bits);
}

static unsigned slab_take_random(struct hak_run *slab,
                                 uint64_t chance,
                                 void **slots,
                                 unsigned count)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    unsigned got = 0;
    slab->purged_blocks = 0;
    for (; got < count && slab->free_blocks > 0; got++, slab->free_blocks--) {
        const unsigned from = hak_hook_slab_draw(&chance, info->blocks);
        const unsigned index = index_behind(slab, from);
        slab->bitmap[index / 64] &= ~(UINT64_C(1) << (index % 64));
        if (slab->bitmap[index / 64] == 0) {
            slab->summary &= ~(UINT64_C(1) << (index / 64));
        }
        slots[got] = slab->base + (size_t)index * info->bytes;
    }
    return got;
}

unsigned hak_slab_take(struct hak_run *slab, void **slots, unsigned count)
{
    const uint64_t chance = HAK_UNLIKELY(slab->is_hardened) ? hak_hook_slab_chance() : 0;
    if (HAK_UNLIKELY(chance != 0)) {
        return slab_take_random(slab, chance, slots, count);
    }
    const struct hak_class *info = &hak_classes[slab->size_class];
    const size_t bytes = info->bytes;
    const unsigned used = count < slab->free_blocks ? count : slab->free_blocks;
    const unsigned old_fresh = hak_load_relaxed(&slab->fresh);
    const unsigned fresh_left = (unsigned)info->blocks - old_fresh;
    const unsigned fresh = count - used < fresh_left ? count - used : fresh_left;
    void **slot = slots + used + fresh;
    slab->free_blocks -= used;
    slab->purged_blocks = 0;
    for (unsigned left = used; left > 0;) {
        const unsigned index = hak_lowest_bit(slab->summary);
        uint64_t word = slab->bitmap[index];
        char *first = slab->base + (size_t)index * 64 * bytes;
        do {
            *--slot = first + hak_lowest_bit(word) * bytes;
            word &= word - 1;
        } while (--left > 0 && word != 0);
        slab->bitmap[index] = word;
        if (word == 0) {
            slab->summary &= slab->summary - 1;
        }
    }
    char *block = slab->base + old_fresh * bytes;
    for (unsigned i = 0; i < fresh; i++, block += bytes) {
        *--slot = block;
    }
    hak_store_relaxed(&slab->fresh, (uint16_t)(old_fresh + fresh));
    return used + fresh;
}

void *hak_slab_take_fresh(struct hak_run *slab)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    const unsigned fresh = hak_load_relaxed(&slab->fresh);
    if (fresh == info->blocks) {
        return NULL;
    }
    slab->purged_blocks = 0;
    hak_store_relaxed(&slab->fresh, (uint16_t)(fresh + 1));
    return slab->base + fresh * (size_t)info->bytes;
}

void hak_slab_die_not_live(const void *p)
{
    const size_t bytes = hak_run_ended_bytes(p);
    if (bytes != 0) {
        hak_misuse_double_free(p, bytes);
    }
    if (hak_run_of(p) != NULL) {
        hak_misuse_reused(p);
    }
    hak_misuse_wild_free(p);
}

void hak_slab_die_at(const char *base, size_t bytes, const void *block)
{
    const struct hak_run *slab = hak_run_of(block);
    if (slab == NULL || slab->base != base) {
        hak_slab_die_not_live(block); // it only shares a map entry with a block of ours
    }
    hak_misuse_interior(block, (size_t)((const char *)hak_tag_off(block) - base) % bytes, bytes);
}

static uint32_t slab_index(const struct hak_run *slab, const void *block)
{
    return hak_slab_index(&hak_classes[slab->size_class],
                          slab->base,
                          hak_load_relaxed(&slab->fresh),
                          hak_tag_off(block));
}

// The fields are read into locals first: for all the compiler knows, a store to the bitmap may
// change them.
unsigned hak_slab_put_row(struct hak_run *slab, _Atomic(void *) *blocks, unsigned count)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    const size_t slab_bytes = slab->units * HAK_UNIT_BYTES;
    const char *base = slab->base;
    const uint32_t fresh = hak_load_relaxed(&slab->fresh);
    uint64_t *bitmap = slab->bitmap;
    uint64_t summary = slab->summary;
    void *block = hak_load_relaxed(&blocks[0]);
    unsigned done = 0;
    do {
        const uint32_t index = hak_slab_index(info, base, fresh, block);
        const uint64_t bit = UINT64_C(1) << (index % 64);
        const uint64_t word = bitmap[index / 64];
        if (HAK_UNLIKELY((word & bit) != 0)) {
            hak_misuse_double_free(block, info->bytes);
        }
        bitmap[index / 64] = word | bit;
        summary |= UINT64_C(1) << (index / 64);
        done++;
    } while (done < count && (block = hak_load_relaxed(&blocks[done]),
                              (uintptr_t)block - (uintptr_t)base < slab_bytes));
    slab->summary = summary;
    slab->free_blocks += done;
    return done;
}

uint64_t hak_slab_out(const struct hak_run *slab, unsigned word)
{
    const unsigned first = word * 64;
    const unsigned left = hak_load_relaxed(&slab->fresh) - first;
    const unsigned count = left < 64 ? left : 64;
    const uint64_t out = ~slab->bitmap[word] & hak_bit_range(0, count);
    return HAK_UNLIKELY(slab->is_hardened) ? hak_hook_slab_out(slab, word, out) : out;
}

bool hak_slab_is_out(const struct hak_run *slab, const void *block)
{
    const uint32_t index = slab_index(slab, block);
    return (hak_slab_out(slab, index / 64) >> (index % 64) & 1) != 0;
}

void hak_slab_die_of(const struct hak_run *slab, const void *block)
{
    slab_index(slab, block); // ends the program if it is no block
    hak_misuse_double_free(block, hak_classes[slab->size_class].bytes);
}

// Are all blocks from index `first` to `last` in the slab (or never handed out)?
static bool slab_has_all(const struct hak_run *slab, unsigned first, unsigned last)
{
    const unsigned fresh = hak_load_relaxed(&slab->fresh);
    const unsigned end = last < fresh ? last + 1 : fresh;
    while (first < end) {
        const unsigned left = 64 - first % 64;
        const unsigned count = end - first < left ? end - first : left;
        const uint64_t bits = hak_bit_range(first % 64, count);
        if ((slab->bitmap[first / 64] & bits) != bits) {
            return false;
        }
        first += count;
    }
    return true;
}

// Should the slab's page at `start` be purged? Not if it was, and no block was taken since. If so, notes it as purged.
static bool slab_page_goes(const struct hak_run *slab, uint16_t *chunks, size_t start, size_t page)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    const unsigned unit = (unsigned)(start / HAK_UNIT_BYTES);
    const unsigned chunk = (unsigned)(start % HAK_UNIT_BYTES / HAK_CHUNK_BYTES);
    const uint16_t bits = (uint16_t)hak_bit_range(chunk, (unsigned)(page / HAK_CHUNK_BYTES));
    if ((chunks[unit] & bits) != 0 || !slab_has_all(slab,
                                                    hak_size_class_index(info, start),
                                                    hak_size_class_index(info, start + page - 1))) {
        return false;
    }
    chunks[unit] |= bits;
    return true;
}

size_t hak_slab_purged_bytes(const struct hak_run *slab)
{
    const struct hak_super *super = hak_map_super(slab->base);
    const unsigned first = (unsigned)(slab - super->slabs);
    return hak_super_purged_bytes(super, hak_bit_range(first, slab->units));
}

void hak_slab_purge(struct hak_run *slab, struct hak_ranges *ranges)
{
    const size_t bytes = hak_classes[slab->size_class].bytes;
    const size_t page = hak_os_page_bytes();
    const size_t touched = slab->has_old_pages
                               ? slab->units * (size_t)HAK_UNIT_BYTES
                               : hak_align_up(hak_load_relaxed(&slab->fresh) * bytes, page);
    struct hak_super *super = hak_map_super(slab->base);
    uint16_t *chunks = hak_super_place(super)->purged_chunks + (slab - super->slabs);
    if (!hak_slab_wants_purge(slab)) {
        return;
    }
    if (slab->purged_blocks == 0) {
        memset(chunks, 0, slab->units * sizeof *chunks);
    }
    slab->purged_blocks = (uint16_t)slab->free_blocks;
    slab->has_old_pages = false;
    if (HAK_UNLIKELY(slab->is_hardened)) {
        hak_hook_slab_purged(slab);
    }
    for (size_t start = 0; start < touched;) {
        size_t end = start;
        while (end < touched && slab_page_goes(slab, chunks, end, page)) {
            end += page;
        }
        if (end > start) {
            hak_ranges_add(ranges, slab->base + start, end - start);
        }
        start = end + page;
    }
}

void hak_slab_verify(const struct hak_run *slab)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    unsigned bits = 0;
    for (size_t w = 0; w < bitmap_words(info); w++) {
        bits += hak_count_bits(slab->bitmap[w]);
        HAK_ASSERT(((slab->summary >> w) & 1) == (slab->bitmap[w] != 0));
    }
    HAK_ASSERT(slab->free_blocks == bits);
    for (unsigned index = hak_load_relaxed(&slab->fresh); index < info->blocks; index++) {
        HAK_ASSERT((slab->bitmap[index / 64] & (UINT64_C(1) << (index % 64))) == 0);
    }
    (void)bits;
}
