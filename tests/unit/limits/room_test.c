// A request that the control group has no room for is refused: small requests count in full, a long block in part; and how
// often the group's files are read.
#include "limits/room.h"
#include "slab/mapping.h"
#include "slab/runs.h"

#include "../unit.h"
#include "base/options.h"
#include "cache/hooks.h"
#include "meta/map.h"
#include "os/refusal.h"
#include "slab/hooks.h"

static char used[32];
static char statistics[128];
static const struct hak_fake_file files[] = {{"/proc/self/cgroup", "0::/\n"},
                                             {"/sys/fs/cgroup/memory.max", "1073741824\n"},
                                             {"/sys/fs/cgroup/memory.current", used},
                                             {"/sys/fs/cgroup/memory.stat", statistics},
                                             {NULL, NULL}};

static void set_used(size_t bytes, size_t of_files)
{
    snprintf(used, sizeof used, "%zu\n", bytes);
    snprintf(statistics, sizeof statistics, "anon 1\nactive_file %zu\n", of_files);
}

enum { AUTO, OFF, REFUSE }; // option limit_group

static bool allows(size_t bytes)
{
    hak_lock_take(&hak_arena.lock);
    const bool may = hak_hook_may_use_locked(bytes);
    hak_lock_drop(&hak_arena.lock);
    return may;
}

static void forget(void)
{
    hak_room.credit_bytes = 0;
    hak_arena.shards[0].credit_bytes = 0;
}

// 32 MiB of a GiB are reserved; a quarter of the rest is the credit.
static void a_look_gives_credit(void)
{
    set_used(HAK_MIB(512), 0);
    forget();
    UNIT_CHECK(allows(HAK_MIB(80)));
    UNIT_EQUAL(hak_room.credit_bytes, HAK_MIB(100));
    const size_t reads = hak_fake.file_reads;
    UNIT_CHECK(allows(HAK_MIB(60)) && allows(HAK_MIB(40)));
    UNIT_EQUAL(hak_fake.file_reads, reads);
    UNIT_CHECK(allows(1));
    UNIT_CHECK(hak_fake.file_reads > reads);
}

static void a_full_group_refuses(void)
{
    set_used(HAK_MIB(990), 0);
    forget();
    const uint64_t mark = hak_refusal_mark();
    UNIT_CHECK(!allows(HAK_MIB(3)));
    UNIT_EQUAL(hak_refusal_since(mark).error, HAK_REFUSED_BY_GROUP);
    UNIT_EQUAL(hak_room.limit_bytes, HAK_GIB(1));
    UNIT_EQUAL(hak_room.used_bytes, HAK_MIB(990));
    UNIT_CHECK(allows(HAK_MIB(1)));
    set_used(HAK_MIB(900), 0); // another process gave memory back
    UNIT_CHECK(allows(HAK_MIB(3)));
}

static void file_pages_and_swap_are_room(void)
{
    set_used(HAK_GIB(1), HAK_MIB(100));
    forget();
    UNIT_CHECK(allows(HAK_MIB(60)));
    set_used(HAK_GIB(1), 0);
    forget();
    UNIT_CHECK(!allows(HAK_MIB(60)));
    hak_fake.free_swap_bytes = HAK_MIB(100);
    UNIT_CHECK(allows(HAK_MIB(60)));
    hak_fake.free_swap_bytes = 0;
}

// An eighth of the limit is 128 MiB.
static void a_long_block_counts_in_part(void)
{
    set_used(HAK_MIB(800), 0);
    forget();
    UNIT_CHECK(allows(HAK_GIB(20)));
    set_used(HAK_MIB(900), 0);
    forget();
    UNIT_CHECK(!allows(HAK_GIB(20)));
}

static void runs_ask_for_what_is_not_resident(void)
{
    set_used(HAK_MIB(100), 0);
    forget();
    struct hak_run *first = hak_runs_take(0, HAK_MIB(2), 1, HAK_RUN_LARGE, false);
    UNIT_CHECK(first != NULL);
    set_used(HAK_GIB(1), 0);
    forget();
    UNIT_CHECK(hak_runs_take(0, HAK_MIB(1), 1, HAK_RUN_LARGE, false) == NULL);
    UNIT_CHECK(!hak_runs_resize(first, HAK_MIB(3)));
    UNIT_CHECK(hak_mapping_make(HAK_MIB(8), 1, false) == NULL);
    hak_runs_give(first);
    struct hak_run *again = hak_runs_take(0, HAK_MIB(2), 1, HAK_RUN_LARGE, false);
    UNIT_CHECK(again != NULL); // its pages are resident
    hak_runs_give(again);
    hak_options.limit_group = OFF;
    struct hak_run *off = hak_runs_take(0, HAK_MIB(3), 1, HAK_RUN_LARGE, false);
    UNIT_CHECK(off != NULL);
    hak_runs_give(off);
    hak_options.limit_group = REFUSE;
    hak_options.deterministic = 1;
    off = hak_runs_take(0, HAK_MIB(4), 1, HAK_RUN_LARGE, false);
    UNIT_CHECK(off != NULL);
    hak_runs_give(off);
    hak_options.deterministic = 0;
}

static void without_a_limit_nothing_is_read_again(void)
{
    hak_fake.files = NULL;
    forget();
    UNIT_CHECK(allows(HAK_GIB(20)));
    const size_t reads = hak_fake.file_reads;
    UNIT_CHECK(allows(HAK_GIB(2000)));
    UNIT_EQUAL(hak_fake.file_reads, reads);
}

// A shard sees a change once it has handed out its credit.
static void nothing_is_read_unasked(void)
{
    hak_options.limit_group = OFF;
    set_used(HAK_GIB(1), 0);
    forget();
    const size_t reads = hak_fake.file_reads;
    struct hak_run *first = hak_runs_take(0, HAK_MIB(3), 1, HAK_RUN_LARGE, false);
    struct hak_run *long_one = hak_mapping_make(HAK_GIB(3), 1, false);
    UNIT_CHECK(first != NULL && long_one != NULL);
    UNIT_EQUAL(hak_fake.file_reads, reads);
    UNIT_EQUAL(hak_room.lent_bytes, 0);
    hak_options.limit_group = REFUSE;
    UNIT_CHECK(hak_mapping_make(HAK_MIB(8), 1, false) == NULL);
    unsigned taken = 0;
    while (taken < 100 && hak_runs_take(0, HAK_MIB(3), 1, HAK_RUN_LARGE, false) != NULL) {
        taken++;
    }
    UNIT_CHECK(taken <= 16 / 3);
    UNIT_CHECK(hak_fake.file_reads > reads);
    hak_runs_give(first);
    hak_mapping_end(long_one);
}

// By default: once the heap's growth has used more than seven eighths, a request is refused until everything
// was given back; and again for each further 32nd part.
static void by_its_count_nobody_is_refused(void)
{
    hak_options.limit_group = AUTO;
    set_used(HAK_MIB(600), 0);
    hak_lock_take(&hak_arena.lock);
    hak_hook_share_locked(&(struct hak_share){.memory_used = HAK_MIB(600)});
    hak_lock_drop(&hak_arena.lock);
    const size_t reads = hak_fake.file_reads;
    const uint64_t mark = hak_refusal_mark();
    struct hak_run *block = hak_mapping_make(HAK_MIB(292), 1, false);
    UNIT_CHECK(block != NULL);
    forget();
    UNIT_CHECK(!allows(HAK_MIB(8)) && !allows(HAK_MIB(8)));
    hak_hook_swept_everything();
    for (unsigned i = 0; i < 8; i++) {
        UNIT_CHECK(allows(HAK_MIB(8)));
        UNIT_EQUAL(hak_room.credit_bytes, HAK_MIB(4));
    }
    struct hak_run *more = hak_mapping_make(HAK_MIB(4), 1, false);
    UNIT_CHECK(more != NULL);
    UNIT_CHECK(!allows(HAK_MIB(1)));
    hak_mapping_end(more);
    hak_mapping_end(block);
    forget();
    UNIT_CHECK(allows(HAK_MIB(8)));
    UNIT_EQUAL(hak_fake.file_reads, reads);
    UNIT_EQUAL(hak_refusal_since(mark).error, 0);
}

int main(void)
{
    hak_fake.memory_bytes = HAK_GIB(16);
    hak_fake.files = files;
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_options.limit_group = REFUSE;
    a_look_gives_credit();
    a_full_group_refuses();
    file_pages_and_swap_are_room();
    a_long_block_counts_in_part();
    runs_ask_for_what_is_not_resident();
    nothing_is_read_unasked();
    by_its_count_nobody_is_refused();
    without_a_limit_nothing_is_read_again();
    return 0;
}
