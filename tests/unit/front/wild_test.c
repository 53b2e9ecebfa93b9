// with features
// An address as far from a live block as the map is long shares the block's entry, so it
// gets into magazines and parcels as a block does. It is found on every way from there into a
// slab, and wherever more than the entry is read.
#include <hakmem/hakmem.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../census.h"
#include "base/options.h"
#include "cache/direct.h"
#include "cache/magazine.h"
#include "cache/refill.h"
#include "cache/remote.h"
#include "cache/steal.h"
#include "meta/pool.h"

enum { CLASS = 4, OTHERS = 200 };

static struct hak_cache *owner;
static struct hak_cache *other;
static void *others[OTHERS]; // blocks of the same owner
static char *block;          // one more block
static char *wild;

static const char not_ours[] = "was not allocated by hakmem";

static void give_others(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        give(others[i]);
    }
}

static void lock_both(void)
{
    hak_lock_take(&other->owner.lock);
    hak_lock_take(&owner->owner.lock);
}

static void magazine_that_is_flushed(void)
{
    give(wild);
    hak_lock_take(&owner->owner.lock);
    UNIT_DIES(hak_magazine_flush_all(owner), not_ours);
}

static void magazine_that_is_full(void)
{
    hak_options.magazine_bytes = 4096; // the magazine may not grow
    hak_lock_take(&owner->owner.lock);
    hak_magazine_flush_all(owner);
    hak_lock_drop(&owner->owner.lock);
    give(wild); // the coldest block, which leaves first
    UNIT_DIES(give_others(OTHERS), not_ours);
}

static void magazine_that_is_stolen_from(void)
{
    give(wild);
    give_others(3);
    lock_both();
    UNIT_DIES(hak_steal_magazines(other, owner, true), not_ours);
}

static void parcel_that_begins_with_it(void)
{
    become(other);
    give(wild);
    hak_lock_take(&other->owner.lock);
    UNIT_DIES(hak_remote_post_all(other), not_ours);
}

static void post_second(void)
{
    become(other);
    for (unsigned i = 0; i < HAK_PARCEL_BLOCKS / 4; i++) { // fewer go straight into their slabs
        give(others[i]);
    }
    give(wild);
    hak_lock_take(&other->owner.lock);
    hak_remote_post_all(other);
    hak_lock_drop(&other->owner.lock);
    become(owner);
}

static void parcel_that_is_shared_out(void)
{
    become(other);
    give(others[0]);
    give(wild);
    hak_lock_take(&other->owner.lock);
    UNIT_DIES(hak_remote_post_all(other), not_ours);
}

static void parcel_that_is_drained(void)
{
    post_second();
    lock_both();
    UNIT_DIES(hak_remote_drain(other, &owner->owner, HAK_REMOTE_ALL), not_ours);
}

static void parcel_that_fills_a_magazine(void)
{
    post_second();
    hak_lock_take(&owner->owner.lock);
    hak_magazine_flush_all(owner);
    hak_refill_by_parcels(owner, CLASS, 1);
    UNIT_DIES(hak_magazine_flush_all(owner), not_ours);
}

static void parcel_that_is_sent_on(void)
{
    become(other);
    give(wild);
    lock_both();
    UNIT_DIES(hak_remote_send_on(owner, other), not_ours);
}

static void without_memory_for_a_parcel(void)
{
    become(other);
    while (hak_pool_take(sizeof(struct hak_parcel)) != NULL) { // until the pool has none left
        hak_fake.refuse_asks = true;
    }
    UNIT_DIES(give(wild), not_ours);
}

static void check_is_on(void)
{
    hak_option_choose(&hak_options.check, 1, HAK_FROM_PROGRAM);
    hak_direct_start(owner);
    UNIT_DIES(give(wild), not_ours);
}

static void it_is_resized(void)
{
    UNIT_DIES(hak_realloc(wild, hak_classes[CLASS].bytes), not_ours);
    UNIT_DIES(hak_realloc(wild, 100000), not_ours);
}

static void somebody_asks(void)
{
    struct hak_block_info info;
    UNIT_EQUAL(hak_usable_size(block), hak_classes[CLASS].bytes);
    UNIT_EQUAL(hak_usable_size(wild), 0);
    UNIT_CHECK(!hak_owns(wild) && !hak_describe(wild, &info));
}

// Where the kernel chose the addresses, the window's addresses are foreign, with the same entries.
static void outside_the_window(void)
{
    if (HAK_TSAN) {
        return; // the kernel chooses its window
    }
    hak_fake.refuse_hints = true;
    char *large[3];
    for (unsigned i = 0; i < 3; i++) { // until a new superslab is needed
        large[i] = hak_malloc(HAK_MIB(3));
    }
    UNIT_EQUAL(hak_map_slot(large[2]), UINT64_MAX);
    char *inside = hak_map.window + ((uintptr_t)large[2] & ((hak_map.unit_mask << 16) | 0xFFFF));
    UNIT_EQUAL(hak_usable_size(inside), 0);
    UNIT_CHECK(hak_usable_size(large[2]) >= HAK_MIB(3));
    UNIT_EQUAL(hak_usable_size(block), hak_classes[CLASS].bytes);
    UNIT_EQUAL(hak_usable_size(wild), 0);
    UNIT_CHECK(hak_realloc(block, hak_classes[CLASS].bytes) == block);
    UNIT_DIES(hak_realloc(wild, hak_classes[CLASS].bytes), not_ours);
}

// A death leaves locks taken, so each runs in a process of its own.
static void alone(const char *name, void (*find)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        find();
        _exit(0);
    }
    int status = 0;
    UNIT_CHECK(waitpid(child, &status, 0) == child);
    if (status != 0) {
        fprintf(stderr, "not found: %s\n", name);
        _Exit(1);
    }
}

#define ALONE(find) alone(#find, find)

int main(void)
{
    other = new_thread();
    owner = new_thread();
    for (unsigned i = 0; i < OTHERS; i++) {
        others[i] = alloc(CLASS);
    }
    block = alloc(CLASS);
    wild = block + ((hak_map.unit_mask + 1) << HAK_UNIT_LOG2);
    UNIT_EQUAL(hak_map_entry(wild), hak_map_entry(block));
    ALONE(magazine_that_is_flushed);
    ALONE(magazine_that_is_full);
    ALONE(magazine_that_is_stolen_from);
    ALONE(parcel_that_begins_with_it);
    ALONE(parcel_that_is_shared_out);
    ALONE(parcel_that_is_drained);
    ALONE(parcel_that_fills_a_magazine);
    ALONE(parcel_that_is_sent_on);
    ALONE(without_memory_for_a_parcel);
    ALONE(check_is_on);
    ALONE(it_is_resized);
    ALONE(somebody_asks);
    ALONE(outside_the_window);
    return 0;
}
