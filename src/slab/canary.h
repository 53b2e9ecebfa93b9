// canary.h -- what is written behind a block, and how it is looked at. Of this every free and malloc is made.
//
// Layer     slab
// Threads   any, for a block that nobody else has.
// Fails     never; what is found is told by harden.h.
//
// harden.h shows where all lies. Of a long padding two words are written: an overflow by a byte, by a word, or
// by a few is what is worth its time.
#ifndef HAK_SLAB_CANARY_H
#define HAK_SLAB_CANARY_H

#include <string.h>

#include "slab/harden.h"

enum { HAK_CANARY_PADDING_SHIFT = 48 }; // where the canary tells how long the padding is

HAK_INLINE uint64_t hak_canary_word(const char *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

HAK_INLINE void hak_canary_put_word(char *to, uint64_t word)
{
    memcpy(to, &word, sizeof word);
}

HAK_INLINE uint64_t hak_canary_of(const char *block)
{
    return hak_harden_mix((uintptr_t)block) | 0x80;
}

// A word of padding: all its bytes are the same.
HAK_INLINE uint64_t hak_canary_padding_word(uint64_t canary)
{
    return (canary >> 56 | 0x80) * UINT64_C(0x0101010101010101);
}

// The padding by words: what these cover of the canary is written after them.
HAK_INLINE void hak_canary_write(char *block, size_t block_bytes, size_t request)
{
    const uint64_t canary = hak_canary_of(block);
    const uint64_t word = hak_canary_padding_word(canary);
    const size_t padding = block_bytes - HAK_CANARY_BYTES - request;
    hak_canary_put_word(block + request, word);
    if (padding > sizeof word) {
        hak_canary_put_word(block + request + sizeof word, word);
    }
    hak_canary_put_word(block + block_bytes - HAK_CANARY_BYTES,
                        canary ^ (uint64_t)padding << HAK_CANARY_PADDING_SHIFT);
}

// How long the padding is; SIZE_MAX when the canary is damaged.
HAK_INLINE size_t hak_canary_padding(const char *block, size_t block_bytes, uint64_t canary)
{
    const uint64_t difference = hak_canary_word(block + block_bytes - HAK_CANARY_BYTES) ^ canary;
    const size_t padding = difference >> HAK_CANARY_PADDING_SHIFT;
    const bool is_whole = difference << (64 - HAK_CANARY_PADDING_SHIFT) == 0;
    return is_whole && padding <= block_bytes - HAK_CANARY_BYTES ? padding : SIZE_MAX;
}

// Do the first `bytes` of a word, at most all of them, differ from `expected`?
HAK_INLINE bool hak_canary_differs(const char *word, uint64_t expected, size_t bytes)
{
    const uint64_t difference = hak_canary_word(word) ^ expected;
    const unsigned unasked = bytes < sizeof expected ? 8 * (unsigned)(sizeof expected - bytes) : 0;
    return difference << unasked != 0;
}

// Is the end of a block in use as it was written?
HAK_INLINE bool hak_canary_is_whole(const char *block, size_t block_bytes)
{
    const uint64_t canary = hak_canary_of(block);
    const size_t padding = hak_canary_padding(block, block_bytes, canary);
    if (HAK_UNLIKELY(padding == SIZE_MAX)) {
        return false;
    }
    const char *end = block + block_bytes - HAK_CANARY_BYTES - padding;
    const uint64_t word = hak_canary_padding_word(canary);
    return (padding == 0 || !hak_canary_differs(end, word, padding)) &&
           (padding <= sizeof word ||
            !hak_canary_differs(end + sizeof word, word, padding - sizeof word));
}

HAK_INLINE hak_pair hak_canary_pair(const char *from)
{
    hak_pair pair;
    memcpy(&pair, from, sizeof pair);
    return pair;
}

// Are they all zero? A multiple of 16, as blocks are. By lines of the processor's cache, and what is left.
HAK_INLINE bool hak_canary_is_zero(const char *start, size_t bytes)
{
    const char *end = start + bytes;
    hak_pair any = {0, 0};
    for (; end - start >= 4 * (ptrdiff_t)sizeof any; start += 4 * sizeof any) {
        any |= (hak_canary_pair(start) | hak_canary_pair(start + sizeof any)) |
               (hak_canary_pair(start + 2 * sizeof any) | hak_canary_pair(start + 3 * sizeof any));
    }
    for (; start != end; start += sizeof any) {
        any |= hak_canary_pair(start);
    }
    return (any[0] | any[1]) == 0;
}

// Make them so. Below a few lines of the processor's cache a loop is faster than a call.
enum { HAK_CANARY_CLEAR_MAX = 256 };
HAK_INLINE void hak_canary_clear(char *start, size_t bytes)
{
    if (bytes > HAK_CANARY_CLEAR_MAX) {
        memset(start, 0, bytes);
        return;
    }
    for (const char *end = start + bytes; start != end; start += 2 * sizeof(uint64_t)) {
        memset(start, 0, 2 * sizeof(uint64_t));
        HAK_KEEP_LOOP();
    }
}

#endif
