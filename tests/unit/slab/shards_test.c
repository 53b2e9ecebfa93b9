// soak in: tsan
// Four shards against the same model as one, and how they help each other.
#include "arena_model.h"

// A shard takes wholly free superslabs of others before it maps more, and free units anywhere before a request is refused.
static void shards_help_each_other(void)
{
    next_shard = 0;
    take(64, 1);
    const size_t bytes = hak_arena.super_bytes;
    give(0);
    next_shard = 1;
    take(1, 1);
    check_model();
    UNIT_EQUAL(hak_arena.super_bytes, bytes);
    UNIT_EQUAL(hak_map_super(runs[0].slab->base)->shard, 1);
    next_shard = 2;
    hak_fake_fail_in(1, SIZE_MAX / 2);
    take(3, 1);
    hak_fake.fail_times = 0;
    UNIT_EQUAL(hak_map_super(runs[1].slab->base)->shard, 1);
    check_model();
    give_all();
}

static struct hak_run *grown_meanwhile;
static bool is_refused_then;

static void another_grows(void *place)
{
    (void)place;
    UNIT_EQUAL(hak_arena.lock.word, HAK_LOCK_FREE);
    hak_fake.on_map = NULL;
    grown_meanwhile = hak_runs_take(2, HAK_SUPER_BYTES, 1, HAK_RUN_LARGE, false);
    hak_fake.refuse_asks = is_refused_then;
}

// While the kernel maps for one shard, another one grows beside it; the next place is behind both, also if the first is refused.
static void shards_grow_beside_each_other(void)
{
    hak_superslabs_trim();
    for (unsigned i = 0; i < 2; i++) {
        is_refused_then = i == 1;
        const uint64_t next = hak_map.next_slot;
        hak_fake.on_map = another_grows;
        struct hak_run *first = hak_runs_take(1, HAK_SUPER_BYTES, 1, HAK_RUN_LARGE, false);
        hak_fake.refuse_asks = false;
        UNIT_EQUAL(first != NULL, !is_refused_then);
        UNIT_EQUAL(hak_map_slot(first != NULL ? first->base : NULL),
                   first != NULL ? next : UINT64_MAX);
        UNIT_EQUAL(hak_map_slot(grown_meanwhile->base), next + 1);
        UNIT_EQUAL(hak_map.next_slot, next + 2);
        UNIT_EQUAL(hak_map_find_slot(next), first != NULL ? next + 2 : next);
        if (first != NULL) {
            hak_runs_give(first);
        }
        hak_runs_give(grown_meanwhile);
        hak_superslabs_trim();
    }
}

// A shard's own tables take few addresses, which an address space limit counts.
static void a_shard_takes_few_addresses(void)
{
    take(1, 1);
    for (next_shard = 0; next_shard <= hak_arena.shard_mask;) {
        const size_t addresses = hak_fake.mapped_bytes;
        take(HAK_SUPER_UNITS, 1);
        UNIT_CHECK(hak_fake.mapped_bytes <= addresses + HAK_SUPER_BYTES + HAK_KIB(512));
    }
    give_all();
}

// Once the kernel has refused a superslab, shards share what they have, until there is more than at the refusal.
static void what_is_short_is_not_kept_apart(void)
{
    next_shard = 0;
    take(1, 1);
    hak_fake_fail_in(1, SIZE_MAX / 2);
    UNIT_CHECK(hak_runs_take(1, HAK_SUPER_BYTES, 1, HAK_RUN_LARGE, false) == NULL);
    hak_fake.fail_times = 0;
    for (next_shard = 1; next_shard <= hak_arena.shard_mask;) {
        take(1, 1);
    }
    UNIT_EQUAL(hak_arena.super_bytes, HAK_SUPER_BYTES);
    next_shard = 1;
    take(HAK_SUPER_UNITS, 1); // more than there was
    next_shard = 2;
    take(1, 1);
    UNIT_EQUAL(hak_arena.super_bytes, 3 * HAK_SUPER_BYTES);
    give_all();
}

// To the byte, including what other shards have taken and the sums do not contain yet.
static void a_limit_is_a_limit_for_all_shards(void)
{
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    hak_superslabs_trim();
    hak_options.limit_hard = 6 * HAK_UNIT_BYTES;
    struct hak_run *taken[6];
    for (unsigned i = 0; i < 6; i++) {
        taken[i] = hak_runs_take(i % 4, HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false);
        UNIT_CHECK(taken[i] != NULL);
    }
    for (unsigned shard = 0; shard < 4; shard++) {
        UNIT_CHECK(hak_runs_take(shard, HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false) == NULL);
    }
    UNIT_CHECK(!hak_runs_resize(taken[5], 2 * HAK_UNIT_BYTES));
    hak_options.limit_hard = 0;
    for (unsigned i = 0; i < 6; i++) {
        hak_runs_give(taken[i]);
    }
}

// A shard that takes and gives does not update the sums, unless it is far ahead of them; in the end they contain all.
static void sums_may_be_late(void)
{
    enum { STEPS = 1000, UNITS = 16 };
    hak_arena_tell(false);
    struct hak_run *held = hak_runs_take(0, UNITS * HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false);
    const size_t free_bytes = hak_arena.free_bytes;
    hak_arena.part_bytes = HAK_MIB(128); // a shard may be 16 MiB ahead
    hak_arena_tell(true);
    for (unsigned i = 0; i < STEPS; i++) {
        hak_runs_give(hak_runs_take(0, UNITS * HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false));
        UNIT_EQUAL(hak_arena.free_bytes, free_bytes);
    }
    hak_runs_give(held);
    UNIT_EQUAL(hak_arena.free_bytes, free_bytes);
    hak_options.limit_soft = HAK_MIB(1);
    hak_arena_tell(true);
    UNIT_EQUAL(hak_arena.untold_most, 0); // as the limit is checked against the sums
    hak_options.limit_soft = 0;
    UNIT_EQUAL(hak_arena.free_bytes, free_bytes + UNITS * HAK_UNIT_BYTES);
    hak_arena_tell(true);
    struct hak_run *taken[16];
    for (unsigned i = 0; i < 16; i++) {
        taken[i] = hak_runs_take(0, UNITS * HAK_UNIT_BYTES, 1, HAK_RUN_LARGE, false);
    }
    hak_arena_tell(false);
    UNIT_EQUAL(hak_arena_used_bytes(), 16 * UNITS * HAK_UNIT_BYTES);
    for (unsigned i = 0; i < 16; i++) {
        hak_runs_give(taken[i]);
        UNIT_EQUAL(hak_arena_used_bytes(), (15 - i) * UNITS * HAK_UNIT_BYTES);
    }
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_options.arena_shards = 4;
    hak_arena_start();
    UNIT_EQUAL(hak_arena.shard_mask, 3);
    hak_options.huge_start_bytes = SIZE_MAX;
    a_shard_takes_few_addresses();
    shards_help_each_other();
    what_is_short_is_not_kept_apart();
    for (uint64_t seed = 1; seed <= 5; seed++) {
        hak_arena.part_bytes = HAK_MIB(64);
        hak_arena_tell(seed % 2 == 1);
        random_steps(seed);
    }
    hak_arena_tell(true);
    a_limit_is_a_limit_for_all_shards();
    sums_may_be_late();
    shards_grow_beside_each_other();
    return 0;
}
