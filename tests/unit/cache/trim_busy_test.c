// malloc_trim beside threads at work, more of them than processors: how often it waits for one, and how much it purges that is then
// taken again at once.
#include "cache/sweep.h"

#include "../census.h"
#include "base/options.h"
#include "cache/take.h"
#include "owner/slabs.h"
#include "owner/watch.h"

enum { CLASS = 8, THREADS = 40, SLABS = 20, MOST_BLOCKS = 1 << 17 };

static void *blocks[MOST_BLOCKS];
static struct hak_cache *caches[THREADS];
static unsigned waits;
static unsigned turn;

// All blocks of each slab but one.
static struct hak_cache *work(size_t first, size_t slabs)
{
    struct hak_cache *cache = new_thread();
    const size_t of_slab = hak_classes[CLASS].blocks;
    const size_t count = slabs * of_slab;
    UNIT_CHECK(first + count <= MOST_BLOCKS);
    for (size_t i = 0; i < count; i++) {
        blocks[first + i] = alloc(CLASS);
    }
    for (size_t i = 0; i < count; i++) {
        if (i % of_slab != 7) {
            give(blocks[first + i]);
            blocks[first + i] = NULL;
        }
    }
    return cache;
}

static void give_all(size_t count)
{
    census_check(blocks, count);
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] != NULL) {
            give(blocks[i]);
            blocks[i] = NULL;
        }
    }
}

// Every other thread was preempted in the middle of a slow path.
static void stop_some(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        if (i % 2 == turn) {
            UNIT_CHECK(hak_lock_try(&caches[i]->owner.lock));
        }
    }
}

static void go_on(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        if (i % 2 == turn) {
            hak_store_relaxed(&caches[i]->owner.lock.word, HAK_LOCK_FREE);
        }
    }
}

// Before a preempted thread runs again, all others have had their turn, and some were preempted in turn.
static void all_have_a_turn(void)
{
    if (hak_load_relaxed(&hak_watch.lock.word) == HAK_LOCK_FREE) {
        return;
    }
    waits++;
    go_on();
    turn = 1 - turn;
    stop_some();
}

static void it_waits_for_few(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        caches[i] = work(i * (size_t)hak_classes[CLASS].blocks, 1);
    }
    new_thread();
    stop_some();
    hak_fake.on_wait = all_have_a_turn;
    hak_sweep_everything();
    hak_fake.on_wait = NULL;
    go_on();
    UNIT_CHECK(waits > 0 && waits <= 2);
    for (unsigned i = 0; i < THREADS; i++) { // and yet no cache is left out
        const struct hak_run *slab = hak_run_of(blocks[i * hak_classes[CLASS].blocks + 7]);
        UNIT_CHECK(slab->is_swept);
    }
    UNIT_EQUAL(hak_watch.strips, 0);
    UNIT_CHECK(hak_watch.put_off == NULL && hak_watch.unvisited == NULL);
    give_all(THREADS * (size_t)hak_classes[CLASS].blocks);
}

static size_t purges;
static bool somebody_waits;

// The cache's thread takes a block, which touches a purged page, and frees it.
static void its_thread_takes_again(void *start, size_t bytes)
{
    (void)bytes;
    struct hak_owner *owner = hak_owner_of(start);
    if (owner == NULL || owner != &caches[0]->owner) {
        return;
    }
    UNIT_CHECK(++purges <= 3 * SLABS);
    hak_lock_is_held(&owner->lock);
    void *block = NULL;
    UNIT_EQUAL(hak_take_many(caches[0], CLASS, &block, 1), 1);
    hak_slabs_put(owner, hak_run_of(block), block);
    if (somebody_waits) {
        hak_or_relaxed(&owner->lock.word, HAK_LOCK_WAITED);
    }
}

static void nothing_goes_back_twice(void)
{
    purges = 0;
    caches[0] = work(0, SLABS);
    hak_fake.on_purge = its_thread_takes_again;
    hak_sweep_everything();
    hak_fake.on_purge = NULL;
    UNIT_CHECK(purges >= SLABS / 2);
    UNIT_EQUAL(hak_watch.strips, 0);
    give_all(SLABS * (size_t)hak_classes[CLASS].blocks);
}

int main(void)
{
    new_thread();
    census_have_sweeper();
    it_waits_for_few();
    nothing_goes_back_twice();
    somebody_waits = true;
    nothing_goes_back_twice();
    return 0;
}
