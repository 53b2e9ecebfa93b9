// Four shards against the same model as one, and what they do for each other.
#include "arena_model.h"

// A shard takes what another has left wholly free before it maps more, and what is left anywhere before it is refused.
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

// To the byte, also of what other shards have taken and the sums do not know yet.
static void a_limit_is_a_limit_for_all_shards(void)
{
    hak_arena_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    hak_arena_trim();
    hak_options.limit_hard = 6 * HAK_UNIT_BYTES;
    struct hak_slab *taken[6];
    for (unsigned i = 0; i < 6; i++) {
        taken[i] = hak_arena_take(i % 4, HAK_UNIT_BYTES, 1, HAK_SLAB_LARGE);
        UNIT_CHECK(taken[i] != NULL);
    }
    for (unsigned shard = 0; shard < 4; shard++) {
        UNIT_CHECK(hak_arena_take(shard, HAK_UNIT_BYTES, 1, HAK_SLAB_LARGE) == NULL);
    }
    UNIT_CHECK(!hak_arena_resize(taken[5], 2 * HAK_UNIT_BYTES));
    hak_options.limit_hard = 0;
    for (unsigned i = 0; i < 6; i++) {
        hak_arena_give(taken[i]);
    }
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_options.arena_shards = 4;
    hak_arena_start();
    UNIT_EQUAL(hak_arena.shard_mask, 3);
    hak_options.huge_start_bytes = SIZE_MAX;
    shards_help_each_other();
    for (uint64_t seed = 1; seed <= 5; seed++) {
        random_steps(seed);
    }
    a_limit_is_a_limit_for_all_shards();
    return 0;
}
