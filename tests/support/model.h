// model.h -- a block and the content that it must have.
//
// Every slot's bytes are derived from the slot's own number. A block that overlaps
// another, is handed out twice, or is written to after its free changes a byte
// that a later check reads. Large blocks are marked at both ends and once in
// each page, so that marking them does not take most of a test's time.
#ifndef HAK_TESTS_SUPPORT_MODEL_H
#define HAK_TESTS_SUPPORT_MODEL_H

#include "promise.h"
#include "random.h"

enum { HT_FULL_BYTES = 1024, HT_END_BYTES = 64, HT_MARK_EVERY = 4096 };

struct ht_slot {
    unsigned char *bytes; // NULL when the slot is empty
    size_t size;
    unsigned char tag;
};

// 0, 7, 14 … modulo 256, again and again: the marked bytes of any block are a part of it, which starts where the block's tag says.
#define HT_BYTES_4(n)                                                                      \
    (unsigned char)(7 * (n)), (unsigned char)(7 * (n) + 7), (unsigned char)(7 * (n) + 14), \
        (unsigned char)(7 * (n) + 21)
#define HT_BYTES_16(n) HT_BYTES_4(n), HT_BYTES_4((n) + 4), HT_BYTES_4((n) + 8), HT_BYTES_4((n) + 12)
#define HT_BYTES_64(n) \
    HT_BYTES_16(n), HT_BYTES_16((n) + 16), HT_BYTES_16((n) + 32), HT_BYTES_16((n) + 48)
#define HT_BYTES_256 HT_BYTES_64(0), HT_BYTES_64(64), HT_BYTES_64(128), HT_BYTES_64(192)
static const unsigned char ht_sequence[256 + HT_FULL_BYTES] = {
    HT_BYTES_256, HT_BYTES_256, HT_BYTES_256, HT_BYTES_256, HT_BYTES_256};

// A block's bytes from offset `i` on: tag + 7 i. (7 * 183 is 1 modulo 256.)
static inline const unsigned char *ht_slot_bytes(const struct ht_slot *slot, size_t i)
{
    return ht_sequence + (slot->tag * 183U + i) % 256;
}

// The next offset that is marked, from `i` on, in a block of `size` bytes.
static inline size_t ht_next_mark(size_t i, size_t size)
{
    if (i < HT_FULL_BYTES || i + HT_END_BYTES >= size) {
        return i;
    }
    size_t mark = (i + HT_MARK_EVERY - 1) / HT_MARK_EVERY * HT_MARK_EVERY;
    return mark + HT_END_BYTES >= size ? size - HT_END_BYTES : mark;
}

// The end of the marked bytes that start at `i`.
static inline size_t ht_marks_end(size_t i, size_t size)
{
    if (i < HT_FULL_BYTES) {
        return size < HT_FULL_BYTES ? size : HT_FULL_BYTES;
    }
    return i + HT_END_BYTES >= size ? size : i + 1;
}

static inline void ht_slot_fill(struct ht_slot *slot)
{
    for (size_t i = 0, end; i < slot->size; i = ht_next_mark(end, slot->size)) {
        end = ht_marks_end(i, slot->size);
        memcpy(slot->bytes + i, ht_slot_bytes(slot, i), end - i);
    }
}

// One of the bytes from `i` to `end` has changed.
_Noreturn static inline void ht_slot_broken(const struct ht_slot *slot,
                                            size_t i,
                                            size_t end,
                                            const char *when)
{
    while (i + 1 < end && slot->bytes[i] == *ht_slot_bytes(slot, i)) {
        i++;
    }
    HT_BREAK("%s: byte %zu of %zu at %p is %02x, was %02x",
             when,
             i,
             slot->size,
             (void *)slot->bytes,
             slot->bytes[i],
             *ht_slot_bytes(slot, i));
}

// The first `kept` bytes of a block must still be what its `slot->size` bytes were marked with.
static inline void ht_slot_check(const struct ht_slot *slot, size_t kept, const char *when)
{
    for (size_t i = 0, end; i < kept; i = ht_next_mark(end, slot->size)) {
        end = ht_marks_end(i, slot->size);
        end = end < kept ? end : kept;
        if (memcmp(slot->bytes + i, ht_slot_bytes(slot, i), end - i) != 0) {
            ht_slot_broken(slot, i, end, when);
        }
    }
}

// Put a fresh block into the slot.
static inline void ht_slot_take(
    struct ht_slot *slot, void *block, size_t size, size_t alignment, uint64_t tag)
{
    HT_CHECK(block != NULL, "no block of %zu, alignment %zu", size, alignment);
    HT_CHECK((uintptr_t)block % alignment == 0, "%p is not aligned to %zu", block, alignment);
    HT_CHECK(malloc_usable_size(block) >= size,
             "block of %zu: %zu usable",
             size,
             malloc_usable_size(block));
    slot->bytes = block;
    slot->size = size;
    slot->tag = (unsigned char)tag;
    ht_slot_fill(slot);
}

static inline void ht_slot_free(struct ht_slot *slot)
{
    if (slot->bytes != NULL) {
        ht_slot_check(slot, slot->size, "before free");
        free(slot->bytes);
        slot->bytes = NULL;
    }
}

static inline void ht_slot_resize(struct ht_slot *slot, size_t size)
{
    unsigned char *block = realloc(slot->bytes, size);
    HT_CHECK(block != NULL, "realloc from %zu to %zu failed", slot->size, size);
    struct ht_slot moved = *slot;
    moved.bytes = block;
    ht_slot_check(&moved, size < slot->size ? size : slot->size, "after realloc");
    ht_slot_take(slot, block, size, _Alignof(max_align_t), slot->tag);
}

static inline void ht_check_zero(const unsigned char *block, size_t size)
{
    for (size_t i = 0, end; i < size; i = ht_next_mark(end, size)) {
        end = ht_marks_end(i, size);
        const size_t other = ht_first_other(block + i, end - i, 0);
        HT_CHECK(
            other == end - i, "calloc of %zu: byte %zu is %02x", size, i + other, block[i + other]);
    }
}

// One random operation on a slot: fill it if it is empty, else check it and free or resize it.
static inline void ht_slot_step(struct ht_slot *slot, struct ht_random *random, size_t largest)
{
    size_t size = 1 + ht_random_size(random, largest);
    uint64_t tag = ht_random_next(random);
    unsigned dice = (unsigned)ht_random_below(random, 16);
    if (slot->bytes != NULL) {
        if (dice < 4) {
            ht_slot_check(slot, slot->size, "before realloc");
            ht_slot_resize(slot, size);
        } else {
            ht_slot_free(slot);
        }
        return;
    }
    if (dice < 10) {
        ht_slot_take(slot, malloc(size), size, _Alignof(max_align_t), tag);
    } else if (dice < 13) {
        unsigned char *zeros = calloc(1, size);
        HT_CHECK(zeros != NULL, "calloc(1, %zu) failed", size);
        ht_check_zero(zeros, size);
        ht_slot_take(slot, zeros, size, _Alignof(max_align_t), tag);
    } else {
        size_t alignment = (size_t)16 << ht_random_below(random, dice == 15 ? 15 : 9);
        ht_slot_take(slot, aligned_alloc(alignment, size), size, alignment, tag);
    }
}

#endif
