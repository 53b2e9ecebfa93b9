// live.h -- knows which bytes are in live blocks: exactly, for any number of threads.
//
// A bit for each 16 bytes of the address space is set right after the allocation and cleared right before the free. An allocator
// that hands out memory that is in use is caught at once, whatever the content. There is no lock, as one atomic operation sets or
// clears each bit; and no memory comes from malloc: a leaf of bits is a mapping, made when its GiB is first used. A forked child
// has a copy that fits its copy of the heap, whenever the copy was made, as a bit is set only while its block is live.
#ifndef HAK_TESTS_SUPPORT_LIVE_H
#define HAK_TESTS_SUPPORT_LIVE_H

#include "api.h"

#include "model.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum {
    HT_LARGEST = 400000, // of most blocks' sizes
    HT_GRAIN_BITS = 4,
    HT_LEAF_BITS = 30,                    // of the addresses that a leaf covers
    HT_LEAVES = 1 << (48 - HT_LEAF_BITS), // user space with 4 levels of page tables
    HT_WORD_BITS = 6,                     // grains in a word
    HT_LEAF_WORDS = 1 << (HT_LEAF_BITS - HT_GRAIN_BITS - HT_WORD_BITS),
};

static _Atomic(_Atomic(uint64_t) *) ht_leaves[HT_LEAVES];
static _Atomic(size_t) ht_live_grains;

// A test that makes system calls fail sets this; then a request may be refused.
static atomic_bool ht_may_be_refused;
static _Atomic(size_t) ht_refusals;

static inline _Atomic(uint64_t) *ht_leaf(size_t number)
{
    const size_t bytes = HT_LEAF_WORDS * sizeof(uint64_t);
    HT_CHECK(number < HT_LEAVES, "a block beyond the addresses of user space");
    _Atomic(uint64_t) *leaf = atomic_load(&ht_leaves[number]);
    if (leaf != NULL) {
        return leaf;
    }
    _Atomic(uint64_t) *made;
    do {
        made = mmap(NULL,
                    bytes,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1,
                    0);
    } while ((void *)made == MAP_FAILED && atomic_load(&ht_may_be_refused));
    HT_CHECK((void *)made != MAP_FAILED, "no memory for the table of live blocks");
    if (atomic_compare_exchange_strong(&ht_leaves[number], &leaf, made)) {
        return made;
    }
    munmap((void *)made, bytes);
    return leaf;
}

// Set or clear the bits of a block; fail if one of them is so already.
static inline void ht_live_mark(const void *block, size_t bytes, bool is_live)
{
    const uintptr_t address = (uintptr_t)block & (((uintptr_t)1 << 56) - 1); // without a tag
    size_t grain = address >> HT_GRAIN_BITS;
    const size_t end = (address + (bytes == 0 ? 1 : bytes) - 1) / (1 << HT_GRAIN_BITS) + 1;
    atomic_fetch_add(&ht_live_grains, is_live ? end - grain : grain - end);
    while (grain < end) {
        const unsigned first = grain % 64;
        const size_t count = end - grain < 64 - first ? end - grain : 64 - first;
        const uint64_t mask = (count == 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << first;
        const size_t word = grain >> HT_WORD_BITS;
        _Atomic(uint64_t) *bits = ht_leaf(word / HT_LEAF_WORDS) + word % HT_LEAF_WORDS;
        const uint64_t before =
            is_live ? atomic_fetch_or(bits, mask) : atomic_fetch_and(bits, ~mask);
        HT_CHECK((before & mask) == (is_live ? 0 : mask),
                 "the block of %zu bytes at %p %s",
                 bytes,
                 block,
                 is_live ? "overlaps a live one" : "was not live any more");
        grain += count;
    }
}

// ---- blocks that are marked so ----

static __typeof__(hak_free_sized) *api_hak_free_sized;
static __typeof__(hak_free_aligned_sized) *api_hak_free_aligned_sized;

// A block, and how it was requested.
struct ht_block {
    struct ht_slot slot;
    size_t alignment; // 0: from a function without one
    size_t live;      // bytes marked in the table
    atomic_int *owed; // of the block's heap: how many of its blocks other threads have
};

static inline bool ht_is_refused(const void *got)
{
    const bool is_refused = got == NULL && atomic_load(&ht_may_be_refused);
    HT_CHECK(!is_refused || errno == ENOMEM, "refused with errno %d", errno);
    atomic_fetch_add(&ht_refusals, is_refused);
    return is_refused;
}

static inline void ht_block_hold(
    struct ht_block *block, void *got, size_t size, size_t alignment, uint64_t tag)
{
    if (ht_is_refused(got)) {
        return;
    }
    HT_CHECK(got != NULL, "no block of %zu, alignment %zu: errno %d", size, alignment, errno);
    block->live = malloc_usable_size(got);
    HT_CHECK(block->live >= size, "block of %zu: %zu usable", size, block->live);
    ht_live_mark(got, block->live, true);
    block->alignment = alignment;
    ht_slot_take(&block->slot, got, size, alignment > 16 ? alignment : 16, tag);
}

static inline size_t ht_block_size(struct ht_random *random)
{
    switch (ht_random_below(random, 1000)) {
    case 0:
        return ht_random_size(random, 40 * HT_LARGEST); // now and then it has a mapping of its own
    case 1:
        return 0;
    default:
        return ht_random_size(random, ht_random_below(random, 2) == 0 ? 1024 : HT_LARGEST);
    }
}

static inline void ht_block_take_zeros(struct ht_block *block,
                                       void *zeros,
                                       size_t size,
                                       uint64_t tag)
{
    if (zeros != NULL) {
        ht_check_zero(zeros, size);
    }
    ht_block_hold(block, zeros, size, 0, tag);
}

static inline void ht_block_take(struct ht_block *block, struct ht_random *random)
{
    const size_t size = ht_block_size(random);
    const uint64_t tag = ht_random_next(random);
    const size_t alignment = (size_t)8 << ht_random_below(random, 3 + ht_random_below(random, 14));
    void *got = NULL;
    switch (ht_random_below(random, 8)) {
    case 0:
        ht_block_take_zeros(block, calloc(1, size), size, tag);
        break;
    case 1: // in elements of 8 bytes
        ht_block_take_zeros(block, calloc(size / 8, 8), size / 8 * 8, tag);
        break;
    case 2:
        ht_block_hold(block, aligned_alloc(alignment, size), size, alignment, tag);
        break;
    case 3: {
        const int error = posix_memalign(&got, alignment, size);
        errno = error;
        HT_CHECK(error == 0 || error == ENOMEM,
                 "posix_memalign(%zu, %zu): error %d",
                 alignment,
                 size,
                 error);
        ht_block_hold(block, got, size, alignment, tag);
        break;
    }
    case 4:
        ht_block_hold(block, reallocarray(NULL, size, 1), size, 0, tag);
        break;
    default:
        ht_block_hold(block, malloc(size), size, 0, tag);
        break;
    }
}

static inline void ht_block_drop(struct ht_block *block, struct ht_random *random)
{
    const size_t how = ht_random_below(random, 4);
    void *bytes = block->slot.bytes;
    if (bytes == NULL) {
        return;
    }
    ht_slot_check(&block->slot, block->slot.size, "before free");
    ht_live_mark(bytes, block->live, false);
    block->slot.bytes = NULL;
    if (how == 0 && block->alignment == 0) {
        api_hak_free_sized(bytes, block->slot.size);
    } else if (how == 0) {
        api_hak_free_aligned_sized(bytes, block->alignment, block->slot.size);
    } else {
        free(bytes);
    }
    if (block->owed != NULL) {
        atomic_fetch_sub(block->owed, 1);
        block->owed = NULL;
    }
}

static inline void ht_block_resize_to(struct ht_block *block, size_t size)
{
    const struct ht_slot before = block->slot;
    if (before.bytes == NULL) {
        return;
    }
    ht_slot_check(&before, before.size, "before realloc");
    ht_live_mark(before.bytes, block->live, false);
    struct ht_slot moved = before;
    moved.bytes = realloc(before.bytes, size);
    if (ht_is_refused(moved.bytes)) {
        ht_live_mark(before.bytes, block->live, true);
        ht_slot_check(&before, before.size, "after a refused realloc");
        return;
    }
    HT_CHECK(moved.bytes != NULL, "realloc from %zu to %zu failed", before.size, size);
    ht_slot_check(&moved, size < before.size ? size : before.size, "after realloc");
    ht_block_hold(block, moved.bytes, size, 0, before.tag);
}

static inline void ht_block_resize(struct ht_block *block, struct ht_random *random)
{
    ht_block_resize_to(block, 1 + ht_block_size(random));
}

#endif
