// experiment.c -- see experiment.h.
#include "policy/experiment.h"

#include <string.h>

#include "base/format.h"
#include "base/options.h"
#include "base/variants.h"
#include "cache/due.h"
#include "cache/registry.h"
#include "cache/seen.h"
#include "cache/sweeper.h"
#include "front/options.h"
#include "os/os.h"
#include "policy/decisions.h"
#include "policy/trial.h"
#include "profile/sampler.h"
#include "slab/arena.h"
#include "slab/defaults.h"

// A half lasts long enough that what the other value has left behind is a small part of it.
enum { HALF_TICKS_LEAST = 5, DECAYS_IN_A_HALF = 2 };
// How many threads are watched in a half; the processor time of the others is left out.
enum { WATCHED_MOST = 64 };
#define PAGE_BYTES 4096 // a fault is counted for each, also where the kernel's pages are larger

struct watched {
    int thread;
    unsigned group;
    uint64_t processor_ns;
    uint64_t faults;
};

// The counters at the start of a half.
struct moment {
    uint64_t wall_ns;
    uint64_t cycles; // of the processor's clock
    uint64_t processor_ns;
    uint64_t slow_cycles[HAK_VARIANTS];
    uint64_t retaken_bytes[HAK_VARIANTS];
};

static struct {
    uint32_t option;
    uint64_t values[HAK_VARIANTS];
    uint64_t timing; // option debug_timing as it was
    bool is_begun;
    unsigned ticks; // of this half
    unsigned half_ticks;
    size_t waiting_bytes[HAK_VARIANTS]; // summed up over the ticks of this half
    unsigned watched_count;
    struct watched watched[WATCHED_MOST];
    struct moment before;
    struct hak_trial trial;
} experiment;

static bool is_of_caches(void)
{
    return experiment.option != HAK_OPTION_IS_decay_ms;
}

static _Atomic(uint64_t) *option_place(void)
{
    return (_Atomic(uint64_t) *)&hak_options + experiment.option;
}

static void watch_threads(void)
{
    experiment.watched_count = 0;
    struct hak_cache *cache = hak_registry_first();
    for (; cache != NULL && experiment.watched_count < WATCHED_MOST; cache = cache->next) {
        struct watched *watched = &experiment.watched[experiment.watched_count];
        watched->thread = hak_load_relaxed(&cache->thread_id);
        watched->group = hak_cache_group(cache);
        const bool is_thread = cache->owner.role == HAK_ROLE_THREAD &&
                               hak_load_relaxed(&cache->owner.state) == HAK_OWNER_LIVE;
        if (is_thread &&
            hak_os_thread_usage(watched->thread, &watched->processor_ns, &watched->faults)) {
            experiment.watched_count++;
        }
    }
}

static void half_start(void)
{
    hak_store_relaxed(&hak_variants.swap, experiment.trial.swap);
    experiment.ticks = 0;
    memset(experiment.waiting_bytes, 0, sizeof experiment.waiting_bytes);
    if (is_of_caches()) {
        hak_sampler_kick();
        watch_threads();
    }
    struct moment *now = &experiment.before;
    uint64_t faults;
    hak_os_usage(&now->processor_ns, &faults);
    now->wall_ns = hak_os_now_ns();
    now->cycles = HAK_CYCLES();
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        now->slow_cycles[group] = hak_load_relaxed(&hak_variants.cycles[group]);
        now->retaken_bytes[group] = hak_load_relaxed(&hak_variants.retaken_bytes[group]);
    }
}

static void add_threads(struct hak_round rounds[HAK_VARIANTS])
{
    for (unsigned i = 0; i < experiment.watched_count; i++) {
        const struct watched *watched = &experiment.watched[i];
        uint64_t processor_ns;
        uint64_t faults;
        if (hak_os_thread_usage(watched->thread, &processor_ns, &faults) &&
            processor_ns >= watched->processor_ns && faults >= watched->faults) {
            rounds[watched->group].processor_ns += processor_ns - watched->processor_ns;
            rounds[watched->group].faults += faults - watched->faults;
        }
    }
}

static void add_magazines(struct hak_round rounds[HAK_VARIANTS])
{
    HAK_EACH_CACHE (cache) {
        hak_lock_take(&cache->owner.lock);
        rounds[hak_cache_group(cache)].resident_bytes += cache->magazine_bytes;
        hak_lock_drop(&cache->owner.lock);
    }
}

static void half_end(struct hak_round rounds[HAK_VARIANTS])
{
    const struct moment *before = &experiment.before;
    uint64_t processor_ns;
    uint64_t faults;
    hak_os_usage(&processor_ns, &faults);
    // After fork the child's processor time begins at zero: this half counts as idle.
    const uint64_t used_ns = hak_os_gained(processor_ns, before->processor_ns);
    const uint64_t wall_ns = hak_os_now_ns() - before->wall_ns;
    const uint64_t cycles = HAK_CYCLES() - before->cycles;
    const double ns_of_cycle = cycles > 0 ? (double)wall_ns / (double)cycles : 0;
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        const uint64_t slow =
            hak_load_relaxed(&hak_variants.cycles[group]) - before->slow_cycles[group];
        const uint64_t retaken =
            hak_load_relaxed(&hak_variants.retaken_bytes[group]) - before->retaken_bytes[group];
        rounds[group] =
            is_of_caches()
                ? (struct hak_round){.wall_ns = wall_ns,
                                     .allocator_ns = (uint64_t)((double)slow * ns_of_cycle)}
                : (struct hak_round){.wall_ns = wall_ns,
                                     .processor_ns = used_ns,
                                     .faults = retaken / PAGE_BYTES,
                                     .resident_bytes =
                                         experiment.waiting_bytes[group] / experiment.half_ticks};
    }
    if (is_of_caches()) {
        add_threads(rounds);
        add_magazines(rounds);
    }
}

static struct hak_decision standing(void)
{
    const struct hak_trial *trial = &experiment.trial;
    const struct hak_estimate estimate = hak_sequence_estimate(&trial->sequence);
    return (struct hak_decision){
        .kind = HAK_DECISION_TRIAL,
        .verdict = trial->verdict,
        .option = experiment.option,
        .values = {experiment.values[0], experiment.values[1]},
        .games = trial->sequence.count,
        .difference_ppm = (int64_t)(estimate.mean * 1e6),
        .low_ppm = (int64_t)(estimate.low * 1e6),
        .high_ppm = (int64_t)(estimate.high * 1e6),
        .costs = {trial->total[0], trial->total[1]},
    };
}

static void tick(void);

static void experiment_end(void)
{
    const uint32_t verdict = experiment.trial.verdict;
    const struct hak_decision decision = standing();
    hak_store_relaxed(&hak_variants.option, 0);
    if (verdict != HAK_VERDICT_SAME) {
        const uint64_t winner = experiment.values[verdict == HAK_VERDICT_SECOND];
        hak_defaults_choose(option_place(), winner, HAK_FROM_LEARNER);
    }
    hak_defaults_choose(&hak_options.debug_timing, experiment.timing, HAK_FROM_LEARNER);
    if (is_of_caches()) {
        hak_sampler_kick();
    }
    hak_decisions_end_running();
    hak_decisions_add(&decision);
    hak_sweeper_call_no_more(tick);
}

static void experiment_begin(void)
{
    experiment.timing = hak_load_relaxed(&hak_options.debug_timing);
    if (is_of_caches()) {
        hak_defaults_choose(&hak_options.debug_timing, 1, HAK_FROM_LEARNER);
    }
    hak_trial_start(&experiment.trial, hak_os_random());
    hak_store_relaxed(&hak_variants.values[0], experiment.values[0]);
    hak_store_relaxed(&hak_variants.values[1], experiment.values[1]);
    hak_store_relaxed(&hak_variants.option, experiment.option);
    experiment.is_begun = true;
    const struct hak_decision decision = standing();
    hak_decisions_set_running(&decision);
    half_start();
}

static void count_waiting(void)
{
    for (unsigned group = 0; group < HAK_VARIANTS; group++) {
        experiment.waiting_bytes[group] += hak_load_relaxed(&hak_arena.waiting_bytes[group]);
    }
}

// Called at each tick of the sweeper.
static void tick(void)
{
    if (!experiment.is_begun) {
        experiment_begin();
        return;
    }
    if (!is_of_caches()) {
        count_waiting();
    }
    if (++experiment.ticks < experiment.half_ticks) {
        return;
    }
    struct hak_round rounds[HAK_VARIANTS];
    half_end(rounds);
    if (hak_trial_note(&experiment.trial, rounds)) {
        experiment_end();
        return;
    }
    if (experiment.trial.half == 0) {
        const struct hak_decision decision = standing();
        hak_decisions_set_running(&decision);
    }
    half_start();
}

static void complain(const char *text, const char *what)
{
    char line[512];
    hak_os_print(
        line, hak_format(line, sizeof line, "hakmem: ab=%s: %s; nothing is tried\n", text, what));
}

// Parse "OPTION=VALUE|VALUE". Returns NULL, or what is wrong.
static const char *parse(const char *text)
{
    char words[256];
    if (strlen(text) >= sizeof words) {
        return "too long";
    }
    memcpy(words, text, strlen(text) + 1);
    char *first = strchr(words, '=');
    char *second = first != NULL ? strchr(first, '|') : NULL;
    if (second == NULL) {
        return "not OPTION=VALUE|VALUE, as decay_ms=1000|10000";
    }
    *second = '\0';
    const struct hak_option_row *row = hak_option_named(words, (size_t)(first - words));
    if (row == NULL) {
        return "there is no such option; 'hakmem options' lists them";
    }
    const uint32_t option = (uint32_t)(row - hak_option_rows);
    if (option != HAK_OPTION_IS_ace && option != HAK_OPTION_IS_decay_ms &&
        option != HAK_OPTION_IS_magazine_bytes) {
        return "only ace, decay_ms and magazine_bytes can have two values at a time";
    }
    uint64_t *values = experiment.values;
    if (!hak_option_parse(row, first + 1, &values[0]) ||
        !hak_option_parse(row, second + 1, &values[1])) {
        return "the option cannot have this value; 'hakmem options' lists its values";
    }
    if (values[0] == values[1]) {
        return "the two values are the same";
    }
    experiment.option = option;
    return NULL;
}

static bool is_timing_off(void)
{
    return hak_load_relaxed(&hak_options.debug_timing) == 0 &&
           hak_option_source_of(&hak_options.debug_timing) > HAK_FROM_LEARNER;
}

static const char *what_forbids_it(void)
{
    if (is_of_caches() && hak_seen_is_wanted()) {
        return "there are no magazines, as an option checks or hardens every block";
    }
    if (is_of_caches() && is_timing_off()) {
        return "it has to time slow paths, and debug_timing=off is set";
    }
    if (hak_load_relaxed(&hak_options.elo) != 0) {
        return "the learner (option elo) sets options at the same time";
    }
    if (hak_load_relaxed(&hak_options.purger) == 0 ||
        hak_load_relaxed(&hak_options.deterministic) != 0) {
        return "it needs the sweeper's thread (purger=on, deterministic=off)";
    }
    return NULL;
}

void hak_experiment_start(void)
{
    if (hak_load_relaxed(&hak_options.ab) == 0) {
        return;
    }
    const char *text = hak_option_file(&hak_options.ab);
    const char *wrong = parse(text);
    wrong = wrong != NULL ? wrong : what_forbids_it();
    if (wrong != NULL) {
        complain(text, wrong);
        return;
    }
    const uint64_t *values = experiment.values;
    const uint64_t longest = values[0] > values[1] ? values[0] : values[1];
    experiment.half_ticks =
        HALF_TICKS_LEAST +
        (is_of_caches() ? 0 : (unsigned)(DECAYS_IN_A_HALF * longest / HAK_TICK_MS));
    hak_sweeper_call(tick, true);
}
