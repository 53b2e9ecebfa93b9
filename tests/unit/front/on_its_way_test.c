// Memory that another thread is giving back at this moment counts as free: a request that needs it waits for it, and is
// refused only if it does not fit then.
#include <hakmem/hakmem.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../unit.h"
#include "base/options.h"
#include "cache/start.h"
#include "slab/arena.h"
#include "slab/purge.h"

#define BLOCK HAK_MIB(56)

static atomic_bool is_under_way;
static atomic_bool may_go_on;
static atomic_uint waits;

// The other thread's first system call lasts until a thread waits for it, or has given up.
static void last(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
    hak_fake.on_purge = NULL;
    is_under_way = true;
    while (!may_go_on) {
        sched_yield();
    }
}

static void somebody_waits(void)
{
    waits++;
    may_go_on = true;
    while (is_under_way) {
        sched_yield(); // the fake's wait returns at once
    }
}

static void *give_back(void *unused)
{
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    is_under_way = false;
    return unused;
}

// All of the block is on its way back when the next request comes.
static void request_meanwhile(void)
{
    char *block = hak_malloc(BLOCK);
    UNIT_CHECK(block != NULL);
    hak_free(block);
    UNIT_CHECK(hak_arena.dirty_bytes >= BLOCK);
    is_under_way = false;
    may_go_on = false;
    hak_fake.on_purge = last;
    hak_fake.on_wait = somebody_waits;
    hak_fake.process_id = 2; // so that the kernel is asked for the thread's id
    pthread_t thread;
    UNIT_EQUAL(pthread_create(&thread, NULL, give_back, NULL), 0);
    while (!is_under_way) {
        sched_yield();
    }
    hak_fake.process_id = 1;
    block = hak_malloc(BLOCK);
    may_go_on = true;
    pthread_join(thread, NULL);
    hak_fake.on_wait = NULL;
    UNIT_CHECK(block != NULL);
    hak_free(block);
}

static void under_the_heaps_own_limit(void)
{
    hak_options.limit_hard = HAK_MIB(64);
    request_meanwhile();
    hak_options.limit_hard = 0;
}

static void under_the_systems_limit(void)
{
    hak_trim();
    char *block = hak_malloc(BLOCK);
    hak_fake.budget_bytes = hak_fake.mapped_bytes + HAK_MIB(4);
    hak_free(block);
    request_meanwhile();
    hak_fake.budget_bytes = SIZE_MAX;
}

// A signal handler that allocates in the middle of a purge would wait for its own thread.
static void allocate(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
    hak_fake.on_purge = NULL;
    waits = 0;
    UNIT_CHECK(hak_malloc(BLOCK) == NULL);
    UNIT_EQUAL(waits, 0);
}

static void nobody_waits_for_himself(void)
{
    hak_options.limit_hard = HAK_MIB(64);
    hak_trim();
    hak_free(hak_malloc(BLOCK));
    hak_fake.on_wait = somebody_waits;
    hak_fake.on_purge = allocate;
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
    hak_fake.on_wait = NULL;
    hak_options.limit_hard = 0;
}

int main(void)
{
    hak_options.purger = 0; // the sweeper's thread would not run here
    hak_options.dirty_bytes = HAK_GIB(1);
    under_the_heaps_own_limit();
    under_the_systems_limit();
    nobody_waits_for_himself();
    return 0;
}
