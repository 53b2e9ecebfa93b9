// canary.h -- the canary behind a block in use and the zeros of a free one: every malloc and free writes and checks them.
//
// Threads   any, for a block that no other thread uses meanwhile.
// Fails     damage ends the program with a line.
//
// harden.h shows the layout. Of a long padding only the first and the last word are written: that finds an overflow by
// a byte, a word or a few of them at little cost. No branch depends on the length of the padding, which no processor
// could predict.
#pragma once

#include <string.h>

#include "secure/harden.h"

enum {
    HAK_CANARY_PADDING_BITS = 16
}; // the upper bits of the canary, which tell the length of the padding

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

// A word of padding: eight times the first byte of the canary.
HAK_INLINE uint64_t hak_canary_padding_word(uint64_t canary)
{
    return (canary & 0xFF) * UINT64_C(0x0101010101010101);
}

// By the length of the padding, 8 for all longer ones: which bits of the word before the canary are padding.
HAK_INTERNAL extern const uint64_t hak_canary_masks[sizeof(uint64_t) + 1];

// The first word of a short padding overlaps the canary, which is therefore written last.
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

// The length of the padding. It is more than a block has if the canary is damaged: the rotation makes every other bit count.
HAK_INLINE size_t hak_canary_padding_bytes(const char *block, size_t block_bytes, uint64_t canary)
{
    const uint64_t difference = hak_canary_word(block + block_bytes - HAK_CANARY_BYTES) ^ canary;
    return difference << HAK_CANARY_PADDING_BITS | difference >> (64 - HAK_CANARY_PADDING_BITS);
}

// Are the canary and the padding of a block in use as they were written?
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
    const char *first = last + (known - padding); // `last`, if the padding is short
    const uint64_t difference = (hak_canary_word(first) ^ word) | (hak_canary_word(last) ^ word);
    return (difference & hak_canary_masks[known]) == 0;
}

// Blocks have the alignment of a pair, so the compiler can make a load part of the instruction that uses it.
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

// Three pairs cover a block of less than a line, whose size is a multiple of 16: its first, its last, and the one here.
enum { HAK_CANARY_LINE = 64 };
HAK_INLINE size_t hak_canary_middle(size_t bytes)
{
    return bytes / 2 & ~(sizeof(hak_pair) - 1);
}

// A few lines at its start and as many at its end, which may overlap, cover a longer block: few cases, each without a
// loop, as no processor could predict how often a loop runs. Only blocks of more bytes than this take a loop.
enum { HAK_CANARY_LINES = 4 * HAK_CANARY_LINE };

// The bitwise or of `bytes`, a multiple of a line.
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

// Are all bytes zero? `bytes` is a multiple of 16, as the size of every block is.
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

// Set them to zero.
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
// Note another requested size of a block in use. False when the block is too small for it.
HAK_INTERNAL bool hak_canary_resize(char *block, size_t block_bytes, size_t request);
// The bytes that the program asked for; 0 when the canary is damaged.
HAK_INTERNAL size_t hak_canary_request(const char *block, size_t block_bytes);
