// race.c -- see race.h.
#include "policy/race.h"

#include "base/bits.h"

static uint32_t draw(struct hak_race *race, uint32_t below)
{
    race->random = race->random * 6364136223846793005U + 1442695040888963407U; // Knuth, MMIX
    return (uint32_t)(race->random >> 33) % below;
}

static bool is_left(const struct hak_race *race, uint32_t variant)
{
    return (race->left >> variant & 1) != 0;
}

// The baseline begins the first lap: the budget compares the others with it, and the lap may be cut short.
static void lap_start(struct hak_race *race)
{
    const uint32_t fixed = race->laps == 0;
    race->place = 0;
    race->order[0] = 0;
    race->in_lap = 1;
    for (uint32_t i = 1; i < HAK_RACE_MOST; i++) {
        if (is_left(race, i)) {
            const uint32_t other = fixed + draw(race, ++race->in_lap - fixed);
            race->order[race->in_lap - 1] = race->order[other];
            race->order[other] = (uint8_t)i;
        }
    }
}

void hak_race_start(struct hak_race *race, uint32_t variants, uint64_t seed)
{
    *race = (struct hak_race){.left = variants & ~1U, .random = seed};
    lap_start(race);
}

static void pair_start(struct hak_race *race)
{
    race->place = 0;
    race->is_swapped = draw(race, 2);
}

static void duel_start(struct hak_race *race, uint32_t candidate)
{
    race->state = candidate == 0 ? HAK_RACE_OVER : HAK_RACE_DUEL;
    race->candidate = candidate;
    race->winner = 0;
    pair_start(race);
}

void hak_race_doubt(struct hak_race *race, uint32_t candidate)
{
    race->duel = (struct hak_sequence){.count = 0};
    duel_start(race, candidate);
}

uint32_t hak_race_turn(const struct hak_race *race)
{
    if (race->state == HAK_RACE_LAPS) {
        return race->order[race->place];
    }
    return race->place == race->is_swapped ? 0 : race->candidate;
}

// The best of those variants that have played; 0 when none has.
static uint32_t best_of(const struct hak_race *race, uint32_t variants)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < HAK_RACE_MOST; i++) {
        const bool has_played = (variants >> i & 1) != 0 && race->savings[i].count > 0;
        if (has_played && (best == 0 || race->savings[i].mean > race->savings[best].mean)) {
            best = i;
        }
    }
    return best;
}

// Compare the variants that have played in this lap with the baseline's latest cost.
static void lap_score(struct hak_race *race)
{
    for (uint32_t i = 0; i < race->place; i++) {
        const uint32_t variant = race->order[i];
        if (is_left(race, variant)) {
            hak_sequence_note(&race->savings[variant],
                              hak_sequence_saving(race->costs[0], race->costs[variant]));
        }
    }
}

static void find_candidate(struct hak_race *race)
{
    const uint32_t best = best_of(race, race->left);
    duel_start(race, race->savings[best].mean > HAK_RACE_AHEAD ? best : 0);
}

static void lap_end(struct hak_race *race)
{
    lap_score(race);
    race->laps++;
    const uint32_t played = race->left;
    race->left = 0;
    for (uint32_t i = 0; i < (hak_count_bits(played) + 1) / 2; i++) {
        race->left |= 1U << best_of(race, played & ~race->left);
    }
    if (hak_count_bits(race->left) <= 1) {
        find_candidate(race);
    } else {
        lap_start(race);
    }
}

void hak_race_end_laps(struct hak_race *race)
{
    if (race->state == HAK_RACE_LAPS) {
        lap_score(race);
        find_candidate(race);
    }
}

static void duel_judge(struct hak_race *race)
{
    const struct hak_estimate saving = hak_sequence_estimate(&race->duel);
    const bool is_hopeless = race->duel.count >= HAK_DUEL_PAIRS_HOPELESS && saving.mean <= 0;
    race->winner = saving.low > 0 ? race->candidate : 0;
    race->state = saving.low > 0 || is_hopeless ? HAK_RACE_OVER : HAK_RACE_DUEL;
}

void hak_race_note(struct hak_race *race, double cost, bool is_out)
{
    const uint32_t variant = hak_race_turn(race);
    if (race->state == HAK_RACE_LAPS) {
        race->costs[variant] = cost;
        race->left &= ~((uint32_t)is_out << variant);
        if (++race->place == race->in_lap) {
            lap_end(race);
        }
    } else {
        race->costs[variant != 0] = cost;
        if (++race->place == 2) {
            hak_sequence_note(&race->duel, hak_sequence_saving(race->costs[0], race->costs[1]));
            duel_judge(race);
            pair_start(race);
        }
    }
}

void hak_race_end(struct hak_race *race)
{
    race->state = HAK_RACE_OVER;
}
