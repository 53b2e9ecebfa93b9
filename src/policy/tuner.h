// tuner.h -- the learner at work in this process: it reads the counters and sets options.
//
// Owns      hak_tuner.
// Threads   hak_tuner_start: once, before the program's main. The rest runs in the sweeper's thread.
//
// The learner only writes options, with a source (HAK_FROM_LEARNER) that any setting by the user overrides; no
// allocation path knows of it. While it learns, slow paths are timed (base/timing.h). It begins when the heap
// has outgrown its first superslab, and needs the sweeper: without option purger nothing is learned.
#pragma once

#include "base/options.h"
#include "policy/learner.h"
#include "policy/score.h"

struct hak_counters {
    uint64_t wall_ns;
    uint64_t cycles;
    uint64_t processor_ns;
    uint64_t faults;
    uint64_t allocator_cycles;
    uint64_t slow_calls; // from here on read only at a round's start and end
    uint64_t sent_parcels;
    uint64_t maps;
    struct hak_sizes sizes;
};

struct hak_tuner {
    bool is_begun;
    uint32_t ticks; // in this round
    uint64_t baseline[HAK_OPTION_COUNT];
    struct hak_counters before; // at the start of the round
    struct hak_round round;     // as it stands at the last tick; not read while frozen
    double score;               // of `round`
    struct hak_learner learner;
};
HAK_INTERNAL extern struct hak_tuner hak_tuner;

enum {
#define HAK_STRATEGY(name, help) HAK_STRATEGY_IS_##name,
#include "policy/strategies.def"
    HAK_STRATEGIES,
};
enum {
#define HAK_STRATEGY_LAST(name) HAK_STRATEGIES_TRIED = HAK_STRATEGY_IS_##name + 1,
#include "policy/strategies.def"
};

// Start the learner if option elo is on.
HAK_INTERNAL void hak_tuner_start(void);
