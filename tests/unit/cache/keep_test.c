// Another thread's blocks that stay with the thread that frees them, as it allocates their class.
#include "../census.h"
#include "base/options.h"
#include "owner/tag.h"

enum { CLASS = 30, SMALL = HAK_KEEP_FIRST - 1, COUNT = 2 * HAK_KEEP_TURNS };

static struct hak_cache *owner;
static struct hak_cache *other;
static void *held[COUNT];

static void owner_takes(unsigned size_class)
{
    become(owner);
    for (unsigned i = 0; i < COUNT; i++) {
        held[i] = alloc(size_class);
        UNIT_CHECK(held[i] != NULL);
    }
}

// Returns how many did not stay.
static unsigned other_gives(unsigned size_class)
{
    become(other);
    const uint32_t before = hak_cache_place(other, size_class);
    for (unsigned i = 0; i < COUNT; i++) {
        give(held[i]);
        held[i] = NULL;
        census_check(held, COUNT);
    }
    return other->magazines[size_class].base != NULL
               ? COUNT - (hak_cache_place(other, size_class) - before)
               : COUNT;
}

// Everything goes back into the slabs, which all retire then.
static void settle(void)
{
    become(owner);
    for (unsigned i = 0; i < COUNT; i++) {
        if (held[i] != NULL) {
            give(held[i]);
            held[i] = NULL;
        }
    }
    hak_lock_take(&other->owner.lock);
    hak_magazine_flush_all(other);
    hak_remote_post_all(other);
    hak_lock_take(&owner->owner.lock);
    hak_remote_drain(other, &owner->owner, HAK_REMOTE_ALL);
    hak_magazine_flush_all(owner);
    hak_lock_drop(&owner->owner.lock);
    hak_lock_drop(&other->owner.lock);
    census_check(NULL, 0);
    UNIT_EQUAL(census_out(), 0);
}

static void who_only_frees_keeps_nothing(void)
{
    owner_takes(CLASS);
    UNIT_EQUAL(other_gives(CLASS), COUNT);
    UNIT_CHECK(other->magazines[CLASS].base == NULL);
    settle();
}

static void other_flushes(void)
{
    hak_lock_take(&other->owner.lock);
    hak_magazine_flush_all(other);
    hak_lock_drop(&other->owner.lock);
}

enum { SWING = 8 * COUNT };

static void other_takes_and_gives(unsigned size_class, unsigned count)
{
    static void *blocks[SWING];
    UNIT_CHECK(count <= SWING);
    become(other);
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = alloc(size_class);
    }
    other_flushes();
    for (unsigned i = 0; i < count; i++) {
        give(blocks[i]);
    }
}

// A magazine with room for all of them.
static void other_gets_a_magazine(unsigned size_class)
{
    for (unsigned turn = 0; turn < 8; turn++) {
        other_takes_and_gives(size_class, SWING);
    }
    other_flushes();
    UNIT_CHECK(hak_cache_magazine_slots(&other->magazines[size_class]) >= COUNT);
}

static void most_stay_and_serve_next(void)
{
    other_gets_a_magazine(CLASS);
    owner_takes(CLASS);
    void *block = held[0];
    UNIT_EQUAL(other_gives(CLASS), COUNT / HAK_KEEP_TURNS);
    void *again = alloc(CLASS);
    UNIT_CHECK(hak_owner_of(again) == &owner->owner && again != block);
    give(again);
    settle(); // once flushed, they are the owner's again
}

static void neighbours_in_a_pair_of_lines_do_not_stay(void)
{
    UNIT_CHECK(hak_classes[SMALL].bytes < 2 * HAK_CACHE_LINE &&
               hak_classes[SMALL + 1].bytes == 2 * HAK_CACHE_LINE);
    other_gets_a_magazine(SMALL);
    owner_takes(SMALL);
    UNIT_EQUAL(other_gives(SMALL), COUNT);
    settle();
}

static void a_full_magazine_takes_no_more(void)
{
    other_gets_a_magazine(CLASS);
    other_takes_and_gives(CLASS, hak_cache_magazine_slots(&other->magazines[CLASS]));
    const hak_place *top = hak_cache_top(other, CLASS);
    UNIT_CHECK(hak_place_is_end(top));
    owner_takes(CLASS);
    UNIT_EQUAL(other_gives(CLASS), COUNT);
    UNIT_CHECK(hak_cache_top(other, CLASS) == top);
    settle();
}

// Blocks that a rule keeps together do not stay with another thread.
static void blocks_of_companions_do_not_stay(void)
{
    other_gets_a_magazine(CLASS);
    struct hak_cache *thread = owner;
    owner = hak_registry_get(HAK_ROLE_SHORT, NULL);
    UNIT_CHECK(owner != NULL && !hak_tag_is_threads(owner->owner.tag) &&
               !hak_tag_is_heap(owner->owner.tag));
    owner_takes(CLASS);
    UNIT_EQUAL(other_gives(CLASS), COUNT);
    settle();
    owner = thread;
}

int main(void)
{
    owner = new_thread();
    other = new_thread();
    who_only_frees_keeps_nothing();
    most_stay_and_serve_next();
    neighbours_in_a_pair_of_lines_do_not_stay();
    a_full_magazine_takes_no_more();
    blocks_of_companions_do_not_stay();
    return 0;
}
