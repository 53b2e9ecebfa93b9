// number.h -- natural numbers of any length, each a block of its own.
//
// Owns      nothing; every call that returns a number allocates it, the caller frees it with free.
// Threads   a number never changes after it was made, so any number of threads may read one.
// Fails     no memory ends the program, see block.h.
//
// As in small bignum packages, each result is a new, short-lived block of 8 to 60
// bytes. That pattern, and not the speed of the arithmetic, is the purpose of the factoring workload.
#ifndef WORKLOADS_NUMBER_H
#define WORKLOADS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

// Least significant limb first; the last limb is not 0, and zero has no limbs.
struct number {
    uint32_t count;
    uint32_t limbs[];
};

struct number *number_from(uint64_t value);
struct number *number_copy(const struct number *number);

// Reads decimal digits; NULL when there is anything else.
struct number *number_read(const char *digits);

// Writes decimal digits to `text`, which has room for `bytes` with the 0 at the end.
void number_write(const struct number *number, char *text, uint32_t bytes);

// Below, equal or above 0, as `left` is less than, equal to or greater than `right`.
int number_compare(const struct number *left, const struct number *right);
bool number_is(const struct number *number, uint32_t value);

// The number modulo 2^64.
uint64_t number_low_bits(const struct number *number);

struct number *number_add(const struct number *left, const struct number *right);

// `left` must not be less than `right`.
struct number *number_subtract(const struct number *left, const struct number *right);
struct number *number_multiply(const struct number *left, const struct number *right);

// `divisor` must not be 0. The remainder is stored in `*remainder` unless that is NULL.
struct number *number_divide(const struct number *number,
                             const struct number *divisor,
                             struct number **remainder);
struct number *number_divide_limb(const struct number *number,
                                  uint32_t divisor,
                                  uint32_t *remainder);

struct number *number_modulo(const struct number *number, const struct number *modulus);

// The largest number whose square is not above `number`.
struct number *number_root(const struct number *number);
struct number *number_common_divisor(const struct number *left, const struct number *right);

// Frees the number at `*place`, and puts `number` there.
void number_replace(struct number **place, struct number *number);

#endif
