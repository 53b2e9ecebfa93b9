// args: 1000000
// args in tsan: 50000
// args in aarch64: 50000
// The states of a hardened slab's blocks: a write to memory that no one may write to is found, and a block that changes
// during a check is never reported as such a write.
#include "secure/states.h"
#include "slab/runs.h"
#include "slab/slab.h"

#include <pthread.h>

#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"
#include "owner/owner.h"
#include "slab/arena.h"

enum { TAG = 0x500, REQUEST = 8000 };

static struct hak_owner owner; // only its address counts
static unsigned long changes;  // in total
static atomic_bool is_changing;

// A slab whose blocks are long enough for others to change them in the middle of a check.
static struct hak_run *make(void)
{
    unsigned size_class = 0;
    while (hak_classes[size_class].bytes < REQUEST + HAK_CANARY_BYTES) {
        size_class++;
    }
    struct hak_run *slab = hak_slab_make(&owner, TAG, size_class);
    UNIT_CHECK(slab != NULL && hak_states_exist(slab));
    return slab;
}

static struct hak_held held_of(const struct hak_run *slab, unsigned index)
{
    return (struct hak_held){slab->base + index * hak_classes[slab->size_class].bytes,
                             hak_states_of(slab) + index};
}

static void what_was_written_is_found(void)
{
    struct hak_run *slab = make();
    const size_t bytes = hak_classes[slab->size_class].bytes;
    const struct hak_held held = held_of(slab, 0);
    hak_states_check(slab);
    held.block[bytes / 2] = 1;
    UNIT_DIES(hak_states_check(slab), "write after free");
    held.block[bytes / 2] = 0;
    hak_states_take(held, bytes, REQUEST, HAK_CHECKS_ALL);
    hak_states_check(slab);
    held.block[REQUEST] ^= 1;
    UNIT_DIES(hak_states_check(slab), "overflow");
    held.block[REQUEST] ^= 1;
    hak_states_give(held, bytes, HAK_CHECKS_ALL);
    hak_slab_end(slab);
}

static void *change(void *argument)
{
    const struct hak_run *slab = argument;
    const size_t bytes = hak_classes[slab->size_class].bytes;
    const struct hak_held held = held_of(slab, 0);
    for (unsigned long i = 0; i < changes; i++) {
        hak_states_take(held, bytes, REQUEST, HAK_CHECKS_ALL);
        memset(held.block, 1, REQUEST);
        hak_states_give(held, bytes, HAK_CHECKS_ALL);
    }
    atomic_store(&is_changing, false);
    return NULL;
}

// The other blocks are with the program: only their ends are checked, so most of the time goes into the first one.
static void a_block_may_change_while_it_is_looked_at(void)
{
    struct hak_run *slab = make();
    const struct hak_class *info = &hak_classes[slab->size_class];
    pthread_t thread;
    for (unsigned index = 1; index < info->blocks; index++) {
        hak_states_take(held_of(slab, index), info->bytes, REQUEST, HAK_CHECKS_ALL);
    }
    atomic_store(&is_changing, true);
    UNIT_EQUAL(pthread_create(&thread, NULL, change, slab), 0);
    while (atomic_load(&is_changing)) {
        hak_states_check(slab);
    }
    pthread_join(thread, NULL);
    for (unsigned index = 1; index < info->blocks; index++) {
        hak_states_give(held_of(slab, index), info->bytes, HAK_CHECKS_ALL);
    }
    hak_slab_end(slab);
}

// They are known to be zeros, whatever they were before: the next slab there need not clear them again.
static void what_ended_as_zeros_begins_as_zeros(void)
{
    struct hak_run *run = hak_runs_take(0, HAK_KIB(512), 1, HAK_RUN_LARGE, false);
    memset(run->base, 1, HAK_KIB(512));
    hak_runs_give(run);
    for (unsigned turn = 0; turn < 3; turn++) {
        struct hak_run *slab = make();
        const size_t bytes = hak_classes[slab->size_class].bytes;
        UNIT_CHECK(slab->base >= run->base && slab->base < run->base + HAK_KIB(512));
        UNIT_EQUAL(slab->zeroed, turn > 0);
        for (size_t at = 0; at < slab->units * HAK_UNIT_BYTES; at++) {
            UNIT_EQUAL(slab->base[at], 0);
        }
        hak_states_take(held_of(slab, turn), bytes, REQUEST, HAK_CHECKS_ALL);
        memset(held_of(slab, turn).block, 1, REQUEST);
        hak_states_give(held_of(slab, turn), bytes, HAK_CHECKS_ALL);
        hak_slab_end(slab);
    }
    UNIT_CHECK(hak_arena.dirty_bytes > 0); // they still wait to be purged
    // Unless a block was in use to the end, as a heap's block may be.
    struct hak_run *slab = make();
    const size_t bytes = hak_classes[slab->size_class].bytes;
    char *block = held_of(slab, 1).block;
    hak_states_take(held_of(slab, 1), bytes, REQUEST, HAK_CHECKS_ALL);
    memset(block, 1, REQUEST);
    hak_slab_end(slab);
    slab = make();
    UNIT_CHECK(!slab->zeroed && slab->base <= block && block[REQUEST - 1] == 0);
    hak_slab_end(slab);
}

int main(int count, char **arguments)
{
    changes = count > 1 ? strtoul(arguments[1], NULL, 10) : 10000;
    hak_option_choose(&hak_options.zero_on_free, 1, HAK_FROM_PROGRAM);
    hak_option_choose(&hak_options.canaries, 1, HAK_FROM_PROGRAM);
    hak_harden_start();
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    what_was_written_is_found();
    a_block_may_change_while_it_is_looked_at();
    what_ended_as_zeros_begins_as_zeros();
    return 0;
}
