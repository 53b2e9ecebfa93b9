// What a refused request costs. Of what the kernel refuses, addresses, nobody has more because pages went: none are given back
// then, and what a superslab is made of goes. When it is the control group that has no room, they go.
#include <errno.h>

#include "base/options.h"
#include "cache/large.h"
#include "cache/sweep.h"
#include "cache/watch.h"
#include "census.h"
#include "os/refusal.h"

static size_t purged_for(int error)
{
    const uint64_t mark = hak_refusal_mark();
    const size_t before = hak_fake.purges;
    hak_refusal_note(error, HAK_GIB(1));
    hak_sweep_for_request(mark);
    return hak_fake.purges - before;
}

// A run of 2 MiB whose pages are dirty, in a superslab where another is in use.
static void leave_dirty(void)
{
    bool zeroed;
    void *stays = hak_large_alloc(HAK_KIB(100), 1, 0, &zeroed);
    void *goes = hak_large_alloc(HAK_MIB(2), 1, 0, &zeroed);
    UNIT_CHECK(stays != NULL && goes != NULL);
    memset(goes, 1, HAK_MIB(2));
    hak_arena_give(hak_slab_of(goes));
    UNIT_CHECK(hak_arena.dirty_bytes >= HAK_MIB(2));
}

static void pages_stay_when_addresses_are_missing(void)
{
    leave_dirty();
    UNIT_EQUAL(purged_for(ENOMEM), 0);
    UNIT_CHECK(hak_arena.dirty_bytes >= HAK_MIB(2));
    UNIT_CHECK(purged_for(HAK_REFUSED_BY_GROUP) > 0);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

static void superslabs_go(void)
{
    bool zeroed;
    void *block = hak_large_alloc(HAK_MIB(16), 1, 0, &zeroed);
    UNIT_CHECK(block != NULL);
    const size_t mapped = hak_fake.mapped_bytes;
    hak_arena_give(hak_slab_of(block));
    UNIT_EQUAL(purged_for(ENOMEM), 0);
    UNIT_CHECK(hak_fake.mapped_bytes + HAK_MIB(12) <= mapped);
}

int main(void)
{
    hak_options.purger = 0; // its thread would not run here
    hak_start_process();
    new_thread();
    hak_sweep_everything();
    pages_stay_when_addresses_are_missing();
    superslabs_go();
    return 0;
}
