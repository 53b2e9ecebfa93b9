// bits.h -- alignment, powers of two, bit scans.
#pragma once

#include "base/compiler.h"

#define HAK_KIB(n) ((size_t)(n) << 10)
#define HAK_MIB(n) ((size_t)(n) << 20)
#define HAK_GIB(n) ((size_t)(n) << 30)

HAK_INLINE size_t hak_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

HAK_INLINE size_t hak_align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

HAK_INLINE bool hak_is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

// Index of the lowest set bit of `word`, which is not 0.
HAK_INLINE unsigned hak_lowest_bit(uint64_t word)
{
    return (unsigned)__builtin_ctzll(word);
}

// Index of the highest set bit of `word`, which is not 0.
HAK_INLINE unsigned hak_highest_bit(uint64_t word)
{
    return 63U ^ (unsigned)__builtin_clzll(word); // one instruction; 63 - … is two
}

// Adds fields of 1, 2 and 4 bits to each other, then all bytes at once: the builtin calls a function where not every
// processor has the instruction (H. Warren, "Hacker's Delight", 2013, 5-1).
HAK_INLINE unsigned hak_count_bits(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (unsigned)(word * UINT64_C(0x0101010101010101) >> 56);
}

// A word with bits [first, first + count) set; count is 1..64.
HAK_INLINE uint64_t hak_bit_range(unsigned first, unsigned count)
{
    return (~UINT64_C(0) >> (64 - count)) << first;
}

// The bits of `word` at which a row of at least `count` >= 1 set bits begins.
HAK_INLINE uint64_t hak_bit_rows(uint64_t word, unsigned count)
{
    while (count > 1) { // each step halves the rest
        const unsigned half = count / 2;
        word &= word >> half;
        count -= half;
    }
    return word;
}

// Bit `index` of an array of words. Below: set or clear it.
HAK_INLINE bool hak_has_bit(const uint64_t *words, size_t index)
{
    return (words[index / 64] >> (index % 64) & 1) != 0;
}

HAK_INLINE void hak_set_bit(uint64_t *words, size_t index, bool is_set)
{
    const uint64_t bit = UINT64_C(1) << (index % 64);
    words[index / 64] = is_set ? words[index / 64] | bit : words[index / 64] & ~bit;
}

// The first set bit at or behind `from` in an array of words with `count` bits; `count` if there is none.
HAK_INLINE unsigned hak_next_bit(const uint64_t *words, unsigned from, unsigned count)
{
    while (from < count) {
        const uint64_t rest = words[from / 64] >> (from % 64);
        if (rest != 0) {
            return from + hak_lowest_bit(rest);
        }
        from = (from / 64 + 1) * 64;
    }
    return count;
}

// The smallest power of two that is at least `value` (1 for 0).
HAK_INLINE size_t hak_power_of_two_above(size_t value)
{
    return value <= 1 ? 1 : (size_t)1 << (hak_highest_bit(value - 1) + 1);
}
