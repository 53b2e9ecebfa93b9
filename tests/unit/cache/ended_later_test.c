// native only: qemu has no list of a thread's robust mutexes
// The cache of a thread that ended without our destructor ends by a later look if its lock is held during the first ones, as by
// a sweep or a thread that sends blocks: the kernel tells only once that the thread has ended.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../census.h"
#include "base/options.h"
#include "cache/ended.h"

static struct hak_cache *its;

static void *end_without_a_word(void *nothing)
{
    its = hak_start_thread(NULL);
    syscall(SYS_exit, 0);
    return nothing;
}

int main(void)
{
    pthread_t thread;
    if (HAK_IS_SANITIZED) {
        return 77; // there it cannot be known that a thread has ended
    }
    hak_options.purger = 0;
    hak_start_process();
    UNIT_CHECK(hak_start_thread(NULL) != NULL);
    UNIT_EQUAL(pthread_create(&thread, NULL, end_without_a_word, NULL), 0);
    pthread_join(thread, NULL);
    UNIT_CHECK(its != NULL && its != hak_cache_self);
    hak_lock_take(&its->owner.lock);
    hak_ended_look();
    hak_ended_look();
    hak_lock_drop(&its->owner.lock);
    UNIT_EQUAL(its->owner.state, HAK_OWNER_LIVE);
    hak_ended_look();
    UNIT_EQUAL(its->owner.state, HAK_OWNER_DEAD);
    hak_ended_look();
    UNIT_EQUAL(hak_registry_get(HAK_ROLE_THREAD, NULL), its);
    UNIT_CHECK(hak_registry_get(HAK_ROLE_THREAD, NULL) != its);
    return 0;
}
