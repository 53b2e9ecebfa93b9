// The learner freezes the winner, doubts it after a while, sleeps while the sizes stay, and starts again when they
// drift. Noise in the sizes is no drift, and an idle program teaches nothing. The learner decides within ten seconds, in a later
// phase within five. It does not try what is not relevant to the program, and trials cost a hundredth of the time.
#include "../unit.h"
#include "noise.h"
#include "policy/learner.h"
#include "policy/score.h"

enum { STRATEGIES = 14, ROUNDS_MOST = 200, SEEDS = 200, TICKS_MOST = 100 };

enum { ALL = (1 << STRATEGIES) - 1, FEW = 0x3e }; // masks of strategies

// Some thousand blocks around a size, with random counts.
static struct hak_sizes sizes_around(unsigned size_class)
{
    struct hak_sizes sizes = {.batches = 256};
    for (unsigned i = 0; i < 8; i++) {
        sizes.blocks[size_class + i] = (uint64_t)(1000 * (1 + 0.3 * noise()));
    }
    return sizes;
}

struct world {
    unsigned best; // strategy
    double gain;   // compared with the others
    unsigned size_class;
    double noise_part;   // of the costs, in one round
    unsigned relevant;   // a mask of strategies
    const double *costs; // of each strategy, in place of `best` and `gain`
};

static unsigned ticks_of[HAK_RACE_MOST]; // for each strategy
static double lost_ticks; // of the program's time, beyond what the baseline would have cost

static double cost_of(const struct world *world, uint32_t strategy)
{
    const double gain = strategy == world->best ? world->gain : 0;
    return 0.2 * (world->costs != NULL ? world->costs[strategy] : 1 - gain);
}

// The allocator's costs with the baseline are a sixth of the time. Returns the ticks.
static unsigned play_round(struct hak_learner *learner, const struct world *world)
{
    const uint32_t strategy = learner->strategy;
    const double cost = cost_of(world, strategy);
    const double least = cost_of(world, 0);
    const struct hak_sizes sizes = sizes_around(world->size_class);
    const double score = cost * (1 + world->noise_part * noise());
    uint32_t ticks = 1;
    while (!hak_learner_is_enough(learner, score, ticks)) {
        ticks++;
    }
    ticks_of[strategy] += ticks;
    lost_ticks += (cost / (1 + cost) - least / (1 + least)) * ticks;
    hak_learner_note(learner, score, ticks, &sizes, world->relevant);
    return ticks;
}

static unsigned play_until_decided(struct hak_learner *learner, const struct world *world)
{
    const uint32_t decided = learner->decided;
    unsigned ticks = 0;
    while (learner->decided == decided) {
        ticks += play_round(learner, world);
        UNIT_CHECK(ticks < TICKS_MOST);
    }
    return ticks;
}

static void what_wins_is_kept_within_its_time(void)
{
    unsigned right = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct hak_learner learner = {.rounds = 0};
        const struct world world = {1 + seed % (STRATEGIES - 1), 0.2, 4, 0.05, ALL, NULL};
        play_until_decided(&learner, &world);
        right += learner.now.winner == world.best && learner.strategy == world.best;
    }
    UNIT_CHECK(right >= SEEDS * 95 / 100);
}

static void luck_is_not_kept(void)
{
    unsigned wrong = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct hak_learner learner = {.rounds = 0};
        const struct world world = {0, 0, 4, 0.2, ALL, NULL};
        play_until_decided(&learner, &world);
        wrong += learner.now.winner != 0;
    }
    UNIT_CHECK(wrong <= SEEDS * 5 / 100);
}

static void a_drift_opens_it_again_and_chance_does_not(void)
{
    struct hak_learner learner = {.rounds = 0};
    struct world world = {3, 0.2, 4, 0.05, FEW, NULL};
    play_until_decided(&learner, &world);
    for (unsigned i = 0; i < 1000; i++) {
        play_round(&learner, &world);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_FROZEN);
    UNIT_EQUAL(learner.races, 1);
    UNIT_EQUAL(learner.strategy, 3);
    world.size_class = 30;
    world.best = 5;
    unsigned rounds = 0;
    for (; learner.state == HAK_LEARNER_FROZEN; rounds++) {
        UNIT_CHECK(rounds < ROUNDS_MOST);
        play_round(&learner, &world);
    }
    UNIT_CHECK(rounds <= HAK_WINDOW_ROUNDS * (HAK_PHASE_WINDOWS + 1));
    UNIT_EQUAL(learner.races, 2);
    UNIT_EQUAL(learner.strategy, 0); // at once, while a new race starts
    play_until_decided(&learner, &world);
    UNIT_EQUAL(learner.now.winner, 5);
}

// A program that goes back and forth between phases: what each needs is learned once, and applied again within three seconds.
static void what_was_learned_of_a_phase_is_back_with_it(void)
{
    struct hak_learner learner = {.rounds = 0};
    struct world worlds[] = {
        {3, 0.2, 4, 0.05, FEW, NULL}, {5, 0.2, 30, 0.05, FEW, NULL}, {0, 0, 50, 0.05, FEW, NULL}};
    for (unsigned turn = 0; turn < 9; turn++) {
        const struct world *world = &worlds[turn % 3];
        for (unsigned rounds = 0; rounds < HAK_WINDOW_ROUNDS * (HAK_PHASE_WINDOWS + 1); rounds++) {
            play_round(&learner, world);
        }
        if (turn < 3) {
            play_until_decided(&learner, world);
        }
        UNIT_EQUAL(learner.state, HAK_LEARNER_FROZEN);
        UNIT_EQUAL(learner.now.winner, world->best);
        UNIT_EQUAL(learner.strategy, world->best);
    }
    UNIT_EQUAL(learner.races, 3);
    UNIT_EQUAL(learner.recalled, 6);
    UNIT_EQUAL(learner.decided, 9);
}

// A phase that ends in the middle of a race is not mistaken for the next one.
static void a_race_is_left_for_a_phase_that_is_known(void)
{
    struct hak_learner learner = {.rounds = 0};
    const struct world there = {3, 0.2, 4, 0.05, FEW, NULL};
    const struct world elsewhere = {5, 0.2, 30, 0.05, FEW, NULL};
    play_until_decided(&learner, &there);
    while (learner.races < 2) {
        play_round(&learner, &elsewhere);
    }
    for (unsigned rounds = 0; rounds < 3; rounds++) {
        play_round(&learner, &elsewhere);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_RACING);
    for (unsigned rounds = 0; learner.recalled < 1; rounds++) {
        UNIT_CHECK(rounds <= HAK_WINDOW_ROUNDS * (HAK_PHASE_WINDOWS + 1));
        play_round(&learner, &there);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_FROZEN);
    UNIT_EQUAL(learner.strategy, 3);
    UNIT_EQUAL(learner.phase_count, 1);
}

// And if the old winner wins no longer, the newer decision is the one that is applied again.
static void what_was_decided_is_replaced_by_a_later_one(void)
{
    struct hak_learner learner = {.rounds = 0};
    struct world there = {3, 0.2, 4, 0.02, FEW, NULL};
    const struct world elsewhere = {5, 0.2, 30, 0.02, FEW, NULL};
    play_until_decided(&learner, &there);
    there.best = 0;
    for (unsigned i = 0; i < HAK_FROZEN_ROUNDS; i++) {
        play_round(&learner, &there);
    }
    play_until_decided(&learner, &there);
    UNIT_EQUAL(learner.phase_count, 1);
    while (learner.races < 2) {
        play_round(&learner, &elsewhere);
    }
    play_until_decided(&learner, &elsewhere);
    while (learner.recalled < 1) {
        play_round(&learner, &there);
    }
    UNIT_EQUAL(learner.now.winner, 0);
}

static void after_a_while_it_must_win_again(void)
{
    struct hak_learner learner = {.rounds = 0};
    struct world world = {3, 0.2, 4, 0.02, ALL, NULL};
    play_until_decided(&learner, &world);
    UNIT_EQUAL(learner.now.winner, 3);
    world.best = 0; // the winner wins no longer, with the same sizes
    for (unsigned i = 0; i < HAK_FROZEN_ROUNDS; i++) {
        UNIT_EQUAL(learner.state, HAK_LEARNER_FROZEN);
        play_round(&learner, &world);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_RACING);
    play_until_decided(&learner, &world);
    UNIT_EQUAL(learner.now.winner, 0);
}

static void trying_costs_a_hundredth(void)
{
    double ticks = 0;
    double lost = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct hak_learner learner = {.rounds = 0};
        double costs[STRATEGIES] = {1};
        for (unsigned i = 1; i < STRATEGIES; i++) {
            costs[i] = 1 + (i * i + seed) % 17 / 8.0; // some cost three times as much
        }
        const struct world world = {
            .size_class = 4, .noise_part = 0.07, .relevant = ALL, .costs = costs};
        lost_ticks = 0;
        ticks += play_until_decided(&learner, &world);
        // Beyond the budget at most one round that was too expensive in its second half.
        UNIT_CHECK(lost_ticks <= HAK_BUDGET_PART * (double)TICKS_MOST + 0.5);
        UNIT_EQUAL(learner.now.winner, 0);
        lost += lost_ticks;
    }
    UNIT_CHECK(lost <= ticks * HAK_BUDGET_PART);
}

static void what_is_far_too_dear_gets_one_tick(void)
{
    struct hak_learner learner = {.rounds = 0};
    const double costs[] = {1, 1, 1, 10, 1};
    const struct world world = {
        .size_class = 4, .noise_part = 0.05, .relevant = 0x1e, .costs = costs};
    memset(ticks_of, 0, sizeof ticks_of);
    play_until_decided(&learner, &world);
    UNIT_EQUAL(ticks_of[3], 1);
    UNIT_EQUAL(learner.now.winner, 0);
}

static void what_is_not_relevant_is_not_tried(void)
{
    struct hak_learner learner = {.rounds = 0};
    const double costs[] = {1, 0.5, 0.8, 0.7};
    struct world world = {.size_class = 4, .noise_part = 0.03, .costs = costs};
    memset(ticks_of, 0, sizeof ticks_of);
    for (unsigned i = 0; i < 100; i++) {
        play_round(&learner, &world);
    }
    UNIT_CHECK(learner.races == 0 && learner.decided == 0 && learner.strategy == 0);
    world.relevant = 1U << 2 | 1U << 3;
    play_until_decided(&learner, &world);
    UNIT_EQUAL(ticks_of[1], 0);
    UNIT_EQUAL(learner.strategy, 3);
}

static void an_idle_program_teaches_nothing(void)
{
    struct hak_learner learner = {.rounds = 0};
    const struct world busy = {3, 0.2, 4, 0.02, FEW, NULL};
    const struct hak_sizes none = {.batches = 0};
    while (learner.races == 0) {
        play_round(&learner, &busy);
    }
    const uint32_t strategy = learner.strategy;
    for (unsigned i = 0; i < 1000; i++) {
        hak_learner_note(&learner, -1, HAK_ROUND_TICKS, &none, FEW);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_RACING);
    UNIT_EQUAL(learner.strategy, strategy);
    UNIT_CHECK(learner.ticks == 0 && learner.race.laps == 0);
}

static void a_score_counts_time_faults_and_memory(void)
{
    const struct hak_round round = {1000000000, 1000000000, 50000000, 1000, 1U << 30};
    const double score = hak_score_of_round(&round);
    UNIT_CHECK(score > 0.178 && score < 0.179); // 0.0507 / 0.9493 + 0.125
    struct hak_round more = round;
    more.allocator_ns *= 2;
    UNIT_CHECK(hak_score_of_round(&more) > score);
    more = round;
    more.faults *= 100;
    UNIT_CHECK(hak_score_of_round(&more) > score);
    more = round;
    more.resident_bytes *= 2;
    UNIT_CHECK(hak_score_of_round(&more) > score);
    more = round;
    more.processor_ns = round.wall_ns / 100;
    UNIT_CHECK(hak_score_of_round(&more) < 0);
    // Nothing but the allocator's work: expensive, but a finite number.
    more = round;
    more.allocator_ns = 2 * more.processor_ns;
    UNIT_CHECK(hak_score_of_round(&more) > 1);
}

// In the other world the learner has five seconds to decide, with the same certainty.
static unsigned quick_decisions_for(unsigned best, double gain, double noise_part)
{
    enum { QUICK_TICKS_MOST = 48 };
    unsigned decisions = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct hak_learner learner = {.rounds = 0};
        const struct world before = {0, 0, 4, 0.05, 0, NULL};
        const struct world after = {best, gain, 30, noise_part, FEW, NULL};
        for (unsigned i = 0; i < 100 + seed; i++) {
            play_round(&learner, &before);
        }
        unsigned ticks = 0;
        while (learner.decided < 1) {
            ticks += play_round(&learner, &after);
            UNIT_CHECK(ticks <= QUICK_TICKS_MOST);
        }
        decisions += learner.strategy == best;
    }
    return decisions;
}

static void a_later_phase_is_decided_within_five_seconds(void)
{
    UNIT_CHECK(quick_decisions_for(3, 0.2, 0.05) >= SEEDS * 95 / 100);
    UNIT_CHECK(quick_decisions_for(0, 0, 0.2) >= SEEDS * 95 / 100);
}

// The strategy in force stays in a phase in which no strategy could gain anything, whatever its sizes are.
static void while_nothing_is_relevant_nothing_is_learned(void)
{
    struct hak_learner learner = {.rounds = 0};
    const struct world busy = {3, 0.2, 4, 0.02, FEW, NULL};
    const struct world quiet = {0, 0, 30, 0.02, 0, NULL};
    play_until_decided(&learner, &busy);
    for (unsigned i = 0; i < 1000; i++) {
        play_round(&learner, &quiet);
        UNIT_EQUAL(learner.strategy, 3);
    }
    play_round(&learner, &busy);
    UNIT_EQUAL(learner.races, 1);
    UNIT_EQUAL(learner.recalled, 0);
}

// A program that starts, for instance, to free blocks in other threads, with the same sizes.
static void what_becomes_relevant_is_tried(void)
{
    struct hak_learner learner = {.rounds = 0};
    const struct world before = {0, 0, 4, 0.02, 1 << 2, NULL};
    const struct world after = {3, 0.2, 4, 0.02, FEW, NULL};
    play_until_decided(&learner, &before);
    UNIT_EQUAL(learner.strategy, 0);
    for (unsigned rounds = 0; learner.races < 2; rounds++) {
        UNIT_CHECK(rounds <= HAK_WINDOW_ROUNDS * (HAK_PHASE_WINDOWS + 1));
        play_round(&learner, &after);
    }
    play_until_decided(&learner, &after);
    UNIT_EQUAL(learner.strategy, 3);
    for (unsigned i = 0; i < 100; i++) {
        play_round(&learner, &before); // less is relevant: no reason to learn
    }
    UNIT_EQUAL(learner.races, 2);
    UNIT_EQUAL(learner.phase_count, 1);
}

int main(void)
{
    what_wins_is_kept_within_its_time();
    luck_is_not_kept();
    a_drift_opens_it_again_and_chance_does_not();
    what_was_learned_of_a_phase_is_back_with_it();
    a_race_is_left_for_a_phase_that_is_known();
    what_was_decided_is_replaced_by_a_later_one();
    after_a_while_it_must_win_again();
    a_later_phase_is_decided_within_five_seconds();
    while_nothing_is_relevant_nothing_is_learned();
    what_becomes_relevant_is_tried();
    trying_costs_a_hundredth();
    what_is_far_too_dear_gets_one_tick();
    what_is_not_relevant_is_not_tried();
    an_idle_program_teaches_nothing();
    a_score_counts_time_faults_and_memory();
    return 0;
}
