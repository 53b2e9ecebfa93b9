// number.c -- arithmetic on allocated natural numbers, see number.h.
#include "number.h"
#include "block.h"

enum { LIMB_BITS = 32, TEXT_BYTES_MAX = 1024 };

static struct number *number_make(uint32_t limbs)
{
    struct number *number = block_require(malloc(sizeof(struct number) + limbs * sizeof(uint32_t)));
    number->count = limbs;
    return number;
}

static struct number *number_trim(struct number *number)
{
    while (number->count > 0 && number->limbs[number->count - 1] == 0) {
        number->count--;
    }
    return number;
}

struct number *number_from(uint64_t value)
{
    struct number *number = number_make(2);
    number->limbs[0] = (uint32_t)value;
    number->limbs[1] = (uint32_t)(value >> LIMB_BITS);
    return number_trim(number);
}

struct number *number_copy(const struct number *number)
{
    struct number *copy = number_make(number->count);
    memcpy(copy->limbs, number->limbs, number->count * sizeof(uint32_t));
    return copy;
}

void number_replace(struct number **place, struct number *number)
{
    free(*place);
    *place = number;
}

struct number *number_read(const char *digits)
{
    struct number *number = number_from(0);
    struct number *ten = number_from(10);
    bool is_decimal = *digits != '\0';
    for (; is_decimal && *digits != '\0'; digits++) {
        is_decimal = *digits >= '0' && *digits <= '9';
        struct number *digit = number_from((uint64_t)(*digits - '0') % 10);
        struct number *shifted = number_multiply(number, ten);
        number_replace(&number, number_add(shifted, digit));
        free(shifted);
        free(digit);
    }
    free(ten);
    if (!is_decimal) {
        number_replace(&number, NULL);
    }
    return number;
}

void number_write(const struct number *number, char *text, uint32_t bytes)
{
    char reversed[TEXT_BYTES_MAX];
    uint32_t length = 0;
    struct number *left = number_copy(number);
    do {
        uint32_t digit;
        number_replace(&left, number_divide_limb(left, 10, &digit));
        reversed[length++] = (char)('0' + digit);
    } while (left->count > 0 && length < TEXT_BYTES_MAX && length + 1 < bytes);
    for (uint32_t i = 0; i < length; i++) {
        text[i] = reversed[length - 1 - i];
    }
    text[length] = '\0';
    free(left);
}

int number_compare(const struct number *left, const struct number *right)
{
    if (left->count != right->count) {
        return left->count < right->count ? -1 : 1;
    }
    for (uint32_t i = left->count; i-- > 0;) {
        if (left->limbs[i] != right->limbs[i]) {
            return left->limbs[i] < right->limbs[i] ? -1 : 1;
        }
    }
    return 0;
}

bool number_is(const struct number *number, uint32_t value)
{
    return value == 0 ? number->count == 0 : number->count == 1 && number->limbs[0] == value;
}

uint64_t number_low_bits(const struct number *number)
{
    uint64_t low = number->count > 0 ? number->limbs[0] : 0;
    uint64_t high = number->count > 1 ? number->limbs[1] : 0;
    return high << LIMB_BITS | low;
}

struct number *number_add(const struct number *left, const struct number *right)
{
    uint32_t limbs = (left->count > right->count ? left->count : right->count) + 1;
    struct number *sum = number_make(limbs);
    uint64_t carry = 0;
    for (uint32_t i = 0; i < limbs; i++) {
        carry += i < left->count ? left->limbs[i] : 0;
        carry += i < right->count ? right->limbs[i] : 0;
        sum->limbs[i] = (uint32_t)carry;
        carry >>= LIMB_BITS;
    }
    return number_trim(sum);
}

struct number *number_subtract(const struct number *left, const struct number *right)
{
    struct number *difference = number_make(left->count);
    uint64_t borrow = 0;
    for (uint32_t i = 0; i < left->count; i++) {
        uint64_t taken = (i < right->count ? right->limbs[i] : 0) + borrow;
        uint64_t value = (uint64_t)left->limbs[i] - taken;
        difference->limbs[i] = (uint32_t)value;
        borrow = value >> 63;
    }
    return number_trim(difference);
}

struct number *number_multiply(const struct number *left, const struct number *right)
{
    struct number *product = number_make(left->count + right->count);
    memset(product->limbs, 0, product->count * sizeof(uint32_t));
    for (uint32_t i = 0; i < left->count; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < right->count; j++) {
            carry += (uint64_t)left->limbs[i] * right->limbs[j] + product->limbs[i + j];
            product->limbs[i + j] = (uint32_t)carry;
            carry >>= LIMB_BITS;
        }
        product->limbs[i + right->count] = (uint32_t)carry;
    }
    return number_trim(product);
}

struct number *number_divide_limb(const struct number *number,
                                  uint32_t divisor,
                                  uint32_t *remainder)
{
    struct number *quotient = number_make(number->count);
    uint64_t rest = 0;
    for (uint32_t i = number->count; i-- > 0;) {
        rest = rest << LIMB_BITS | number->limbs[i];
        quotient->limbs[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    *remainder = (uint32_t)rest;
    return number_trim(quotient);
}

// number << bits, with one more limb than `number` has; bits < LIMB_BITS.
static struct number *number_shift_left(const struct number *number, unsigned bits)
{
    struct number *shifted = number_make(number->count + 1);
    uint64_t carry = 0;
    for (uint32_t i = 0; i < number->count; i++) {
        carry |= (uint64_t)number->limbs[i] << bits;
        shifted->limbs[i] = (uint32_t)carry;
        carry >>= LIMB_BITS;
    }
    shifted->limbs[number->count] = (uint32_t)carry;
    return shifted;
}

static void number_shift_right(struct number *number, unsigned bits)
{
    uint64_t above = 0;
    for (uint32_t i = number->count; i-- > 0;) {
        uint64_t both = above << LIMB_BITS | number->limbs[i];
        above = number->limbs[i];
        number->limbs[i] = (uint32_t)(both >> bits);
    }
}

// Takes `digit` times `divisor` from the limbs at `rest`; true when that was once too often.
static bool take_multiple(uint32_t *rest, const uint32_t *divisor, uint32_t count, uint64_t digit)
{
    uint64_t carry = 0;
    uint64_t borrow = 0;
    for (uint32_t i = 0; i <= count; i++) {
        carry += i < count ? digit * divisor[i] : 0;
        uint64_t value = (uint64_t)rest[i] - (uint32_t)carry - borrow;
        rest[i] = (uint32_t)value;
        borrow = value >> 63;
        carry >>= LIMB_BITS;
    }
    return borrow != 0;
}

static void put_back(uint32_t *rest, const uint32_t *divisor, uint32_t count)
{
    uint64_t carry = 0;
    for (uint32_t i = 0; i <= count; i++) {
        carry += (uint64_t)rest[i] + (i < count ? divisor[i] : 0);
        rest[i] = (uint32_t)carry;
        carry >>= LIMB_BITS;
    }
}

// Long division in base 2^32. With the divisor's top bit set, a digit estimated from the two
// highest limbs is at most two too large, so at most two multiples have to be put back.
static struct number *divide_long(const struct number *number,
                                  const struct number *divisor,
                                  struct number **remainder)
{
    unsigned bits = (unsigned)__builtin_clz(divisor->limbs[divisor->count - 1]);
    struct number *scaled = number_shift_left(divisor, bits);
    struct number *rest = number_shift_left(number, bits);
    uint32_t count = divisor->count;
    struct number *quotient = number_make(number->count - count + 1);
    for (uint32_t i = quotient->count; i-- > 0;) {
        uint64_t top = (uint64_t)rest->limbs[i + count] << LIMB_BITS | rest->limbs[i + count - 1];
        uint64_t digit = top / scaled->limbs[count - 1];
        digit = digit > UINT32_MAX ? UINT32_MAX : digit;
        if (take_multiple(&rest->limbs[i], scaled->limbs, count, digit)) {
            do {
                digit--;
                put_back(&rest->limbs[i], scaled->limbs, count);
                // The sum has wrapped to its true value once the limb above the divisor is 0.
            } while (rest->limbs[i + count] != 0);
        }
        quotient->limbs[i] = (uint32_t)digit;
    }
    free(scaled);
    number_shift_right(rest, bits);
    *remainder = number_trim(rest);
    return number_trim(quotient);
}

struct number *number_divide(const struct number *number,
                             const struct number *divisor,
                             struct number **remainder)
{
    struct number *rest;
    struct number *quotient;
    if (number_compare(number, divisor) < 0) {
        quotient = number_from(0);
        rest = number_copy(number);
    } else if (divisor->count == 1) {
        uint32_t limb;
        quotient = number_divide_limb(number, divisor->limbs[0], &limb);
        rest = number_from(limb);
    } else {
        quotient = divide_long(number, divisor, &rest);
    }
    if (remainder != NULL) {
        *remainder = rest;
    } else {
        free(rest);
    }
    return quotient;
}

struct number *number_modulo(const struct number *number, const struct number *modulus)
{
    struct number *remainder;
    free(number_divide(number, modulus, &remainder));
    return remainder;
}

// Newton's method from above: the values fall until they have reached the root.
struct number *number_root(const struct number *number)
{
    struct number *root = number_copy(number);
    while (root->count > 0) {
        uint32_t odd;
        struct number *share = number_divide(number, root, NULL);
        struct number *sum = number_add(share, root);
        struct number *next = number_divide_limb(sum, 2, &odd);
        free(sum);
        free(share);
        if (number_compare(next, root) >= 0) {
            free(next);
            break;
        }
        number_replace(&root, next);
    }
    return root;
}

struct number *number_common_divisor(const struct number *left, const struct number *right)
{
    struct number *greater = number_copy(left);
    struct number *smaller = number_copy(right);
    while (smaller->count > 0) {
        struct number *rest = number_modulo(greater, smaller);
        free(greater);
        greater = smaller;
        smaller = rest;
    }
    free(smaller);
    return greater;
}
