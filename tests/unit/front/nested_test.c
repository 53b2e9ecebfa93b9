// A function that we call while we give memory back may allocate and free, whatever locks we hold.
#include "cache/nested.h"

#include <errno.h>
#include <hakmem/hakmem.h>

#include "../census.h"
#include "cache/cache.h"
#include "cache/world.h"

enum { MOST = 4000, PAGE = 4096, BIG = 300000 };

static void *outer;

static void lock_all(void)
{
    hak_world_lock();
    outer = hak_nested_begin();
    UNIT_CHECK(hak_is_nested && hak_cache_self == &hak_cache_nobody);
}

static void unlock_all(void)
{
    hak_nested_end(outer);
    UNIT_CHECK(!hak_is_nested);
    hak_world_unlock();
}

// As when memory goes back before the thread's first allocation.
static void a_thread_without_a_cache_has_none_afterwards(void)
{
    void *before = hak_nested_begin();
    hak_nested_end(before);
    UNIT_CHECK(!hak_is_nested && hak_cache_self == &hak_cache_nobody);
    hak_free(hak_malloc(100));
    UNIT_CHECK(hak_cache_self != &hak_cache_nobody);
}

// The thread that was mapping the small heap while another one forked does not exist in the child.
static void a_forked_child_has_the_small_heap_too(void)
{
    for (unsigned round = 0; round < 2; round++) { // not mapped yet, and mapped
        hak_store_relaxed(&hak_nested_state, HAK_NESTED_BUSY);
        hak_nested_forked();
        lock_all();
        void *block = hak_malloc(100);
        UNIT_CHECK(block != NULL && hak_nested_owns(block));
        hak_free(block);
        unlock_all();
    }
}

static void all_of_the_family_works_with_everything_locked(void)
{
    char *of_the_program = hak_malloc(100);
    char *large = hak_malloc(BIG);
    struct hak_cache *self = hak_cache_self;
    memset(of_the_program, 1, 100);
    lock_all();
    char *block = hak_realloc(of_the_program, 200); // a copy: the old one waits
    UNIT_CHECK(block != of_the_program && block[99] == 1 && hak_usable_size(block) == 200);
    char *other = hak_realloc(large, 2 * BIG);
    UNIT_CHECK(other != large && hak_nested_owns(other));
    char *zeros = hak_calloc(BIG, 1);
    UNIT_CHECK(zeros[0] == 0 && zeros[BIG - 1] == 0);
    void *aligned = hak_aligned_alloc(PAGE, 10);
    UNIT_EQUAL((uintptr_t)aligned % PAGE, 0);
    UNIT_CHECK(hak_malloc(0) != NULL);
    hak_free(NULL);
    hak_free(other);
    hak_free(aligned);
    void *inner = hak_nested_begin(); // the listener itself gives memory back
    hak_nested_end(inner);
    UNIT_CHECK(hak_is_nested);
    unlock_all();
    UNIT_CHECK(hak_cache_self == self);
    block = hak_realloc(block, 1000);
    UNIT_CHECK(block[99] == 1 && !hak_nested_owns(block));
    hak_free(block);
    hak_free(zeros);
}

static void what_was_freed_inside_is_free_with_the_next_slow_path(void)
{
    char *block = hak_malloc(BIG);
    lock_all();
    hak_free(block);
    unlock_all();
    UNIT_CHECK(hak_usable_size(block) != 0);
    hak_nested_free_waiting();
    UNIT_EQUAL(hak_usable_size(block), 0);
}

static void the_small_heap_ends_and_is_used_again(void)
{
    static void *blocks[MOST];
    unsigned counts[2];
    for (unsigned round = 0; round < 2; round++) {
        unsigned count = 0;
        lock_all();
        errno = 0;
        while ((blocks[count] = hak_malloc(2000)) != NULL) {
            memset(blocks[count], (int)count, 2000);
            count++;
        }
        UNIT_EQUAL(errno, ENOMEM);
        for (unsigned i = 0; i < count; i++) {
            UNIT_CHECK(((unsigned char *)blocks[i])[1999] == (unsigned char)i);
            hak_free(blocks[i]);
        }
        unlock_all();
        counts[round] = count;
    }
    UNIT_CHECK(counts[0] > 300);
    UNIT_EQUAL(counts[0], counts[1]);
}

static void one_that_is_free_is_not_freed_again(void)
{
    lock_all();
    char *block = hak_malloc(2000);
    unlock_all();
    hak_free(block);
    UNIT_DIES(hak_free(block), "0x");
}

int main(void)
{
    a_thread_without_a_cache_has_none_afterwards();
    a_forked_child_has_the_small_heap_too();
    all_of_the_family_works_with_everything_locked();
    what_was_freed_inside_is_free_with_the_next_slow_path();
    the_small_heap_ends_and_is_used_again();
    one_that_is_free_is_not_freed_again();
    return 0;
}
