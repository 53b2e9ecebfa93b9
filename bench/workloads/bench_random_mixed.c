// bench_random_mixed.c -- replaces random blocks of random sizes in a working set.
//
// Every iteration frees one random block of the set and allocates one of another random size in
// its place. The second argument is the number of live blocks (`8192`) or, with a B after it, the
// largest size in bytes (`8192B`); the options set the other one. Defaults: 256 live blocks, sizes
// of 16 to 1024 bytes. Answer: the mixed sum of the stamps of all blocks freed.
#include "support/args.h"
#include "support/block.h"

static const char usage[] =
    "bench_random_mixed [iterations] [working_set | max_size followed by B] [seed]\n"
    "                          [--working-set blocks] [--max-size bytes]";

enum {
    SIZE_MIN = 16,
    WORKING_SET_DEFAULT = 256,
    WORKING_SET_MAX = 1 << 24,
    SIZE_MAX_DEFAULT = 1024,
    SIZE_MAX_MAX = 1 << 26,
};

struct mix {
    uint64_t iterations;
    uint32_t working_set;
    uint32_t size_max;
    uint64_t seed;
};

// "8192" is a working set, "8192B" a size.
static void mix_read_set_or_size(struct mix *mix, const struct args *args, const char *text)
{
    char digits[24];
    size_t length = strlen(text);
    if (length < 2 || length > sizeof digits || text[length - 1] != 'B') {
        mix->working_set = (uint32_t)args_parse(args, "working_set", text, 1, WORKING_SET_MAX);
        return;
    }
    memcpy(digits, text, length - 1);
    digits[length - 1] = '\0';
    mix->size_max = (uint32_t)args_parse(args, "max_size", digits, SIZE_MIN, SIZE_MAX_MAX);
}

static void mix_read_option(struct mix *mix, struct args *args, const char *option)
{
    if (strcmp(option, "--working-set") == 0) {
        mix->working_set = (uint32_t)args_required(args, option, 1, WORKING_SET_MAX);
    } else if (strcmp(option, "--max-size") == 0) {
        mix->size_max = (uint32_t)args_required(args, option, SIZE_MIN, SIZE_MAX_MAX);
    } else {
        args_reject(args, option, "is no option");
    }
}

static struct mix mix_read(int argc, char **argv)
{
    struct args args = args_begin(argc, argv, usage);
    struct mix mix = {.iterations = 10000000,
                      .working_set = WORKING_SET_DEFAULT,
                      .size_max = SIZE_MAX_DEFAULT,
                      .seed = 42};
    unsigned position = 0;
    for (const char *text = args_text(&args); text != NULL; text = args_text(&args)) {
        if (strncmp(text, "--", 2) == 0) {
            mix_read_option(&mix, &args, text);
            continue;
        }
        switch (position++) {
        case 0:
            mix.iterations = args_parse(&args, "iterations", text, 1, UINT64_MAX / 4);
            break;
        case 1:
            mix_read_set_or_size(&mix, &args, text);
            break;
        case 2:
            mix.seed = args_parse(&args, "seed", text, 0, UINT64_MAX);
            break;
        default:
            args_reject(&args, text, "is one argument too many");
        }
    }
    return mix;
}

int main(int argc, char **argv)
{
    struct mix mix = mix_read(argc, argv);
    struct block *set = report_table(mix.working_set, sizeof *set);
    struct prng prng = prng_seed(mix.seed, 0);
    uint64_t answer = 0;

    uint64_t begin_ns = report_clock_ns();
    for (uint32_t i = 0; i < mix.working_set; i++) {
        block_take(&set[i], prng_between(&prng, SIZE_MIN, mix.size_max), i);
    }
    for (uint64_t i = 0; i < mix.iterations; i++) {
        uint32_t victim = prng_below(&prng, mix.working_set);
        answer += block_give(&set[victim], victim);
        block_take(&set[victim], prng_between(&prng, SIZE_MIN, mix.size_max), victim);
    }
    for (uint32_t i = 0; i < mix.working_set; i++) {
        answer += block_give(&set[i], i);
    }
    uint64_t elapsed_ns = report_clock_ns() - begin_ns;

    report_answer(answer, 2 * (mix.iterations + mix.working_set), elapsed_ns);
    return 0;
}
