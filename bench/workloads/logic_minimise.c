// logic_minimise.c -- makes two-level logic smaller, on covers of many small cubes.
//
// Takes random Boolean functions, given as cubes to be true and cubes that do not matter, and
// improves each by turns of expanding cubes, dropping redundant ones and reducing the rest, as
// logic minimisers do. Covers are allocated arrays of allocated cubes; the recursive complement and
// tautology make and free thousands of them. Every result is checked on all points. Answer: a hash
// of the cubes and literals of all results.
#include "support/args.h"
#include "support/block.h"

#include <stdio.h>

enum {
    VARIABLES_MAX = 16,
    COVER_CAPACITY_MIN = 4,
    VARIABLES_MIN = 4,
};

// Variable v may be 1 in the cube if bit v of `ones` is set, and 0 if that of `zeros` is.
struct cube {
    uint32_t ones;
    uint32_t zeros;
};

struct cover {
    uint32_t count;
    uint32_t capacity;
    struct cube **cubes;
};

static uint32_t variables_all; // a bit for each variable of the functions
static uint64_t blocks_made;

static struct cube cube_whole(void)
{
    return (struct cube){variables_all, variables_all};
}

static bool cube_is_whole(struct cube cube)
{
    return (cube.ones & cube.zeros) == variables_all;
}

static struct cube cube_meet(struct cube left, struct cube right)
{
    return (struct cube){left.ones & right.ones, left.zeros & right.zeros};
}

static bool cube_is_empty(struct cube cube)
{
    return (cube.ones | cube.zeros) != variables_all;
}

static bool cube_contains(struct cube outer, struct cube inner)
{
    return (inner.ones & ~outer.ones) == 0 && (inner.zeros & ~outer.zeros) == 0;
}

static unsigned cube_literals(struct cube cube)
{
    return (unsigned)__builtin_popcount(variables_all & ~(cube.ones & cube.zeros));
}

static struct cover *cover_make(void)
{
    struct cover *cover = block_require(malloc(sizeof *cover));
    *cover = (struct cover){.capacity = COVER_CAPACITY_MIN};
    cover->cubes = block_require(malloc(COVER_CAPACITY_MIN * sizeof *cover->cubes));
    blocks_made += 2;
    return cover;
}

static void cover_free(struct cover *cover)
{
    for (uint32_t i = 0; i < cover->count; i++) {
        free(cover->cubes[i]);
    }
    free(cover->cubes);
    free(cover);
}

static void cover_add(struct cover *cover, struct cube cube)
{
    if (cover->count == cover->capacity) {
        cover->capacity *= 2;
        cover->cubes = block_require(realloc(cover->cubes, cover->capacity * sizeof *cover->cubes));
    }
    struct cube *copy = block_require(malloc(sizeof *copy));
    *copy = cube;
    blocks_made++;
    cover->cubes[cover->count++] = copy;
}

static void cover_remove(struct cover *cover, uint32_t index)
{
    free(cover->cubes[index]);
    cover->count--;
    for (uint32_t i = index; i < cover->count; i++) {
        cover->cubes[i] = cover->cubes[i + 1];
    }
}

// The cover seen from inside `space`: the variables that `space` fixes do not matter.
// Cube number `skip` is left out.
static void cofactor_into(struct cover *result,
                          const struct cover *cover,
                          struct cube space,
                          uint32_t skip)
{
    uint32_t fixed = variables_all & ~(space.ones & space.zeros);
    for (uint32_t i = 0; i < cover->count; i++) {
        struct cube cube = *cover->cubes[i];
        if (i != skip && !cube_is_empty(cube_meet(cube, space))) {
            cover_add(result, (struct cube){cube.ones | fixed, cube.zeros | fixed});
        }
    }
}

static struct cover *cover_cofactor(const struct cover *cover, struct cube space)
{
    struct cover *result = cover_make();
    cofactor_into(result, cover, space, UINT32_MAX);
    return result;
}

// The variable that most cubes fix, among those that are fixed both ways if there are any.
// False: no variable is fixed both ways.
static bool cover_splitter(const struct cover *cover, unsigned *variable)
{
    unsigned best = 0;
    bool is_best_both = false;
    for (unsigned v = 0; v < VARIABLES_MAX; v++) {
        unsigned as_one = 0;
        unsigned as_zero = 0;
        for (uint32_t i = 0; i < cover->count; i++) {
            as_one += (~cover->cubes[i]->zeros & variables_all) >> v & 1;
            as_zero += (~cover->cubes[i]->ones & variables_all) >> v & 1;
        }
        bool is_both = as_one > 0 && as_zero > 0;
        if (is_both > is_best_both || (is_both == is_best_both && as_one + as_zero > best)) {
            best = as_one + as_zero;
            is_best_both = is_both;
            *variable = v;
        }
    }
    return is_best_both;
}

static struct cube half_space(unsigned variable, bool is_one)
{
    struct cube half = cube_whole();
    uint32_t bit = (uint32_t)1 << variable;
    if (is_one) {
        half.zeros &= ~bit;
    } else {
        half.ones &= ~bit;
    }
    return half;
}

static bool cover_has_whole(const struct cover *cover)
{
    for (uint32_t i = 0; i < cover->count; i++) {
        if (cube_is_whole(*cover->cubes[i])) {
            return true;
        }
    }
    return false;
}

// Do the cubes cover every point? Frees `cover`.
static bool cover_is_tautology(struct cover *cover)
{
    unsigned variable = 0;
    bool is_tautology = cover_has_whole(cover);
    // A cover that fixes each variable one way at most leaves the opposite corner out.
    if (!is_tautology && cover_splitter(cover, &variable)) {
        is_tautology = cover_is_tautology(cover_cofactor(cover, half_space(variable, true))) &&
                       cover_is_tautology(cover_cofactor(cover, half_space(variable, false)));
    }
    cover_free(cover);
    return is_tautology;
}

// The points outside of one cube: for each variable that it fixes, the half where it is not.
static void complement_of_cube(struct cover *result, struct cube cube)
{
    for (unsigned v = 0; v < VARIABLES_MAX; v++) {
        uint32_t bit = (uint32_t)1 << v & variables_all;
        if ((bit & ~cube.ones) != 0) {
            cover_add(result, half_space(v, true));
        } else if ((bit & ~cube.zeros) != 0) {
            cover_add(result, half_space(v, false));
        }
    }
}

// Adds `part`, which holds inside of `half`, to `result`; a cube that is in `other` too holds on
// both sides, and is added whole, once.
static void merge_half(struct cover *result,
                       const struct cover *part,
                       const struct cover *other,
                       unsigned v,
                       bool is_one)
{
    for (uint32_t i = 0; i < part->count; i++) {
        bool is_shared = false;
        for (uint32_t j = 0; j < other->count && !is_shared; j++) {
            is_shared = cube_contains(*other->cubes[j], *part->cubes[i]) &&
                        cube_contains(*part->cubes[i], *other->cubes[j]);
        }
        if (!is_shared) {
            cover_add(result, cube_meet(*part->cubes[i], half_space(v, is_one)));
        } else if (is_one) {
            cover_add(result, *part->cubes[i]);
        }
    }
}

// A cover of all points that `cover` does not cover. Frees `cover`.
static struct cover *cover_complement(struct cover *cover)
{
    struct cover *result = cover_make();
    if (cover->count == 0) {
        cover_add(result, cube_whole());
    } else if (cover->count == 1) {
        complement_of_cube(result, *cover->cubes[0]);
    } else if (!cover_has_whole(cover)) {
        unsigned v = 0;
        cover_splitter(cover, &v);
        struct cover *one = cover_complement(cover_cofactor(cover, half_space(v, true)));
        struct cover *zero = cover_complement(cover_cofactor(cover, half_space(v, false)));
        merge_half(result, one, zero, v, true);
        merge_half(result, zero, one, v, false);
        cover_free(one);
        cover_free(zero);
    }
    cover_free(cover);
    return result;
}

struct function {
    const struct cover *on;
    const struct cover *unimportant;
    struct cover *off;
};

// Frees one variable after the other, as long as the cube keeps clear of the off-set.
static struct cube cube_expand(struct cube cube, const struct cover *off, unsigned first)
{
    for (unsigned i = 0; i < VARIABLES_MAX; i++) {
        uint32_t bit = (uint32_t)1 << (first + i) % VARIABLES_MAX & variables_all;
        struct cube wider = {cube.ones | bit, cube.zeros | bit};
        bool is_clear = true;
        for (uint32_t j = 0; j < off->count && is_clear; j++) {
            is_clear = cube_is_empty(cube_meet(wider, *off->cubes[j]));
        }
        cube = is_clear ? wider : cube;
    }
    return cube;
}

static struct cover *cover_expand(struct cover *cover, const struct cover *off, unsigned first)
{
    struct cover *result = cover_make();
    for (uint32_t i = 0; i < cover->count; i++) {
        bool is_covered = false;
        for (uint32_t j = 0; j < result->count && !is_covered; j++) {
            is_covered = cube_contains(*result->cubes[j], *cover->cubes[i]);
        }
        if (!is_covered) {
            cover_add(result, cube_expand(*cover->cubes[i], off, first));
        }
    }
    cover_free(cover);
    return result;
}

// The other cubes, and the points that do not matter, seen from inside cube `index`.
static struct cover *others_inside(const struct cover *cover,
                                   const struct cover *unimportant,
                                   uint32_t index)
{
    struct cover *others = cover_make();
    cofactor_into(others, cover, *cover->cubes[index], index);
    cofactor_into(others, unimportant, *cover->cubes[index], UINT32_MAX);
    return others;
}

static void cover_drop_redundant(struct cover *cover, const struct cover *unimportant)
{
    for (uint32_t i = cover->count; i-- > 0;) {
        if (cover_is_tautology(others_inside(cover, unimportant, i))) {
            cover_remove(cover, i);
        }
    }
}

// Shrinks each cube to what no other one covers, which lets it expand another way.
static void cover_reduce(struct cover *cover, const struct cover *unimportant)
{
    for (uint32_t i = 0; i < cover->count; i++) {
        struct cover *needed = cover_complement(others_inside(cover, unimportant, i));
        struct cube hull = {0, 0};
        for (uint32_t j = 0; j < needed->count; j++) {
            hull.ones |= needed->cubes[j]->ones;
            hull.zeros |= needed->cubes[j]->zeros;
        }
        if (needed->count > 0) {
            *cover->cubes[i] = cube_meet(*cover->cubes[i], hull);
        }
        cover_free(needed);
    }
}

static struct cover *function_minimise(const struct function *function, unsigned turns)
{
    struct cover *cover = cover_cofactor(function->on, cube_whole());
    for (unsigned turn = 0; turn < turns; turn++) {
        cover = cover_expand(cover, function->off, turn * 5);
        cover_drop_redundant(cover, function->unimportant);
        if (turn + 1 < turns) {
            cover_reduce(cover, function->unimportant);
        }
    }
    return cover;
}

static struct cover *cover_random(struct prng *prng, unsigned variables, uint32_t count)
{
    struct cover *cover = cover_make();
    for (uint32_t i = 0; i < count; i++) {
        struct cube cube = cube_whole();
        // With fewer literals than half, a few cubes would cover nearly everything.
        unsigned literals = prng_between(prng, variables / 2, variables);
        for (unsigned n = 0; n < literals; n++) {
            unsigned v = prng_below(prng, variables);
            bool is_one = prng_below(prng, 2) == 1;
            struct cube narrower = cube_meet(cube, half_space(v, is_one));
            cube = cube_is_empty(narrower) ? cube : narrower;
        }
        cover_add(cover, cube);
    }
    return cover;
}

static bool cover_has_point(const struct cover *cover, uint32_t point)
{
    struct cube at = {point, ~point & variables_all};
    for (uint32_t i = 0; i < cover->count; i++) {
        if (cube_contains(*cover->cubes[i], at)) {
            return true;
        }
    }
    return false;
}

// At each point that matters, the result must agree with the function.
static void result_check(const struct function *function, const struct cover *result)
{
    for (uint32_t point = 0; point <= variables_all; point++) {
        if (!cover_has_point(function->unimportant, point) &&
            cover_has_point(function->on, point) != cover_has_point(result, point)) {
            report_wrong("a minimised function differs from what it was");
        }
    }
}

static uint64_t result_hash(const struct cover *result, uint32_t *literals)
{
    uint64_t hash = result->count;
    for (uint32_t i = 0; i < result->count; i++) {
        struct cube cube = *result->cubes[i];
        *literals += cube_literals(cube);
        hash = prng_mix(hash + ((uint64_t)cube.ones << 32 | cube.zeros));
    }
    return hash;
}

int main(int argc, char **argv)
{
    struct args args =
        args_begin(argc, argv, "logic_minimise [functions] [variables] [cubes] [turns] [seed]");
    uint64_t functions = args_number(&args, "functions", 20, 1, UINT32_MAX);
    unsigned variables =
        (unsigned)args_number(&args, "variables", 14, VARIABLES_MIN, VARIABLES_MAX);
    uint32_t cubes = (uint32_t)args_number(&args, "cubes", 300, 1, 10000);
    unsigned turns = (unsigned)args_number(&args, "turns", 4, 1, 1000);
    struct prng prng = prng_seed(args_number(&args, "seed", 1, 0, UINT64_MAX), 0);
    args_end(&args);

    variables_all = ((uint32_t)1 << variables) - 1;
    uint64_t answer = 0;
    uint64_t elapsed_ns = 0;
    uint32_t result_cubes = 0;
    uint32_t literals = 0;
    for (uint64_t i = 0; i < functions; i++) {
        struct cover *on = cover_random(&prng, variables, cubes);
        struct cover *unimportant = cover_random(&prng, variables, cubes / 8);
        uint64_t begin_ns = report_clock_ns();
        struct cover *both = cover_cofactor(on, cube_whole());
        cofactor_into(both, unimportant, cube_whole(), UINT32_MAX);
        struct function function = {on, unimportant, cover_complement(both)};
        struct cover *result = function_minimise(&function, turns);
        elapsed_ns += report_clock_ns() - begin_ns;

        result_check(&function, result);
        answer = prng_mix(answer + result_hash(result, &literals));
        result_cubes += result->count;
        cover_free(result);
        cover_free(function.off);
        cover_free(unimportant);
        cover_free(on);
    }
    printf("cubes: %u with %u literals, from %llu cubes\n",
           result_cubes,
           literals,
           (unsigned long long)(functions * cubes));
    report_answer(answer, 2 * blocks_made, elapsed_ns);
    return 0;
}
