// What is set up with the first call of the process, and what later.
#include "cache/start.h"

#include <pthread.h>

#include "../census.h"
#include "base/options.h"

enum { CLASS = 6, OTHER_CLASS = 20, BLOCKS = 100 };

static void *use_heap(void *nothing)
{
    (void)nothing;
    give(alloc(CLASS));
    return hak_cache_self;
}

// Constructors of other libraries may start threads before ours has run.
static void a_thread_that_starts_before_the_constructor_ends_its_cache(void)
{
    pthread_t thread;
    void *cache;
    UNIT_EQUAL(pthread_create(&thread, NULL, use_heap, NULL), 0);
    UNIT_EQUAL(pthread_join(thread, &cache), 0);
    UNIT_CHECK(cache != &hak_cache_nobody);
    UNIT_EQUAL(((struct hak_cache *)cache)->owner.state, HAK_OWNER_DEAD);
}

static void option_check_reaches_caches_that_were_there_before(void)
{
    void *held[BLOCKS];
    struct hak_cache *constructors = new_thread();
    struct hak_cache *other = new_thread();
    for (unsigned i = 0; i < BLOCKS; i++) {
        held[i] = alloc(CLASS);
    }
    become(constructors);
    give(held[0]); // into a parcel
    give(alloc(CLASS));
    hak_option_choose(&hak_options.check, 1, HAK_FROM_PROGRAM);
    hak_start_process();
    UNIT_CHECK(constructors->is_direct && constructors->outboxes[0].parcel == NULL);
    UNIT_CHECK(!other->is_direct);
    become(other);
    give(alloc(OTHER_CLASS)); // its first slow path since then
    UNIT_CHECK(other->is_direct && other->magazines[CLASS].base == NULL);
    UNIT_CHECK(hak_slab_is_out(hak_run_of(held[1]), held[1]));
    give(held[1]);
    UNIT_CHECK(!hak_slab_is_out(hak_run_of(held[2]), held[1]));
    census_check(held + 2, BLOCKS - 2);
    UNIT_DIES(give(held[1]), "double free: "); // at once; last, as a lock stays taken
}

int main(void)
{
    a_thread_that_starts_before_the_constructor_ends_its_cache();
    option_check_reaches_caches_that_were_there_before();
    return 0;
}
