// states.h -- the state of each block of a hardened slab: free, in use, or changing.
//
// Owns      a byte for each block of a hardened slab, behind the slab's bitmap.
// Threads   a block's byte is written by the thread that has the block in hand, without a lock: the one that
//           frees it, then the one that works on the quarantine or the stock where it lies. Any thread with
//           the lock of the slab's owner reads it.
// Fails     misuse dies with a line.
//
// The bitmap tells which blocks lie in the slab, and changes with the owner's lock. The bytes tell which of the
// other blocks are in use, so that a free is checked at once and without a lock. If two threads free one block
// at the same moment, or one frees and one resizes it, one of them claims the block and the other dies.
//
// The lower two bits of a byte are the state; above them is a number that goes up with each change. A thread
// that reads a block while it may change (hak_states_check) reads the byte before and after, and believes what
// it read only if the two are equal. With tags (harden.h) the upper four bits are the tag that the block has, or
// had last, and the number has the bits between.
#pragma once

#include "base/atomic.h"
#include "meta/size_class.h"
#include "secure/canary.h"
#include "slab/descriptor.h"

enum hak_state_kind {
    HAK_STATE_FREE = 0, // in its slab, in quarantine, or in a stock
    HAK_STATE_OUT = 1,  // with the program
    HAK_STATE_BUSY = 3, // changing: its bytes are neither a free block's nor those of one in use
    HAK_STATE_KINDS = 4
};
typedef _Atomic(uint8_t) hak_state;

HAK_INLINE unsigned hak_state_kind(uint8_t state)
{
    return state % HAK_STATE_KINDS;
}

HAK_INLINE bool hak_state_is(const hak_state *state, enum hak_state_kind kind)
{
    return hak_state_kind(hak_load_relaxed(state)) == kind;
}

// Mark a free block in hand, whose state was `seen`, as changing. Returns what hak_state_end needs. Step begin of states.pml.
HAK_INLINE uint8_t hak_state_begin(hak_state *state, uint8_t seen)
{
    const uint8_t busy = seen | HAK_STATE_BUSY;
    hak_store_relaxed(state, busy);
    hak_fence_stores();
    return busy;
}

// The same for a block in use, which another thread may free at the same moment. False if that thread came first.
HAK_INLINE bool hak_state_claim(hak_state *state, uint8_t *busy)
{
    uint8_t seen = hak_load_relaxed(state);
    *busy = seen | HAK_STATE_BUSY;
    const bool is_ours =
        hak_state_kind(seen) == HAK_STATE_OUT && hak_cas_relaxed(state, &seen, *busy);
    hak_fence_stores();
    return is_ours;
}

#define HAK_STATE_TAG_SHIFT 4U
#define HAK_STATE_TAG_MASK  0xF0U

// The bytes are now what a block of that kind has to hold. Step end of states.pml.
HAK_INLINE void hak_state_end(hak_state *state, uint8_t busy, enum hak_state_kind kind)
{
    uint8_t next = (uint8_t)(busy + 1 + kind);
    if (hak_harden_has_tags()) {
        next = (uint8_t)((next & ~HAK_STATE_TAG_MASK) | (busy & HAK_STATE_TAG_MASK));
    }
    hak_store_release(state, next); // pairs with: state_before
}

// Does the slab have states? All slabs have that are made after the options are known, if these check each block.
HAK_INLINE bool hak_states_exist(const struct hak_run *slab)
{
    return slab->is_hardened && hak_harden.sees_all;
}

HAK_INLINE hak_state *hak_states_of(const struct hak_run *slab)
{
    const size_t words = (hak_classes[slab->size_class].blocks + 63U) / 64;
    return (hak_state *)(void *)(slab->bitmap + words);
}

// A block that is out of its slab, and its state.
struct hak_held {
    char *block; // plain
    hak_state *state;
};

// The pointer by which the program knows a block in use.
HAK_INLINE char *hak_states_tagged(struct hak_held held)
{
    return hak_harden_has_tags()
               ? hak_tag_on(held.block, hak_load_relaxed(held.state) >> HAK_STATE_TAG_SHIFT)
               : held.block;
}

// Is `held->block`, the program's pointer, a block in use of this slab and class, with the block's present tag? Then makes it
// plain, and sets `held->state`.
HAK_INLINE bool hak_states_is_used(const struct hak_run *slab,
                                   unsigned size_class,
                                   struct hak_held *held)
{
    const struct hak_class *info = &hak_classes[size_class];
    const char *block = held->block;
    held->block = hak_tag_off(block);
    const size_t offset = (size_t)(held->block - slab->base);
    const uint32_t index = hak_size_class_index(info, offset);
    held->state = (hak_state *)(void *)(slab->bitmap + (info->blocks + 63U) / 64) + index;
    return HAK_LIKELY(offset == (size_t)index * info->bytes && index < info->blocks &&
                      hak_state_is(held->state, HAK_STATE_OUT) &&
                      hak_states_tagged(*held) == block);
}

// End the program with a line. They are not _Noreturn, so that the compiler makes each a jump as the last call of its
// caller, which then needs no stack frame.
HAK_INTERNAL HAK_COLD void *hak_states_die_twice(const void *block, size_t bytes);
HAK_INTERNAL HAK_COLD void *hak_states_die_written(const char *block, size_t bytes);
HAK_INTERNAL HAK_COLD void hak_states_die_overflow(const char *block, size_t bytes);

// Give a random tag, but not its last one, to a block that the program gets. Blocks with an even number have even tags and the
// others odd ones, so neighbours differ even if two threads take them at the same moment. None has 0, the tag of free blocks.
HAK_INLINE uint8_t hak_states_tag(struct hak_held held, size_t bytes, uint8_t busy)
{
    const uint64_t of_neighbours = (uintptr_t)held.state % 2 == 0 ? 0xAAAA : 0x5555;
    const unsigned tag =
        hak_tag_draw(of_neighbours | 1 | UINT64_C(1) << (busy >> HAK_STATE_TAG_SHIFT));
    hak_tag_put(hak_tag_on(held.block, tag), bytes);
    return (uint8_t)((busy & ~HAK_STATE_TAG_MASK) | tag << HAK_STATE_TAG_SHIFT);
}

// Give a free block to the program for a request. Dies if it was written to since it was freed, or is in use already.
HAK_INLINE void *hak_states_take(struct hak_held held,
                                 size_t bytes,
                                 size_t request,
                                 struct hak_checks checks)
{
    const uint8_t seen = hak_load_relaxed(held.state);
    if (HAK_UNLIKELY(hak_state_kind(seen) != HAK_STATE_FREE)) {
        return hak_states_die_twice(held.block, bytes);
    }
    uint8_t busy = hak_state_begin(held.state, seen);
    char *block = held.block;
    if (checks.zero && HAK_UNLIKELY(!hak_canary_is_zero(block, bytes))) {
        return hak_states_die_written(block, bytes);
    }
    if (hak_harden_has_tags()) {
        busy = hak_states_tag(held, bytes, busy);
        block = hak_tag_on(block, busy >> HAK_STATE_TAG_SHIFT);
    }
    if (checks.canaries) {
        hak_canary_write(block, bytes, request);
    }
    hak_state_end(held.state, busy, HAK_STATE_OUT);
    return block;
}

// Take back a block that the program frees. Dies if another thread frees it, too, or if its end was overwritten; else true.
HAK_INLINE bool hak_states_give(struct hak_held held, size_t bytes, struct hak_checks checks)
{
    uint8_t busy = 0;
    if (HAK_UNLIKELY(!hak_state_claim(held.state, &busy))) {
        hak_states_die_twice(held.block, bytes);
        return false;
    }
    char *block = hak_states_tagged(held);
    if (checks.canaries && HAK_UNLIKELY(!hak_canary_is_whole(block, bytes))) {
        hak_states_die_overflow(block, bytes);
        return false;
    }
    if (hak_harden_has_tags()) {
        hak_tag_put(held.block, bytes); // first: so nobody writes there after it is cleared
    }
    if (checks.zero) {
        hak_canary_clear(held.block, bytes);
    }
    hak_state_end(held.state, busy, HAK_STATE_FREE);
    return true;
}

// Note another request for a block that stays in use. False when the block is too small for it.
HAK_INLINE bool hak_states_resize(struct hak_held held, size_t bytes, size_t request)
{
    uint8_t busy = 0;
    if (HAK_UNLIKELY(!hak_state_claim(held.state, &busy))) {
        hak_states_die_twice(held.block, bytes);
        return false;
    }
    const bool has_room = hak_canary_resize(hak_states_tagged(held), bytes, request);
    hak_state_end(held.state, busy, HAK_STATE_OUT);
    return has_room;
}

// Which of the 64 blocks of this word of the slab's bitmap are in use. With the lock.
HAK_INTERNAL uint64_t hak_states_out(const struct hak_run *slab, unsigned word);
// Check all blocks, and die if one is damaged. With the lock; blocks may change meanwhile. True when all are free and known to be
// zeros.
HAK_INTERNAL bool hak_states_check(const struct hak_run *slab);

// The slab ends: remove the tags of blocks still in use, as those of a destroyed heap are. With the lock.
HAK_INLINE void hak_states_untag(const struct hak_run *slab)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    const hak_state *states = hak_states_of(slab);
    for (size_t index = 0; index < info->blocks; index++) {
        if (hak_state_is(&states[index], HAK_STATE_OUT)) {
            hak_tag_put(slab->base + index * info->bytes, info->bytes);
        }
    }
}
