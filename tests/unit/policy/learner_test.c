// The learner freezes what wins, doubts it in a canary, sleeps while the sizes stay, and begins anew when they
// drift; noise in the sizes is no drift, and an idle program teaches nothing. It has decided within ten seconds, in a later
// phase within five; what does not matter to the program is not tried.
#include "../unit.h"
#include "policy/learner.h"
#include "policy/score.h"

enum { STRATEGIES = 14, ROUNDS_MOST = 200, SEEDS = 200, TICKS_MOST = 92 };

enum { ALL = (1 << STRATEGIES) - 1, FEW = 0x3e }; // masks of strategies that matter

static const uint16_t no_steps[HAK_RACE_MOST];

static uint64_t state = 1;

static double noise(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (double)(int64_t)(state >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

// Some thousand blocks around a size, with chance in the counts.
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
    double gain;   // over the others
    unsigned size_class;
    double noise_part;
    unsigned matter; // a mask of strategies
};

// The allocator takes a sixth of the time. Returns the ticks.
static unsigned play_round(struct hak_learner *learner, const struct world *world)
{
    const double cost = learner->strategy == world->best ? 1 - world->gain : 1;
    const struct hak_sizes sizes = sizes_around(world->size_class);
    const double score = 0.2 * cost * (1 + world->noise_part * noise());
    uint32_t ticks = 1;
    while (!hak_learner_is_enough(learner, score, ticks)) {
        ticks++;
    }
    hak_learner_note(learner, score, ticks, &sizes, world->matter);
    return ticks;
}

static void play_until_frozen(struct hak_learner *learner, const struct world *world)
{
    unsigned ticks = 0;
    while (learner->state != HAK_LEARNER_FROZEN) {
        ticks += play_round(learner, world);
        UNIT_CHECK(ticks < TICKS_MOST);
    }
}

static void what_wins_is_kept_within_its_time(void)
{
    unsigned right = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct hak_learner learner;
        const struct world world = {1 + seed % (STRATEGIES - 1), 0.2, 4, 0.05, ALL};
        hak_learner_start(&learner, STRATEGIES, no_steps);
        play_until_frozen(&learner, &world);
        right += learner.now.winner == world.best && learner.strategy == world.best;
    }
    UNIT_CHECK(right >= SEEDS * 95 / 100);
}

static void luck_does_not_pass_the_canary(void)
{
    unsigned wrong = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct hak_learner learner;
        const struct world world = {0, 0, 4, 0.2, ALL};
        hak_learner_start(&learner, STRATEGIES, no_steps);
        play_until_frozen(&learner, &world);
        wrong += learner.now.winner != 0;
    }
    UNIT_CHECK(wrong <= SEEDS * 5 / 100);
}

static void a_drift_opens_it_again_and_chance_does_not(void)
{
    struct hak_learner learner;
    struct world world = {3, 0.2, 4, 0.05, ALL};
    hak_learner_start(&learner, STRATEGIES, no_steps);
    play_until_frozen(&learner, &world);
    for (unsigned i = 0; i < 1000; i++) {
        play_round(&learner, &world);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_FROZEN);
    UNIT_EQUAL(learner.races, 1);
    UNIT_EQUAL(learner.strategy, 3);
    world.size_class = 30;
    world.best = 7;
    unsigned rounds = 0;
    for (; learner.state == HAK_LEARNER_FROZEN; rounds++) {
        UNIT_CHECK(rounds < ROUNDS_MOST);
        play_round(&learner, &world);
    }
    UNIT_CHECK(rounds <= HAK_DRIFT_ROUNDS * (HAK_DRIFT_LOOKS + 1));
    UNIT_EQUAL(learner.races, 2);
    UNIT_EQUAL(learner.strategy, 0); // at once, while the race begins anew
    play_until_frozen(&learner, &world);
    UNIT_EQUAL(learner.now.winner, 7);
}

// A program that goes to and fro between phases: what each needs is learned once, and back in three seconds.
static void what_was_learned_of_a_phase_is_back_with_it(void)
{
    struct hak_learner learner;
    struct world worlds[] = {
        {3, 0.2, 4, 0.05, ALL}, {7, 0.2, 30, 0.05, ALL}, {0, 0, 50, 0.05, ALL}};
    hak_learner_start(&learner, STRATEGIES, no_steps);
    for (unsigned turn = 0; turn < 9; turn++) {
        const struct world *world = &worlds[turn % 3];
        for (unsigned rounds = 0; rounds < HAK_DRIFT_ROUNDS * (HAK_DRIFT_LOOKS + 1); rounds++) {
            play_round(&learner, world);
        }
        if (turn < 3) {
            play_until_frozen(&learner, world);
        }
        UNIT_EQUAL(learner.state, HAK_LEARNER_FROZEN);
        UNIT_EQUAL(learner.now.winner, world->best);
        UNIT_EQUAL(learner.strategy, world->best);
    }
    UNIT_EQUAL(learner.races, 3);
    UNIT_EQUAL(learner.recalled, 6);
    UNIT_EQUAL(learner.decided, 9);
}

// A phase that ends in the middle of a race is not taken for the next one.
static void a_race_is_left_for_a_phase_that_is_known(void)
{
    struct hak_learner learner;
    const struct world there = {3, 0.2, 4, 0.05, ALL};
    const struct world elsewhere = {7, 0.2, 30, 0.05, ALL};
    hak_learner_start(&learner, STRATEGIES, no_steps);
    play_until_frozen(&learner, &there);
    while (learner.races < 2) {
        play_round(&learner, &elsewhere);
    }
    for (unsigned rounds = 0; rounds < 3; rounds++) {
        play_round(&learner, &elsewhere);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_LEARNING);
    for (unsigned rounds = 0; learner.recalled < 1; rounds++) {
        UNIT_CHECK(rounds <= HAK_DRIFT_ROUNDS * (HAK_DRIFT_LOOKS + 1));
        play_round(&learner, &there);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_FROZEN);
    UNIT_EQUAL(learner.strategy, 3);
    UNIT_EQUAL(learner.lesson_count, 1);
}

// And when a canary finds that it wins no longer, that is what comes back.
static void a_lesson_is_replaced_by_a_later_one(void)
{
    struct hak_learner learner;
    struct world there = {3, 0.2, 4, 0.02, ALL};
    const struct world elsewhere = {7, 0.2, 30, 0.02, ALL};
    hak_learner_start(&learner, STRATEGIES, no_steps);
    play_until_frozen(&learner, &there);
    there.best = 0;
    for (unsigned i = 0; i < HAK_FROZEN_ROUNDS; i++) {
        play_round(&learner, &there);
    }
    play_until_frozen(&learner, &there);
    UNIT_EQUAL(learner.lesson_count, 1);
    while (learner.races < 2) {
        play_round(&learner, &elsewhere);
    }
    play_until_frozen(&learner, &elsewhere);
    while (learner.recalled < 1) {
        play_round(&learner, &there);
    }
    UNIT_EQUAL(learner.now.winner, 0);
}

static void after_a_while_a_canary_looks_again(void)
{
    struct hak_learner learner;
    struct world world = {3, 0.2, 4, 0.02, ALL};
    hak_learner_start(&learner, STRATEGIES, no_steps);
    play_until_frozen(&learner, &world);
    UNIT_EQUAL(learner.now.winner, 3);
    world.best = 0; // what won wins no longer, with the same sizes
    for (unsigned i = 0; i < HAK_FROZEN_ROUNDS; i++) {
        UNIT_EQUAL(learner.state, HAK_LEARNER_FROZEN);
        play_round(&learner, &world);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_CANARY);
    play_until_frozen(&learner, &world);
    UNIT_EQUAL(learner.now.winner, 0);
}

static void an_idle_program_teaches_nothing(void)
{
    struct hak_learner learner;
    hak_learner_start(&learner, STRATEGIES, no_steps);
    const uint32_t first = learner.strategy;
    const struct hak_sizes none = {.batches = 0};
    for (unsigned i = 0; i < 1000; i++) {
        hak_learner_note(&learner, -1, HAK_ROUND_TICKS, &none, ALL);
    }
    UNIT_EQUAL(learner.state, HAK_LEARNER_LEARNING);
    UNIT_EQUAL(learner.strategy, first);
    UNIT_EQUAL(learner.race.laps, 0);
}

static void a_score_counts_time_faults_and_memory(void)
{
    const struct hak_round round = {1000000000, 1000000000, 50000000, 1000, 1U << 30};
    const double score = hak_round_score(&round);
    UNIT_CHECK(score > 0.178 && score < 0.179); // 0.0507 / 0.9493 + 0.125
    struct hak_round more = round;
    more.allocator_ns *= 2;
    UNIT_CHECK(hak_round_score(&more) > score);
    more = round;
    more.faults *= 100;
    UNIT_CHECK(hak_round_score(&more) > score);
    more = round;
    more.resident_bytes *= 2;
    UNIT_CHECK(hak_round_score(&more) > score);
    more = round;
    more.processor_ns = round.wall_ns / 100;
    UNIT_CHECK(hak_round_score(&more) < 0);
    // Nothing but the allocator's work: dear, but a number.
    more = round;
    more.allocator_ns = 2 * more.processor_ns;
    UNIT_CHECK(hak_round_score(&more) > 1);
}

// Until the learner has decided for the other world it has five seconds, and the same certainty.
static unsigned quick_decisions_for(unsigned best, double gain, double noise_part)
{
    enum { QUICK_TICKS_MOST = 48 };
    unsigned decisions = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct hak_learner learner;
        const struct world before = {0, 0, 4, 0.05, 0};
        const struct world after = {best, gain, 30, noise_part, FEW};
        hak_learner_start(&learner, STRATEGIES, no_steps);
        play_until_frozen(&learner, &before);
        for (unsigned i = 0; i < 100 + seed; i++) {
            play_round(&learner, &before);
        }
        unsigned ticks = 0;
        while (learner.races < 2 || learner.state != HAK_LEARNER_FROZEN) {
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

// What is in force stays in a phase in which no strategy could gain anything, whatever its sizes are.
static void while_nothing_matters_nothing_is_learned(void)
{
    struct hak_learner learner;
    const struct world busy = {3, 0.2, 4, 0.02, FEW};
    const struct world quiet = {0, 0, 30, 0.02, 0};
    hak_learner_start(&learner, STRATEGIES, no_steps);
    play_until_frozen(&learner, &busy);
    for (unsigned i = 0; i < 1000; i++) {
        play_round(&learner, &quiet);
        UNIT_EQUAL(learner.strategy, 3);
    }
    play_round(&learner, &busy);
    UNIT_EQUAL(learner.races, 1);
    UNIT_EQUAL(learner.recalled, 0);
}

// A program that begins to hand blocks over, say, and asks for the same sizes.
static void what_matters_anew_is_tried(void)
{
    struct hak_learner learner;
    const struct world before = {0, 0, 4, 0.02, 1 << 2};
    const struct world after = {3, 0.2, 4, 0.02, FEW};
    hak_learner_start(&learner, STRATEGIES, no_steps);
    play_until_frozen(&learner, &before);
    UNIT_EQUAL(learner.strategy, 0);
    for (unsigned rounds = 0; learner.races < 2; rounds++) {
        UNIT_CHECK(rounds <= HAK_DRIFT_ROUNDS * (HAK_DRIFT_LOOKS + 1));
        play_round(&learner, &after);
    }
    play_until_frozen(&learner, &after);
    UNIT_EQUAL(learner.strategy, 3);
    for (unsigned i = 0; i < 100; i++) {
        play_round(&learner, &before); // less matters: no reason to learn
    }
    UNIT_EQUAL(learner.races, 2);
    UNIT_EQUAL(learner.lesson_count, 1);
}

int main(void)
{
    what_wins_is_kept_within_its_time();
    luck_does_not_pass_the_canary();
    a_drift_opens_it_again_and_chance_does_not();
    what_was_learned_of_a_phase_is_back_with_it();
    a_race_is_left_for_a_phase_that_is_known();
    a_lesson_is_replaced_by_a_later_one();
    after_a_while_a_canary_looks_again();
    a_later_phase_is_decided_within_five_seconds();
    while_nothing_matters_nothing_is_learned();
    what_matters_anew_is_tried();
    an_idle_program_teaches_nothing();
    a_score_counts_time_faults_and_memory();
    return 0;
}
