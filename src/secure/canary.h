// canary.h -- what is written behind a block, and how it is looked at. Of this every free and malloc is made.
//
// Layer     secure
// Threads   any, for a block that nobody else has.
// Fails     what is found ends the program with a line.
//
// harden.h shows where all lies. Of a long padding two words are written, the first and the last: an overflow by a
// byte, by a word, or by a few is what is worth its time. No branch asks how long the padding is: no processor
// could foresee that.
#pragma once

#include <string.h>

#include "secure/harden.h"

enum {
    HAK_CANARY_PADDING_BITS = 16
}; // of the canary, the upper ones: they tell how long the padding is

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
    return hak_harden_mix((uintptr_t)hak_tag_off(block)) | 0x80;
}

// A word of padding: all its bytes are the same, the canary's first.
HAK_INLINE uint64_t hak_canary_padding_word(uint64_t canary)
{
    return (canary & 0xFF) * UINT64_C(0x0101010101010101);
}

// Which bits of the word before the canary lie in a padding of so many bytes, a word standing for more.
HAK_INTERNAL extern const uint64_t hak_canary_masks[sizeof(uint64_t) + 1];

// What the first word of a short padding covers of the canary is written after it.
HAK_INLINE void hak_canary_write(char *block, size_t block_bytes, size_t request)
{
    const uint64_t canary = hak_canary_of(block);
    const uint64_t word = hak_canary_padding_word(canary);
    const size_t padding = block_bytes - HAK_CANARY_BYTES - request;
    char *first = block + request;
    char *last = block + block_bytes - HAK_CANARY_BYTES - sizeof word;
    hak_canary_put_word(first, word);
    hak_canary_put_word(first > last ? first : last, word);
    hak_canary_put_word(last + sizeof word,
                        canary ^ (uint64_t)padding << (64 - HAK_CANARY_PADDING_BITS));
}

// How long the padding is. When the canary is damaged, more than a block has: turned, all its other bits count.
HAK_INLINE size_t hak_canary_padding_bytes(const char *block, size_t block_bytes, uint64_t canary)
{
    const uint64_t difference = hak_canary_word(block + block_bytes - HAK_CANARY_BYTES) ^ canary;
    return difference << HAK_CANARY_PADDING_BITS | difference >> (64 - HAK_CANARY_PADDING_BITS);
}

// Is the end of a block in use as it was written?
HAK_INLINE bool hak_canary_is_whole(const char *block, size_t block_bytes)
{
    const uint64_t canary = hak_canary_of(block);
    const size_t padding = hak_canary_padding_bytes(block, block_bytes, canary);
    if (HAK_UNLIKELY(padding > block_bytes - HAK_CANARY_BYTES)) {
        return false;
    }
    const uint64_t word = hak_canary_padding_word(canary);
    const size_t known = padding < sizeof word ? padding : sizeof word;
    const char *last = block + block_bytes - HAK_CANARY_BYTES - sizeof word;
    const char *first = last + (known - padding); // the same, in a short one
    const uint64_t difference = (hak_canary_word(first) ^ word) | (hak_canary_word(last) ^ word);
    return (difference & hak_canary_masks[known]) == 0;
}

// Blocks are as aligned as a pair is: so a load is part of the instruction that makes use of it.
HAK_INLINE hak_pair hak_canary_pair(const char *from)
{
    hak_pair pair;
    memcpy(&pair, HAK_ASSUME_ALIGNED(from, sizeof pair), sizeof pair);
    return pair;
}

HAK_INLINE void hak_canary_clear_pair(char *to)
{
    const hak_pair zero = {0, 0};
    memcpy(HAK_ASSUME_ALIGNED(to, sizeof zero), &zero, sizeof zero);
}

// A block of less than a line, a multiple of 16, is covered by its first pair, its last, and the one here.
enum { HAK_CANARY_LINE = 64 };
HAK_INLINE size_t hak_canary_middle(size_t bytes)
{
    return bytes / 2 & ~(sizeof(hak_pair) - 1);
}

// A longer one by a few lines at its start and as many at its end, which may be the same: few lengths, each without
// a loop; and by as many as this, again and again. For how often a loop runs no processor could foresee.
enum { HAK_CANARY_LINES = 4 * HAK_CANARY_LINE };

// All of `bytes`, some lines, as one.
HAK_INLINE hak_vector hak_canary_any(const char *from, size_t bytes)
{
    hak_vector any = {0};
    HAK_IN_A_ROW
    for (size_t i = 0; i < bytes; i += sizeof any) {
        hak_vector vector;
        memcpy(&vector, HAK_ASSUME_ALIGNED(from + i, sizeof(hak_pair)), sizeof vector);
        any |= vector;
    }
    return any;
}

HAK_INLINE hak_vector hak_canary_any_ends(const char *start, const char *end, size_t bytes)
{
    return hak_canary_any(start, bytes) | hak_canary_any(end - bytes, bytes);
}

// Are they all zero? A multiple of 16, as blocks are.
HAK_INLINE bool hak_canary_is_zero(const char *start, size_t bytes)
{
    const char *end = start + bytes;
    if (bytes < HAK_CANARY_LINE) {
        const hak_pair any = hak_canary_pair(start) |
                             hak_canary_pair(start + hak_canary_middle(bytes)) |
                             hak_canary_pair(end - sizeof any);
        return (any[0] | any[1]) == 0;
    }
    hak_vector any;
    if (bytes <= HAK_CANARY_LINES / 2) {
        any = hak_canary_any_ends(start, end, HAK_CANARY_LINES / 4);
    } else if (bytes <= HAK_CANARY_LINES) {
        any = hak_canary_any_ends(start, end, HAK_CANARY_LINES / 2);
    } else {
        const char *last = end - HAK_CANARY_LINES;
        any = hak_canary_any(last, HAK_CANARY_LINES);
        for (; start < last; start += HAK_CANARY_LINES) {
            any |= hak_canary_any(start, HAK_CANARY_LINES);
        }
    }
    return HAK_VECTOR_IS_ZERO(any);
}

HAK_INLINE void hak_canary_clear_some(char *start, size_t bytes)
{
    const hak_vector zero = {0};
    HAK_IN_A_ROW
    for (size_t i = 0; i < bytes; i += sizeof zero) {
        memcpy(HAK_ASSUME_ALIGNED(start + i, sizeof(hak_pair)), &zero, sizeof zero);
    }
}

HAK_INLINE void hak_canary_clear_ends(char *start, char *end, size_t bytes)
{
    hak_canary_clear_some(start, bytes);
    hak_canary_clear_some(end - bytes, bytes);
}

// Make them so.
HAK_INLINE void hak_canary_clear(char *start, size_t bytes)
{
    char *end = start + bytes;
    if (HAK_UNLIKELY(bytes > HAK_HARDEN_CLEAR_MAX)) {
        memset(start, 0, bytes);
    } else if (bytes < HAK_CANARY_LINE) {
        hak_canary_clear_pair(start);
        hak_canary_clear_pair(start + hak_canary_middle(bytes));
        hak_canary_clear_pair(end - sizeof(hak_pair));
    } else if (bytes <= HAK_CANARY_LINES / 2) {
        hak_canary_clear_ends(start, end, HAK_CANARY_LINES / 4);
    } else if (bytes <= HAK_CANARY_LINES) {
        hak_canary_clear_ends(start, end, HAK_CANARY_LINES / 2);
    } else {
        char *last = end - HAK_CANARY_LINES;
        for (; start < last; start += HAK_CANARY_LINES) {
            hak_canary_clear_some(start, HAK_CANARY_LINES);
            HAK_KEEP_LOOP();
        }
        hak_canary_clear_some(last, HAK_CANARY_LINES);
    }
}

// Die: the end of a block in use was overwritten; a free block was written to.
HAK_INTERNAL _Noreturn HAK_COLD void hak_canary_die_overflow(const char *block, size_t block_bytes);
HAK_INTERNAL _Noreturn HAK_COLD void hak_canary_die_written(const char *block, size_t block_bytes);
// Give a block in use another request. False when it has no room.
HAK_INTERNAL bool hak_canary_resize(char *block, size_t block_bytes, size_t request);
// What was asked for; 0 when the canary does not say.
HAK_INTERNAL size_t hak_canary_request(const char *block, size_t block_bytes);
