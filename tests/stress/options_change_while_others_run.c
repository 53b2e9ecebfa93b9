// soak in: aarch64
// args: 4 60000 1
// args in tsan: 4 6000 1
// args in secure: 4 20000 1
// args in mte: 4 3000 1
// tsan
// secure too
// with features
// One thread sets every option that may change at any time, to random values and as fast as it can, and adds rules for
// sites. The others allocate in all ways, free with the requested sizes, also blocks of other threads,
// and check alignment, zeros and contents. Only a limit makes a request fail.
#include "../support/api.h"

#include "../support/model.h"
#include "../support/stress.h"

enum { OWN = 48, SHELVES = 48, OPTIONS_MOST = 128, RULES_ONE_IN = 4096 };
enum { SMALL = 2000, MEDIUM = 60000, LARGE = 3 << 20 };

struct held {
    struct ht_slot slot;
    size_t alignment; // 1: no special one
};

static struct held shelves[SHELVES];
static atomic_flag taken[SHELVES];
static _Atomic(size_t) working;
static atomic_bool is_limited; // limit_hard was set: requests may be refused
static _Atomic(size_t) changes;
static struct hak_option_info options[OPTIONS_MOST];
static size_t option_count;

static __typeof__(hak_option_set) *set_option;
static __typeof__(hak_site_rule) *add_rule;
static __typeof__(hak_free_sized) *free_with_size;
static __typeof__(hak_free_aligned_sized) *free_aligned_with_size;

// Functions for rules to name: each writes another byte, or the compiler would merge them.
#define TAKER(name, byte)                                     \
    static __attribute__((noinline)) void *name(size_t bytes) \
    {                                                         \
        char *block = malloc(bytes);                          \
        if (block != NULL) {                                  \
            *(volatile char *)block = (byte);                 \
        }                                                     \
        return block;                                         \
    }
TAKER(take_plain, 1)
TAKER(take_lasting, 2)
TAKER(take_passing, 3)
TAKER(take_aligned, 4)
TAKER(take_alone, 5)
static void *(*const takers[])(size_t) = {
    take_plain, take_lasting, take_passing, take_aligned, take_alone};
static const char *const rules[][2] = {{"take_lasting", "long"},
                                       {"take_passing", "short"},
                                       {"take_aligned", "align=2048"},
                                       {"take_alone", "unmap"}};

static size_t some_size(struct ht_random *random)
{
    const size_t dice = ht_random_below(random, 100);
    return 1 + ht_random_size(random, dice == 0 ? LARGE : dice < 10 ? MEDIUM : SMALL);
}

static void fill(struct held *held, void *block, size_t size, size_t alignment, uint64_t tag)
{
    if (block == NULL) {
        HT_CHECK(atomic_load(&is_limited), "no block of %zu, and no limit was set", size);
        return;
    }
    held->alignment = alignment;
    ht_slot_take(&held->slot, block, size, alignment > 16 ? alignment : 16, tag);
}

static void take(struct held *held, struct ht_random *random)
{
    const size_t size = some_size(random);
    const uint64_t tag = ht_random_next(random);
    const size_t dice = ht_random_below(random, 16);
    if (dice < 3) {
        const size_t alignment = (size_t)16 << ht_random_below(random, 9);
        fill(held, aligned_alloc(alignment, size), size, alignment, tag);
    } else if (dice < 7) {
        unsigned char *zeros = calloc(1, size);
        if (zeros != NULL) {
            ht_check_zero(zeros, size);
        }
        fill(held, zeros, size, 1, tag);
    } else {
        const size_t taker =
            dice < 11 ? 0 : ht_random_below(random, sizeof takers / sizeof *takers);
        fill(held, takers[taker](size), size, 1, tag);
    }
}

static void resize(struct held *held, struct ht_random *random)
{
    struct ht_slot *slot = &held->slot;
    const size_t size = some_size(random);
    ht_slot_check(slot, slot->size, "before realloc");
    unsigned char *block = realloc(slot->bytes, size);
    if (block != NULL) {
        slot->bytes = block;
        ht_slot_check(slot, size < slot->size ? size : slot->size, "after realloc");
    }
    fill(held, block, size, 1, slot->tag);
}

static void give(struct held *held, struct ht_random *random)
{
    struct ht_slot *slot = &held->slot;
    if (slot->bytes == NULL || ht_random_below(random, 4) == 0) {
        ht_slot_free(slot);
        return;
    }
    ht_slot_check(slot, slot->size, "before a free with its size");
    if (held->alignment > 1) {
        free_aligned_with_size(slot->bytes, held->alignment, slot->size);
    } else {
        free_with_size(slot->bytes, slot->size);
    }
    slot->bytes = NULL;
}

static void step(struct held *held, struct ht_random *random)
{
    if (held->slot.bytes == NULL) {
        take(held, random);
    } else if (ht_random_below(random, 4) == 0) {
        resize(held, random);
    } else {
        give(held, random);
    }
}

static void *churn(void *argument)
{
    struct ht_worker *worker = argument;
    struct ht_random *random = &worker->random;
    struct held own[OWN] = {{.alignment = 1}};
    for (size_t i = 0; i < worker->operations; i++) {
        const size_t shelf = ht_random_below(random, SHELVES);
        step(&own[ht_random_below(random, OWN)], random);
        if (!atomic_flag_test_and_set(&taken[shelf])) {
            step(&shelves[shelf], random);
            atomic_flag_clear(&taken[shelf]);
        }
    }
    for (size_t i = 0; i < OWN; i++) {
        give(&own[i], random);
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static uint64_t some_value(const struct hak_option_info *option, struct ht_random *random)
{
    if (strcmp(option->name, "limit_hard") == 0) { // a smaller one would leave nothing to do
        return ht_random_below(random, 8) != 0
                   ? 0
                   : 64 * HT_MIB + ht_random_size(random, 1024 * HT_MIB);
    }
    const size_t dice = ht_random_below(random, 8);
    if (strcmp(option->kind, "number") != 0) {
        return option->least + ht_random_below(random, option->most - option->least + 1);
    }
    if (dice < 3) {
        return dice == 0 ? option->least : dice == 1 ? option->most : option->initial;
    }
    const uint64_t value = ht_random_size(random, option->most);
    return value > option->least ? value : option->least;
}

static void change(struct ht_random *random)
{
    const struct hak_option_info *option = &options[ht_random_below(random, option_count)];
    const uint64_t value = some_value(option, random);
    if (value != 0 && strcmp(option->name, "limit_hard") == 0) {
        atomic_store(&is_limited, true);
    }
    HT_CHECK(set_option(option->name, value),
             "%s cannot be %llu",
             option->name,
             (unsigned long long)value);
    if (ht_random_below(random, RULES_ONE_IN) == 0) {
        const size_t rule = ht_random_below(random, sizeof rules / sizeof *rules);
        add_rule(rules[rule][0], rules[rule][1]); // false when there are too many
    }
    atomic_fetch_add(&changes, 1);
}

static void *work(void *argument)
{
    struct ht_worker *worker = argument;
    if (worker->index != 0) {
        return churn(argument);
    }
    while (atomic_load(&working) != 0) {
        change(&worker->random);
    }
    return NULL;
}

// All except those whose only effect is that something is printed.
static void find_options(void)
{
    HT_API(hak_option_describe);
    struct hak_option_info option;
    for (size_t i = 0; api_hak_option_describe(i, &option); i++) {
        if (option.at_run_time && strcmp(option.kind, "file") != 0 &&
            strcmp(option.name, "trace_failures") != 0) {
            HT_CHECK(option_count < OPTIONS_MOST, "more options than this test has room for");
            options[option_count++] = option;
        }
    }
    HT_CHECK(option_count > 20, "%zu options can be set", option_count);
}

int main(int count, char **arguments)
{
    const struct ht_stress stress = ht_stress_start(count, arguments);
    HT_API(hak_option_set);
    HT_API(hak_site_rule);
    HT_API(hak_free_sized);
    HT_API(hak_free_aligned_sized);
    set_option = api_hak_option_set;
    add_rule = api_hak_site_rule;
    free_with_size = api_hak_free_sized;
    free_aligned_with_size = api_hak_free_aligned_sized;
    find_options();
    for (unsigned times = 0; times < 3; times++) { // caches of ended threads are used again
        atomic_store(&working, stress.threads - 1);
        ht_run_threads(&stress, stress.threads, work);
    }
    struct ht_random random = {stress.seed};
    for (size_t i = 0; i < SHELVES; i++) {
        give(&shelves[i], &random);
    }
    printf("%zu changes of %zu options\n", atomic_load(&changes), option_count);
    return 0;
}
