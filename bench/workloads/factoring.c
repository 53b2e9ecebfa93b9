// factoring.c -- factors a number by its continued fraction, in bignums that live for moments.
//
// The continued fraction of the root of n gives many small Q with A² ≡ ±Q (mod n). Those Q that
// split into small primes are collected until a product of some of them is a square, and so gives
// X² ≡ Y² (mod n) and, half of the time, a factor. All arithmetic makes new numbers, nearly all of
// which are freed at once. Answer: the smaller factor modulo 2^64; the factors are multiplied to
// check them.
#include "support/args.h"
#include "support/block.h"
#include "support/number.h"

#include <stdio.h>

enum {
    BASE_PRIMES = 160,
    // More relations than primes and the sign: each extra one is another chance of a factor.
    RELATIONS = BASE_PRIMES + 1 + 16,
    SMALL_PRIME_LIMIT = 20000,
    MATRIX_WORDS = (BASE_PRIMES + 1 + 63) / 64,
    COMBINATION_WORDS = (RELATIONS + 63) / 64,
    DIGITS_MAX = 60,
    TEXT_BYTES = DIGITS_MAX + 2,
};

// root² ≡ (−1)^powers[0] · Π primes[i]^powers[i + 1]  (mod n)
struct relation {
    struct relation *next;
    struct number *root;
    uint8_t powers[BASE_PRIMES + 1];
};

struct search {
    const struct number *n;
    uint32_t primes[BASE_PRIMES];
    struct relation *relations;
    uint32_t relation_count;
    uint64_t expansions;
};

// value^power modulo a prime below 2^16 … 2^32: products fit 64 bits.
static uint64_t power_modulo(uint64_t value, uint64_t power, uint64_t modulus)
{
    uint64_t result = 1;
    for (; power > 0; power >>= 1) {
        if ((power & 1) != 0) {
            result = result * value % modulus;
        }
        value = value * value % modulus;
    }
    return result;
}

// Only primes of which n is a square modulo the prime can divide a Q.
static void base_choose(struct search *search)
{
    uint32_t chosen = 0;
    for (uint32_t candidate = 2; chosen < BASE_PRIMES && candidate < SMALL_PRIME_LIMIT;
         candidate++) {
        bool is_prime = true;
        for (uint32_t i = 2; i * i <= candidate && is_prime; i++) {
            is_prime = candidate % i != 0;
        }
        if (!is_prime) {
            continue;
        }
        uint32_t rest;
        free(number_divide_limb(search->n, candidate, &rest));
        if (candidate == 2 || power_modulo(rest, (candidate - 1) / 2, candidate) == 1) {
            search->primes[chosen++] = candidate;
        }
    }
    if (chosen < BASE_PRIMES) {
        report_wrong("there are too few small primes; is the number a square?");
    }
}

// Divides all primes of the base out of `q`; true when nothing but 1 is left.
static bool split_into_powers(const struct search *search, const struct number *q, uint8_t *powers)
{
    struct number *left = number_copy(q);
    for (uint32_t i = 0; i < BASE_PRIMES; i++) {
        for (;;) {
            uint32_t rest;
            struct number *quotient = number_divide_limb(left, search->primes[i], &rest);
            if (rest != 0) {
                free(quotient);
                break;
            }
            number_replace(&left, quotient);
            powers[i + 1]++;
        }
    }
    bool is_split = number_is(left, 1);
    free(left);
    return is_split;
}

static void relation_try(struct search *search,
                         const struct number *root,
                         const struct number *q,
                         bool is_negative)
{
    uint8_t powers[BASE_PRIMES + 1] = {is_negative};
    if (!split_into_powers(search, q, powers)) {
        return;
    }
    struct relation *relation = block_require(malloc(sizeof *relation));
    relation->root = number_copy(root);
    memcpy(relation->powers, powers, sizeof powers);
    relation->next = search->relations;
    search->relations = relation;
    search->relation_count++;
}

// One step of the expansion of √n: numerators A (modulo n), and P and Q of (P + √n) / Q.
struct expansion {
    struct number *root; // ⌊√n⌋
    struct number *numerator;
    struct number *numerator_before;
    struct number *p;
    struct number *q;
};

static struct expansion expansion_begin(const struct number *n)
{
    struct expansion e = {.root = number_root(n)};
    e.numerator = number_copy(e.root);
    e.numerator_before = number_from(1);
    e.p = number_copy(e.root);
    struct number *square = number_multiply(e.root, e.root);
    e.q = number_subtract(n, square);
    free(square);
    if (e.q->count == 0) {
        report_wrong("the number is a square");
    }
    return e;
}

static void expansion_step(struct expansion *e, const struct number *n)
{
    struct number *sum = number_add(e->root, e->p);
    struct number *term = number_divide(sum, e->q, NULL);
    struct number *product = number_multiply(term, e->numerator);
    struct number *numerator = number_add(product, e->numerator_before);
    free(e->numerator_before);
    e->numerator_before = e->numerator;
    e->numerator = number_modulo(numerator, n);

    struct number *whole = number_multiply(term, e->q);
    number_replace(&e->p, number_subtract(whole, e->p));
    struct number *square = number_multiply(e->p, e->p);
    struct number *rest = number_subtract(n, square);
    number_replace(&e->q, number_divide(rest, e->q, NULL));
    free(rest);
    free(square);
    free(whole);
    free(numerator);
    free(product);
    free(term);
    free(sum);
}

static void expansion_end(struct expansion *e)
{
    free(e->root);
    free(e->numerator);
    free(e->numerator_before);
    free(e->p);
    free(e->q);
}

static void relations_collect(struct search *search)
{
    struct expansion e = expansion_begin(search->n);
    bool is_negative = true; // A² ≡ −Q for the first, and in turn from then on
    while (search->relation_count < RELATIONS) {
        relation_try(search, e.numerator, e.q, is_negative);
        if (number_is(e.q, 1)) {
            report_wrong("the continued fraction of the number repeats too soon");
        }
        expansion_step(&e, search->n);
        is_negative = !is_negative;
        search->expansions++;
    }
    expansion_end(&e);
}

// A row of the matrix modulo 2: which powers are odd, and which relations were multiplied.
struct row {
    uint64_t odd[MATRIX_WORDS];
    uint64_t combination[COMBINATION_WORDS];
};

static bool bit_get(const uint64_t *words, uint32_t bit)
{
    return (words[bit / 64] >> bit % 64 & 1) != 0;
}

static void row_combine(struct row *row, const struct row *other)
{
    for (uint32_t i = 0; i < MATRIX_WORDS; i++) {
        row->odd[i] ^= other->odd[i];
    }
    for (uint32_t i = 0; i < COMBINATION_WORDS; i++) {
        row->combination[i] ^= other->combination[i];
    }
}

// Eliminates column by column; what is left without a pivot is a product that is a square.
static void rows_eliminate(struct row *rows, bool *is_pivot)
{
    for (uint32_t column = 0; column <= BASE_PRIMES; column++) {
        uint32_t pivot = 0;
        while (pivot < RELATIONS && (is_pivot[pivot] || !bit_get(rows[pivot].odd, column))) {
            pivot++;
        }
        if (pivot == RELATIONS) {
            continue;
        }
        is_pivot[pivot] = true;
        for (uint32_t i = 0; i < RELATIONS; i++) {
            if (i != pivot && bit_get(rows[i].odd, column)) {
                row_combine(&rows[i], &rows[pivot]);
            }
        }
    }
}

static void multiply_modulo(struct number **place,
                            const struct number *factor,
                            const struct number *n)
{
    struct number *product = number_multiply(*place, factor);
    number_replace(place, number_modulo(product, n));
    free(product);
}

// The factor that one combination of relations gives: often 1 or n itself.
static struct number *factor_from(const struct search *search, const struct row *row)
{
    uint32_t powers[BASE_PRIMES + 1] = {0};
    struct number *x = number_from(1);
    struct number *y = number_from(1);
    uint32_t index = 0;
    for (const struct relation *r = search->relations; r != NULL; r = r->next, index++) {
        if (!bit_get(row->combination, index)) {
            continue;
        }
        multiply_modulo(&x, r->root, search->n);
        for (uint32_t i = 0; i <= BASE_PRIMES; i++) {
            powers[i] += r->powers[i];
        }
    }
    for (uint32_t i = 0; i < BASE_PRIMES; i++) {
        struct number *prime = number_from(search->primes[i]);
        for (uint32_t n = 0; n < powers[i + 1] / 2; n++) {
            multiply_modulo(&y, prime, search->n);
        }
        free(prime);
    }
    struct number *sum = number_add(x, y);
    struct number *factor = number_common_divisor(sum, search->n);
    free(sum);
    free(y);
    free(x);
    return factor;
}

static struct number *factor_find(const struct search *search)
{
    struct row *rows = block_require(calloc(RELATIONS, sizeof *rows));
    bool is_pivot[RELATIONS] = {false};
    uint32_t index = 0;
    for (const struct relation *r = search->relations; r != NULL; r = r->next, index++) {
        rows[index].combination[index / 64] = (uint64_t)1 << index % 64;
        for (uint32_t i = 0; i <= BASE_PRIMES; i++) {
            rows[index].odd[i / 64] |= (uint64_t)(r->powers[i] & 1) << i % 64;
        }
    }
    rows_eliminate(rows, is_pivot);
    struct number *factor = number_from(1);
    for (uint32_t i = 0; i < RELATIONS; i++) {
        bool is_proper = !number_is(factor, 1) && number_compare(factor, search->n) != 0;
        if (!is_pivot[i] && !is_proper) {
            number_replace(&factor, factor_from(search, &rows[i]));
        }
    }
    free(rows);
    return factor;
}

static void relations_free(struct search *search)
{
    while (search->relations != NULL) {
        struct relation *next = search->relations->next;
        free(search->relations->root);
        free(search->relations);
        search->relations = next;
    }
}

// Prints both factors, smaller first, after a check; returns the smaller one modulo 2^64.
static uint64_t factors_print(const struct number *n, struct number *factor)
{
    struct number *other = number_divide(n, factor, NULL);
    struct number *product = number_multiply(factor, other);
    bool is_proper = !number_is(factor, 1) && !number_is(other, 1);
    if (!is_proper || number_compare(product, n) != 0) {
        report_wrong("no factor was found");
    }
    bool is_ordered = number_compare(factor, other) < 0;
    struct number *smaller = is_ordered ? factor : other;
    char texts[2][TEXT_BYTES];
    number_write(smaller, texts[0], TEXT_BYTES);
    number_write(is_ordered ? other : factor, texts[1], TEXT_BYTES);
    printf("factors: %s %s\n", texts[0], texts[1]);
    uint64_t answer = number_low_bits(smaller);
    free(product);
    free(other);
    return answer;
}

int main(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, "factoring [product of two primes]");
    const char *digits = args_text(&args);
    args_end(&args);
    digits = digits != NULL ? digits : "4267640717573782316691801359357";
    struct number *n = strlen(digits) <= DIGITS_MAX ? number_read(digits) : NULL;
    if (n == NULL || n->count < 2) {
        args_reject(&args, digits, "is not a number of 10 to 60 digits");
    }

    struct search search = {.n = n};
    uint64_t begin_ns = report_clock_ns();
    base_choose(&search);
    relations_collect(&search);
    struct number *factor = factor_find(&search);
    relations_free(&search);
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    uint64_t answer = factors_print(n, factor);
    free(factor);
    free(n);
    // A step makes and frees a number for each prime of the base and 15 others: near enough.
    report_answer(answer, 2 * search.expansions * (BASE_PRIMES + 15), elapsed_ns);
    return 0;
}
