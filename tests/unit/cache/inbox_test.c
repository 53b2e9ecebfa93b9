// Blocks on their way back to the owner of their slab: in parcels, loose, and drained by other threads.
#include "cache/remote.h"

#include "../census.h"
#include "base/options.h"
#include "cache/direct.h"
#include "cache/ended.h"
#include "cache/large.h"
#include "cache/magazine.h"
#include "cache/parcels.h"
#include "cache/reclaim.h"
#include "cache/registry.h"
#include "cache/sweep.h"
#include "meta/pool.h"
#include "owner/owner.h"
#include "owner/slabs.h"

enum { CLASS = 4, OTHER_CLASS = 30, MOST = 2000 };

static struct hak_cache *producer;
static struct hak_cache *consumer;
static void *held[MOST];

static void lock_both(void)
{
    hak_lock_take(&consumer->owner.lock);
    hak_lock_take(&producer->owner.lock);
}

static void drop_both(void)
{
    hak_lock_drop(&producer->owner.lock);
    hak_lock_drop(&consumer->owner.lock);
}

static void produce(unsigned size_class, unsigned count)
{
    become(producer);
    for (unsigned i = 0; i < count; i++) {
        held[i] = alloc(size_class);
        UNIT_CHECK(held[i] != NULL);
    }
}

static void consume(unsigned first, unsigned last)
{
    become(consumer);
    for (unsigned i = first; i < last; i++) {
        give(held[i]);
        held[i] = NULL;
    }
}

static size_t waiting(const struct hak_cache *cache)
{
    size_t count = 0;
    for (const struct hak_parcel *parcel = cache->owner.inbox; parcel != NULL;
         parcel = parcel->next) {
        count += parcel->count;
    }
    return count;
}

// Everything goes back into the slabs, which all retire then.
static void settle(void)
{
    lock_both();
    hak_remote_post_all(consumer);
    hak_remote_post_all(producer);
    hak_remote_drain(producer, &producer->owner, HAK_REMOTE_ALL);
    hak_remote_drain(consumer, &consumer->owner, HAK_REMOTE_ALL);
    hak_magazine_flush_all(producer);
    hak_magazine_flush_all(consumer);
    drop_both();
    census_check(held, MOST);
    UNIT_EQUAL(producer->owner.inbox_bytes, 0);
    UNIT_EQUAL(consumer->owner.inbox_bytes, 0);
}

// Blocks that fill some parcels, and begin another.
enum { SENT = 3 * HAK_PARCEL_BLOCKS, FREED = SENT + HAK_PARCEL_BLOCKS / 4 };

static void full_parcels_are_handed_over(void)
{
    produce(CLASS, FREED);
    for (unsigned i = 0; i < FREED; i++) {
        consume(i, i + 1);
        UNIT_EQUAL(waiting(producer), (i + 1) / HAK_PARCEL_BLOCKS * HAK_PARCEL_BLOCKS);
        census_check(held, MOST);
    }
    UNIT_EQUAL(producer->owner.inbox_bytes, SENT * hak_classes[CLASS].bytes);
    settle();
    UNIT_EQUAL(census_out(), 0);
}

static void parcels_are_full_by_bytes_too(void)
{
    hak_options.parcel_bytes = 4000;
    produce(OTHER_CLASS, 20);
    const unsigned each =
        (4000 + hak_classes[OTHER_CLASS].bytes - 1) / hak_classes[OTHER_CLASS].bytes;
    consume(0, each - 1);
    UNIT_EQUAL(waiting(producer), 0);
    consume(each - 1, each);
    UNIT_EQUAL(waiting(producer), each);
    consume(each, 20);
    hak_options.parcel_bytes = 65536;
    settle();
}

static void the_owner_refills_from_its_inbox(void)
{
    produce(CLASS, FREED);
    consume(0, FREED);
    UNIT_EQUAL(waiting(producer), SENT);
    become(producer);
    const size_t made = producer->owner.classes[CLASS].made_slabs;
    for (unsigned i = 0; i < SENT; i++) {
        held[i] = alloc(CLASS);
        census_check(held, MOST);
    }
    UNIT_EQUAL(waiting(producer), 0);
    UNIT_EQUAL(producer->owner.classes[CLASS].made_slabs, made);
    consume(0, SENT);
    settle();
}

// A program that frees in another thread what it allocates here swings, too: the magazine grows until the blocks no
// longer go through the slabs.
static void magazines_grow_by_what_comes_in_parcels(void)
{
    const struct hak_class_counts *counts = &producer->magazines[OTHER_CLASS].counts;
    size_t spilled = 0;
    for (unsigned round = 0; round < 40; round++) {
        if (round == 20) {
            spilled = counts->spilled_blocks;
            UNIT_CHECK(spilled > 0);
        }
        produce(OTHER_CLASS, HAK_PARCEL_BLOCKS);
        consume(0, HAK_PARCEL_BLOCKS);
        census_check(held, MOST);
    }
    UNIT_EQUAL(counts->spilled_blocks, spilled);
    settle();
}

// The inbox of an owner that never drains it must not grow without bound. But the owner may come: most is left for it.
static void senders_lower_an_inbox_that_nobody_empties(void)
{
    hak_options.parcel_bytes = 64;
    for (unsigned round = 0; round < 10; round++) {
        produce(CLASS, 400);
        consume(0, 400);
        UNIT_CHECK(producer->owner.inbox_bytes <= 16 * 64 + 80 * 2);
        UNIT_CHECK(producer->owner.inbox_bytes >= 14 * 64 - 80);
        census_check(held, MOST);
    }
    hak_options.parcel_bytes = 65536;
    settle();
}

static size_t parcels_waiting(const struct hak_cache *cache)
{
    size_t count = 0;
    for (const struct hak_parcel *parcel = cache->owner.inbox; parcel != NULL;
         parcel = parcel->next) {
        count++;
    }
    return count;
}

// How often the pool's lock was taken for parcels, as far as can be seen: each batch changes one of the two counts.
static unsigned batches_passed(void)
{
    static const void *batches;
    static size_t out_bytes;
    const bool is_changed = batches != hak_parcels.batches || out_bytes != hak_parcels.out_bytes;
    batches = hak_parcels.batches;
    out_bytes = hak_parcels.out_bytes;
    return is_changed;
}

// One thread only fills parcels, the other only opens them: the empty ones go back to the first in batches. And
// neither hoards any, or keeps any when it is idle.
static void a_pair_takes_parcels_by_the_batch(void)
{
    enum { ROUNDS = 20 * HAK_PARCELS_TOGETHER, WARM = 4 * HAK_PARCELS_TOGETHER };
    unsigned passed = 0;
    for (unsigned round = 0; round < WARM + ROUNDS; round++) {
        produce(CLASS, HAK_PARCEL_BLOCKS); // opens the latest parcel
        passed += batches_passed() != 0 && round >= WARM;
        consume(0, HAK_PARCEL_BLOCKS); // sends one
        passed += batches_passed() != 0 && round >= WARM;
        UNIT_CHECK(producer->spare_count < 2 * HAK_PARCELS_TOGETHER);
    }
    UNIT_CHECK(passed > 0 && passed <= 2 * ROUNDS / HAK_PARCELS_TOGETHER + 2);
    UNIT_CHECK(consumer->counts.sent_parcels >= WARM + ROUNDS);
    settle();
    hak_sweep_everything();
    UNIT_EQUAL(hak_parcels.out_bytes, 0);
    UNIT_CHECK(producer->spare_parcel == NULL && consumer->spare_parcel == NULL);
}

// Small blocks of owners that do not drain take more parcels than may wait: the sender of a parcel then drains its inbox.
static void parcels_are_a_small_part_of_the_heap(void)
{
    enum { OWNERS = 4, EACH = 70000 };
    static void *blocks[OWNERS * EACH];
    struct hak_cache *owners[OWNERS];
    for (unsigned i = 0; i < OWNERS; i++) {
        owners[i] = new_thread();
        for (unsigned j = 0; j < EACH; j++) {
            blocks[i * EACH + j] = alloc(0);
        }
    }
    const size_t slack = (HAK_OUTBOXES + 2 * HAK_PARCELS_TOGETHER) * sizeof(struct hak_parcel);
    const size_t most = HAK_MIB(1) + hak_arena_used_bytes() / 16;
    size_t largest = 0;
    become(consumer);
    for (unsigned i = 0; i < OWNERS * EACH; i++) {
        give(blocks[i]);
        largest = hak_parcels.out_bytes > largest ? hak_parcels.out_bytes : largest;
    }
    UNIT_CHECK(largest > most - slack && largest <= most + slack);
    for (unsigned i = 0; i < OWNERS; i++) {
        hak_ended_bury(owners[i]);
    }
    become(producer);
    settle();
    hak_sweep_everything();
    UNIT_EQUAL(hak_parcels.out_bytes, 0);
    UNIT_EQUAL(census_out(), 0);
}

// A thread that frees for more owners than it has outboxes, one block of each in turn, does not send a parcel for each block: the
// blocks are in their slabs, except for those of the last parcels.
static void blocks_of_many_owners_take_few_parcels(void)
{
    enum { OWNERS = 4 * HAK_OUTBOXES, EACH = 12 };
    static void *blocks[OWNERS * EACH];
    struct hak_cache *owners[OWNERS];
    for (unsigned i = 0; i < OWNERS; i++) {
        owners[i] = new_thread();
        for (unsigned j = 0; j < EACH; j++) {
            blocks[i * EACH + j] = alloc(CLASS);
        }
    }
    become(consumer);
    for (unsigned j = 0; j < EACH; j++) {
        for (unsigned i = 0; i < OWNERS; i++) {
            give(blocks[i * EACH + j]);
            blocks[i * EACH + j] = NULL;
        }
        census_check(blocks, OWNERS * EACH);
    }
    for (unsigned i = 0; i < OWNERS; i++) {
        UNIT_EQUAL(parcels_waiting(owners[i]), 0);
    }
    settle();
    census_check(blocks, OWNERS * EACH);
    for (unsigned i = 0; i < OWNERS; i++) {
        hak_ended_bury(owners[i]);
        hak_reclaim_break_up_dead(owners[i], UINT_MAX);
    }
    UNIT_EQUAL(census_out(), 0);
}

// An owner at work holds its lock: its blocks are sent in one parcel, the other owners' blocks are not.
static void an_owner_at_work_gets_a_parcel(void)
{
    enum { EACH = HAK_PARCEL_BLOCKS };
    static void *blocks[2 * EACH];
    struct hak_cache *busy = new_thread();
    for (unsigned i = 0; i < EACH; i++) {
        blocks[i] = alloc(CLASS);
    }
    struct hak_cache *idle = new_thread();
    while ((idle->owner.tag >> 8) % HAK_OUTBOXES != (busy->owner.tag >> 8) % HAK_OUTBOXES) {
        idle = new_thread();
    }
    for (unsigned i = 0; i < EACH; i++) {
        blocks[EACH + i] = alloc(CLASS);
    }
    become(consumer);
    hak_lock_take(&busy->owner.lock);
    for (unsigned i = 0; i < EACH; i++) {
        give(blocks[i]);
        give(blocks[EACH + i]);
    }
    hak_lock_drop(&busy->owner.lock);
    UNIT_EQUAL(parcels_waiting(idle), 0);
    UNIT_CHECK(parcels_waiting(busy) > 0 && parcels_waiting(busy) <= 4);
    settle();
    hak_lock_take(&busy->owner.lock);
    hak_remote_drain(busy, &busy->owner, HAK_REMOTE_ALL);
    hak_lock_drop(&busy->owner.lock);
    settle();
    census_check(NULL, 0); // every block out of its slab waits somewhere
    hak_ended_bury(busy);
    hak_ended_bury(idle);
    hak_reclaim_break_up_dead(busy, UINT_MAX);
    hak_reclaim_break_up_dead(idle, UINT_MAX);
    UNIT_EQUAL(census_out(), 0);
}

static void outboxes_of_several_owners_do_not_mix(void)
{
    enum { OWNERS = 20, EACH = 30 };
    struct hak_cache *owners[OWNERS];
    for (unsigned i = 0; i < OWNERS; i++) {
        owners[i] = new_thread();
        for (unsigned j = 0; j < EACH; j++) {
            held[i * EACH + j] = alloc(CLASS);
        }
    }
    become(consumer);
    for (unsigned j = 0; j < EACH; j++) {
        for (unsigned i = 0; i < OWNERS; i++) {
            consume(i * EACH + j, i * EACH + j + 1);
        }
        census_check(held, MOST);
    }
    settle();
    for (unsigned i = 0; i < OWNERS; i++) {
        for (const struct hak_parcel *parcel = owners[i]->owner.inbox; parcel != NULL;
             parcel = parcel->next) {
            for (unsigned j = 0; j < parcel->count; j++) {
                UNIT_CHECK(hak_run_of(parcel->blocks[j])->owner == &owners[i]->owner);
            }
        }
        hak_ended_bury(owners[i]);
        hak_reclaim_break_up_dead(owners[i], UINT_MAX);
    }
    UNIT_EQUAL(census_out(), 0);
}

static void exhaust_the_pool(void)
{
    uint32_t count;
    hak_fake.refuse_asks = true;
    hak_parcels_give_all(consumer);
    while (hak_pool_shelf_take(&hak_parcels, &count) != NULL) {
        continue;
    }
    for (size_t bytes = HAK_MIB(2); bytes >= 64; bytes /= 2) {
        while (hak_pool_take(bytes) != NULL) {
            continue;
        }
    }
}

static void without_memory_blocks_travel_alone(void)
{
    produce(CLASS, 100);
    exhaust_the_pool();
    consume(0, 100);
    UNIT_CHECK(producer->owner.loose != NULL && producer->owner.inbox == NULL);
    census_check(held, MOST);
    hak_fake.refuse_asks = false;
    settle();
    UNIT_CHECK(producer->owner.loose == NULL);
    UNIT_EQUAL(census_out(), 0);
}

static void unfinished_parcels_can_be_sent_on(void)
{
    produce(CLASS, 100);
    consume(0, 50);
    struct hak_cache *self = hak_registry_get(HAK_ROLE_HEAP, NULL);
    hak_lock_take(&self->owner.lock);
    hak_lock_take(&consumer->owner.lock);
    hak_remote_send_on(self, consumer);
    hak_lock_drop(&consumer->owner.lock);
    census_check(held, MOST);
    hak_remote_post_all(self);
    hak_lock_drop(&self->owner.lock);
    UNIT_EQUAL(waiting(producer), 50);
    consume(50, 100); // the rest of the parcel is filled and sent as if nothing had happened
    census_check(held, MOST);
    settle();
    UNIT_EQUAL(census_out(), 0);
}

// The slab changes its owner while the parcel is filled and sent.
static void parcels_for_a_former_owner_are_sent_on(void)
{
    produce(CLASS, 100);
    consume(0, 50);
    struct hak_run *slab = hak_run_of(held[60]);
    lock_both();
    hak_magazine_flush_all(producer);
    drop_both();
    struct hak_cache *heir = hak_registry_get(HAK_ROLE_THREAD, NULL);
    hak_lock_take(&heir->owner.lock);
    hak_lock_take(&producer->owner.lock);
    hak_list_remove(&slab->link);
    hak_slabs_move(slab, hak_owner_of(slab->base), &heir->owner);
    hak_list_push(hak_slabs_of(&heir->owner, CLASS), &slab->link);
    hak_lock_drop(&producer->owner.lock);
    hak_lock_drop(&heir->owner.lock);
    consume(50, 100);
    settle();
    become(heir);
    hak_lock_take(&heir->owner.lock);
    hak_remote_drain(heir, &heir->owner, HAK_REMOTE_ALL);
    hak_magazine_flush_all(heir);
    hak_lock_drop(&heir->owner.lock);
    census_check(held, MOST);
    UNIT_EQUAL(census_out(), 0);
    hak_ended_bury(heir);
}

static void wild_blocks_in_a_parcel_die(void)
{
    produce(CLASS, 1);
    // An address that shares a map entry with one of ours.
    char *wild = (char *)held[0] + ((hak_map.unit_mask + 1) << HAK_UNIT_LOG2);
    UNIT_EQUAL(hak_map_entry(wild), hak_map_entry(held[0]));
    become(consumer);
    give(wild);
    hak_lock_take(&consumer->owner.lock);
    UNIT_DIES(hak_remote_post_all(consumer), "was not allocated by hakmem");
}

static void an_ended_slab_has_no_owner(void)
{
    produce(OTHER_CLASS, 1);
    struct hak_run *slab = hak_run_of(held[0]);
    UNIT_CHECK(hak_owner_lock(held[0]) == &producer->owner);
    hak_magazine_flush_all(producer);
    UNIT_CHECK(hak_slabs_put(&producer->owner, slab, held[0])); // the last block
    hak_lock_drop(&producer->owner.lock);
    UNIT_CHECK(hak_owner_lock(held[0]) == NULL);
    bool zeroed;
    void *large = hak_large_alloc(HAK_KIB(40), 1, 0, &zeroed);
    UNIT_CHECK(hak_run_of(large) == slab && hak_owner_lock(held[0]) == NULL);
    UNIT_DIES(hak_direct_put(hak_cache_self, held[0]),
              "is already free, and its memory is in use again");
    hak_large_free(producer, large, hak_map_entry(large));
    held[0] = NULL;
}

// Two threads free a block at the same moment: the map entry that one has read ends with the other's free,
// before the first reads the descriptor. First nothing is there then, later a large block.
static void a_slab_may_end_while_a_block_is_freed_again(void)
{
    struct hak_cache *late = new_thread();
    give(alloc(OTHER_CLASS)); // a thread that allocates a class reclaims slabs of dead owners
    produce(OTHER_CLASS, 1);
    void *block = held[0];
    held[0] = NULL;
    const uint32_t entry = hak_map_entry(block);
    hak_lock_take(&producer->owner.lock);
    hak_magazine_flush_all(producer);
    UNIT_CHECK(hak_slabs_put(&producer->owner, hak_run_of(block), block));
    hak_store_relaxed(&producer->owner.state, HAK_OWNER_DEAD);
    hak_lock_drop(&producer->owner.lock);
    UNIT_CHECK(late->magazines[OTHER_CLASS].is_refilled);
    UNIT_DIES(hak_reclaim_or_post(late, block, entry), "is already free");
    hak_lock_drop(&late->owner.lock); // the process would have ended with the lock held
    bool zeroed;
    UNIT_CHECK(hak_large_alloc(HAK_KIB(40), 1, 0, &zeroed) != NULL && hak_run_of(block) != NULL);
    become(late);
    UNIT_DIES(hak_reclaim_or_post(late, block, entry),
              "is already free, and its memory is in use again");
}

int main(void)
{
    producer = new_thread();
    consumer = new_thread();
    full_parcels_are_handed_over();
    parcels_are_full_by_bytes_too();
    the_owner_refills_from_its_inbox();
    magazines_grow_by_what_comes_in_parcels();
    senders_lower_an_inbox_that_nobody_empties();
    a_pair_takes_parcels_by_the_batch();
    parcels_are_a_small_part_of_the_heap();
    outboxes_of_several_owners_do_not_mix();
    blocks_of_many_owners_take_few_parcels();
    an_owner_at_work_gets_a_parcel();
    without_memory_blocks_travel_alone();
    unfinished_parcels_can_be_sent_on();
    parcels_for_a_former_owner_are_sent_on();
    an_ended_slab_has_no_owner();
    wild_blocks_in_a_parcel_die();
    a_slab_may_end_while_a_block_is_freed_again();
    return 0;
}
