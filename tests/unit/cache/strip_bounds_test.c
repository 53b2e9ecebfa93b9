// What malloc_trim looks at while it holds the lock of a cache with many slabs, before somebody who waits for it gets his turn: as
// much as of one with few. Also of slabs whose pages the kernel has not taken before.
#include "cache/sweep.h"

#include "../census.h"
#include "base/check.h"
#include "owner/owner.h"

enum { CLASS = HAK_SMALL_CLASSES - 1, SLABS = 1000, A_SLAB_MOST = 16, LOOKS_MOST = 64 };

static void *blocks[SLABS * A_SLAB_MOST];
static struct hak_owner *owner;
static uint64_t looks_before;
static uint64_t most;
static unsigned purges;

// Of each slab all but one block.
static void give_most(size_t of_slab)
{
    for (size_t i = 0; i < SLABS * of_slab; i++) {
        if (i % of_slab != 1 && blocks[i] != NULL) {
            give(blocks[i]);
            blocks[i] = NULL;
        }
    }
}

// Its thread waits for the lock all the time.
static void note_turn(void)
{
    hak_or_relaxed(&owner->lock.word, HAK_LOCK_WAITED);
    const uint64_t looks = hak_load_relaxed(&hak_looks);
    most = looks - looks_before > most ? looks - looks_before : most;
    looks_before = looks;
}

static void note_purge(void *start, size_t bytes)
{
    (void)bytes;
    if (hak_owner_of(start) == owner) {
        purges++;
        note_turn();
    }
}

static void trim(void)
{
    most = 0;
    purges = 0;
    looks_before = hak_load_relaxed(&hak_looks);
    hak_or_relaxed(&owner->lock.word, HAK_LOCK_WAITED);
    hak_fake.on_purge = note_purge;
    hak_fake.on_wait = note_turn;
    hak_sweep_everything();
    hak_fake.on_purge = NULL;
    hak_fake.on_wait = NULL;
    UNIT_CHECK(purges >= SLABS / 64);
    UNIT_CHECK(most <= LOOKS_MOST);
}

int main(void)
{
    owner = &new_thread()->owner;
    census_have_sweeper();
    const size_t of_slab = hak_classes[CLASS].blocks;
    UNIT_CHECK(of_slab > 1 && of_slab <= A_SLAB_MOST);
    for (size_t i = 0; i < SLABS * of_slab; i++) {
        blocks[i] = alloc(CLASS);
    }
    give_most(of_slab);
    hak_fake.refuse_purge = true;
    trim();
    hak_fake.refuse_purge = false;
    trim();
    census_check(blocks, SLABS * of_slab);
    give_most(1);
    return 0;
}
