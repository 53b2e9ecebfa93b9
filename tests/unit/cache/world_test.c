// How fork handles the locks of caches: it reads them behind a gate, if the kernel grants a barrier.
#include "cache/world.h"

#include <sys/wait.h>

#include "../census.h"
#include "cache/registry.h"
#include "slab/outside.h"

static bool are_all(uint32_t word)
{
    bool are = true;
    for (struct hak_cache *cache = hak_registry.all; cache != NULL; cache = cache->next) {
        are &= cache->owner.lock.word == word;
    }
    return are;
}

static bool can_be_taken(struct hak_cache *cache)
{
    const bool can = hak_lock_try(&cache->owner.lock);
    if (can) {
        hak_lock_drop(&cache->owner.lock);
    }
    return can;
}

static void they_are_not_written_to(void)
{
    UNIT_CHECK(hak_world_lock_to_fork());
    UNIT_CHECK(are_all(HAK_LOCK_FREE));
    UNIT_EQUAL(hak_registry.lock.word, HAK_LOCK_HELD);
    UNIT_CHECK(!can_be_taken(hak_cache_self));
    UNIT_CHECK(are_all(HAK_LOCK_FREE));
    hak_world_unlock();
    UNIT_CHECK(can_be_taken(hak_cache_self));
    UNIT_EQUAL(hak_registry.lock.word, HAK_LOCK_FREE);
}

static void without_a_barrier_they_are_taken(void)
{
    hak_fake.refuse_barrier = true;
    UNIT_CHECK(hak_world_lock_to_fork());
    UNIT_CHECK(are_all(HAK_LOCK_HELD));
    hak_world_unlock();
    UNIT_CHECK(are_all(HAK_LOCK_FREE) && can_be_taken(hak_cache_self));
    hak_fake.refuse_barrier = false;
}

static struct hak_cache *other;
static unsigned waits;

static void drop_at_last(void)
{
    if (++waits == 3) {
        hak_lock_drop(&other->owner.lock);
    }
}

// A lock that is held when the gate is closed.
static void a_holder_is_waited_for(void)
{
    hak_lock_take(&other->owner.lock);
    hak_fake.on_wait = drop_at_last;
    UNIT_CHECK(hak_world_lock_to_fork());
    hak_fake.on_wait = NULL;
    UNIT_EQUAL(waits, 3);
    UNIT_CHECK(are_all(HAK_LOCK_FREE));
    hak_world_unlock();
}

// It is held for a moment only, as by a thread that then finds the gate closed.
static void one_that_is_held_at_that_moment_is_free_in_the_child(void)
{
    UNIT_CHECK(hak_world_lock_to_fork());
    other->owner.lock.word = HAK_LOCK_HELD | HAK_LOCK_WAITED;
    hak_lock_take(&hak_outside_lock); // fork takes all others
    hak_fake.is_alone = true;         // so that fork's hooks do not do it again
    const pid_t child = fork();
    UNIT_CHECK(child >= 0);
    if (child == 0) {
        hak_world_unlock_in_child();
        _exit(are_all(HAK_LOCK_FREE) && can_be_taken(other) && hak_lock_try(&hak_outside_lock) ? 0
                                                                                               : 1);
    }
    hak_lock_drop(&hak_outside_lock);
    hak_fake.is_alone = false;
    other->owner.lock.word = HAK_LOCK_FREE;
    hak_world_unlock();
    int status = 1;
    UNIT_CHECK(waitpid(child, &status, 0) == child);
    UNIT_EQUAL(status, 0);
}

// As a request for statistics does meanwhile, which has no time to wait.
static void who_gives_up_leaves_the_gate_closed(void)
{
    UNIT_CHECK(hak_world_lock_to_fork());
    UNIT_CHECK(!hak_world_lock_within(1));
    UNIT_CHECK(!can_be_taken(other));
    other->owner.lock.word = HAK_LOCK_HELD; // by a thread that is about to find the gate closed
    hak_world_unlock();
    UNIT_EQUAL(other->owner.lock.word, HAK_LOCK_HELD);
    other->owner.lock.word = HAK_LOCK_FREE;
    UNIT_CHECK(are_all(HAK_LOCK_FREE) && can_be_taken(other));
}

int main(void)
{
    struct hak_cache *own = new_thread();
    other = new_thread();
    become(own);
    they_are_not_written_to();
    without_a_barrier_they_are_taken();
    a_holder_is_waited_for();
    one_that_is_held_at_that_moment_is_free_in_the_child();
    who_gives_up_leaves_the_gate_closed();
    return 0;
}
