// tuner.c -- see tuner.h.
#include "policy/tuner.h"

#include "base/timing.h"
#include "cache/magazine.h"
#include "cache/registry.h"
#include "cache/sweeper.h"
#include "os/os.h"
#include "owner/watch.h"
#include "policy/decisions.h"
#include "policy/relevance.h"
#include "policy/trial.h"
#include "slab/arena.h"
#include "slab/defaults.h"

struct hak_tuner hak_tuner;

_Static_assert((int)HAK_STRATEGIES_TRIED <= (int)HAK_RACE_MOST, "each has a place in the race");

static const struct {
    uint32_t strategy;
    uint32_t option;
    uint64_t value;
} settings[] = {
#define HAK_STRATEGY_SETS(name, option, value) \
    {HAK_STRATEGY_IS_##name, HAK_OPTION_IS_##option, (value)},
#include "policy/strategies.def"
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static _Atomic(uint64_t) *option_of(uint32_t number)
{
    return (_Atomic(uint64_t) *)&hak_options + number;
}

// Set every option that any strategy sets: to this strategy's value, else to the baseline's.
static void apply(uint32_t strategy)
{
    for (unsigned i = 0; i < SETTINGS; i++) {
        uint64_t value = hak_tuner.baseline[settings[i].option];
        for (unsigned j = 0; j < SETTINGS; j++) {
            if (settings[j].strategy == strategy && settings[j].option == settings[i].option) {
                value = settings[j].value;
            }
        }
        if (value != hak_load_relaxed(option_of(settings[i].option))) {
            hak_defaults_choose(option_of(settings[i].option), value, HAK_FROM_LEARNER);
        }
    }
    const bool is_timed = hak_tuner.learner.state != HAK_LEARNER_FROZEN;
    hak_defaults_choose(&hak_options.debug_timing, is_timed, HAK_FROM_LEARNER);
}

// The slow paths that the program waits for, and purges. Work that several of them share is part of each.
static uint64_t allocator_cycles(void)
{
    static const uint8_t paths[] = {HAK_TIMING_refill,
                                    HAK_TIMING_spill,
                                    HAK_TIMING_parcel,
                                    HAK_TIMING_large_alloc,
                                    HAK_TIMING_large_free,
                                    HAK_TIMING_purge};
    uint64_t cycles = 0;
    for (unsigned i = 0; i < sizeof paths; i++) {
        cycles += hak_load_relaxed(&hak_timings[paths[i]].cycles);
    }
    return cycles;
}

static void add_classes(struct hak_counters *counters, const struct hak_cache *cache)
{
    for (unsigned i = 0; i < HAK_SMALL_CLASSES; i++) {
        const struct hak_class_counts *counts = &cache->magazines[i].counts;
        counters->sizes.blocks[i] +=
            hak_load_relaxed(&counts->refilled_blocks) + hak_load_relaxed(&counts->returned_blocks);
        counters->sizes.batches += hak_load_relaxed(&counts->refills);
        counters->slow_calls += hak_load_relaxed(&counts->spills);
    }
}

static void read_work(struct hak_counters *counters)
{
    struct hak_sizes *sizes = &counters->sizes;
    *sizes = (struct hak_sizes){.batches = 0};
    counters->slow_calls = 0;
    counters->sent_parcels = 0;
    uint64_t large_blocks = 0;
    hak_lock_take(&hak_watch.lock); // no cache comes to rest meanwhile, whose counts move
    HAK_EACH_CACHE (cache) {
        add_classes(counters, cache);
        counters->sent_parcels += hak_load_relaxed(&cache->counts.sent_parcels);
        for (unsigned i = 0; i <= HAK_LARGE_BINS; i++) {
            const uint64_t blocks = hak_load_relaxed(&cache->large_counts[i]);
            sizes->blocks[HAK_SMALL_CLASSES + i] += blocks;
            large_blocks += blocks;
        }
    }
    add_classes(counters, &hak_cache_shared);
    hak_lock_drop(&hak_watch.lock);
    counters->slow_calls += sizes->batches + counters->sent_parcels;
    sizes->batches += large_blocks;
    counters->maps = hak_load_relaxed(&hak_os_counts.maps);
}

static void read_counters(struct hak_counters *counters)
{
    counters->wall_ns = hak_os_now_ns();
    counters->cycles = HAK_CYCLES();
    counters->allocator_cycles = allocator_cycles();
    hak_os_usage(&counters->processor_ns, &counters->faults);
}

static void round_start(void)
{
    hak_tuner.ticks = 0;
    apply(hak_tuner.learner.strategy);
    read_counters(&hak_tuner.before);
    read_work(&hak_tuner.before);
}

static void log_decision(void)
{
    const struct hak_phase *phase = &hak_tuner.learner.now;
    const struct hak_estimate saving = hak_sequence_estimate(&phase->duel);
    const struct hak_decision decision = {
        .kind = HAK_DECISION_LEARNER,
        .verdict = phase->winner == 0 ? HAK_VERDICT_FIRST : HAK_VERDICT_SECOND,
        .values = {0, phase->candidate},
        .games = phase->duel.count,
        .difference_ppm = (int64_t)(saving.mean * 1e6),
        .low_ppm = (int64_t)(saving.low * 1e6),
        .high_ppm = (int64_t)(saving.high * 1e6),
    };
    hak_decisions_add(&decision);
}

static void round_read(void)
{
    const struct hak_counters *before = &hak_tuner.before;
    struct hak_counters now;
    read_counters(&now);
    const uint64_t cycles = now.cycles - before->cycles;
    const double ns_of_cycle =
        cycles > 0 ? (double)(now.wall_ns - before->wall_ns) / (double)cycles : 0;
    hak_tuner.round = (struct hak_round){
        .wall_ns = now.wall_ns - before->wall_ns,
        .processor_ns = hak_os_gained(now.processor_ns, before->processor_ns),
        .allocator_ns =
            (uint64_t)((double)(now.allocator_cycles - before->allocator_cycles) * ns_of_cycle),
        .faults = hak_os_gained(now.faults, before->faults),
        .resident_bytes = hak_os_resident_bytes(),
    };
    hak_tuner.score = hak_score_of_round(&hak_tuner.round);
}

// A mask of the strategies that could have made a difference in the round.
static uint32_t relevant_strategies(const struct hak_counters *now)
{
    const struct hak_counters *before = &hak_tuner.before;
    const struct hak_activity activity = {
        .wall_ns = now->wall_ns - before->wall_ns,
        .processor_ns = hak_os_gained(now->processor_ns, before->processor_ns),
        .faults = hak_os_gained(now->faults, before->faults),
        .slow_calls = now->slow_calls - before->slow_calls,
        .sent_parcels = now->sent_parcels - before->sent_parcels,
        .maps = now->maps - before->maps,
        .waiting_bytes = hak_load_relaxed(&hak_arena.dirty_bytes),
        .magazine_bytes = hak_magazine_grown_bytes(),
    };
    uint32_t relevant = 0;
    for (unsigned i = 0; i < SETTINGS && settings[i].strategy < HAK_STRATEGIES_TRIED; i++) {
        const uint32_t option = settings[i].option;
        const bool may_set = hak_option_source_of(option_of(option)) <= HAK_FROM_LEARNER;
        const uint64_t baseline = hak_tuner.baseline[option];
        if (may_set && hak_relevance_of(option, settings[i].value, baseline, &activity)) {
            relevant |= 1U << settings[i].strategy;
        }
    }
    return relevant;
}

static void round_end(void)
{
    struct hak_counters now;
    read_counters(&now);
    read_work(&now);
    struct hak_sizes *sizes = &now.sizes;
    for (unsigned i = 0; i < HAK_DRIFT_SIZES; i++) {
        sizes->blocks[i] -= hak_tuner.before.sizes.blocks[i];
    }
    sizes->batches -= hak_tuner.before.sizes.batches;
    const uint32_t decided = hak_tuner.learner.decided;
    hak_learner_note(
        &hak_tuner.learner, hak_tuner.score, hak_tuner.ticks, sizes, relevant_strategies(&now));
    if (hak_tuner.learner.decided != decided) {
        log_decision();
    }
}

static void begin(void)
{
    // Beyond the first superslab the defaults that depend on the machine are set (slab/defaults.c).
    if (hak_load_relaxed(&hak_arena.super_bytes) + hak_load_relaxed(&hak_arena.mapping_bytes) <=
        HAK_SUPER_BYTES) {
        return;
    }
    for (unsigned i = 0; i < HAK_OPTION_COUNT; i++) {
        hak_tuner.baseline[i] = hak_load_relaxed(option_of(i));
    }
    hak_tuner.is_begun = true;
    round_start();
}

// Called at each tick of the sweeper, which does not stop while a learner is on.
static void tick(void)
{
    if (!hak_tuner.is_begun) {
        begin();
        return;
    }
    hak_tuner.ticks++;
    if (hak_tuner.learner.state != HAK_LEARNER_FROZEN) {
        round_read();
    }
    if (hak_learner_is_enough(&hak_tuner.learner, hak_tuner.score, hak_tuner.ticks)) {
        round_end();
        round_start();
    }
}

void hak_tuner_start(void)
{
    if (hak_load_relaxed(&hak_options.elo) != 0) {
        hak_sweeper_call(tick, true);
    }
}
