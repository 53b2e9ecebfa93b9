// The pool: items are zeroed, do not overlap and are reused; a refusal does no harm.
#include "meta/pool.h"

#include <stdint.h>

#include "../unit.h"
#include "base/bits.h"

enum { ITEMS = 4000, LARGEST = 9000 };

struct item {
    unsigned char *start;
    size_t bytes;
};

static void check_zeroed(const unsigned char *item, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        UNIT_EQUAL(item[i], 0);
    }
}

static void check_mark(const struct item *item, size_t mark)
{
    for (size_t i = 0; i < item->bytes; i++) {
        UNIT_EQUAL(item->start[i], (unsigned char)mark);
    }
}

static void items_are_zeroed_aligned_and_apart(void)
{
    static struct item items[ITEMS];
    struct ht_random random = {7};
    for (size_t round = 0; round < 5 * ITEMS; round++) {
        const size_t i = ht_random_below(&random, ITEMS);
        struct item *item = &items[i];
        if (item->start != NULL) {
            check_mark(item, i | 1);
            hak_pool_give(item->start, item->bytes);
            item->start = NULL;
        } else {
            item->bytes = 1 + ht_random_size(&random, LARGEST);
            item->start = hak_pool_take(item->bytes);
            UNIT_CHECK(item->start != NULL && UNIT_IS_ALIGNED(item->start, HAK_CACHE_LINE));
            check_zeroed(item->start, item->bytes);
            memset(item->start, (int)(i | 1), item->bytes);
        }
    }
}

// The whole pages of an item after its first bytes can be purged, and read as zeros then.
static void pages_of_an_item_in_use_can_go(void)
{
    const size_t page = hak_os_page_bytes();
    for (unsigned i = 0; i < 10; i++) {
        const size_t purges = hak_fake.purges;
        void *small = hak_pool_take(page / 2);
        UNIT_CHECK(small != NULL);
        hak_pool_purge(small, page / 2, 0); // it has no whole page
        UNIT_EQUAL(hak_fake.purges, purges);
        unsigned char *item = hak_pool_take(4 * page);
        UNIT_CHECK(item != NULL && UNIT_IS_ALIGNED(item, page));
        memset(item, 1, 4 * page);
        const size_t purged = hak_fake.purged_bytes;
        hak_pool_purge(item, 4 * page, page - 100);
        UNIT_EQUAL(hak_fake.purged_bytes - purged, 3 * page);
        UNIT_EQUAL(item[page - 1], 1);
        check_zeroed(item + page, 3 * page);
    }
}

static void items_are_used_again(void)
{
    const size_t before = hak_pool.mapped_bytes;
    for (unsigned i = 0; i < 100000; i++) {
        void *item = hak_pool_take(3000);
        UNIT_CHECK(item != NULL);
        memset(item, 0xff, 3000);
        hak_pool_give(item, 3000);
    }
    UNIT_CHECK(hak_pool.mapped_bytes <= before + HAK_MIB(2)); // at most one chunk more
}

static void batches_come_back_as_they_were_given(void)
{
    enum { EACH = 5, BATCHES = 3 };
    struct hak_pool_shelf shelf = {.item_bytes = 500};
    void *firsts[BATCHES];
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        void **first = NULL;
        for (unsigned i = 0; i < EACH; i++) { // the shelf is empty: one at a time
            uint32_t count = 0;
            void **item = hak_pool_shelf_take(&shelf, &count);
            UNIT_CHECK(item != NULL && *item == NULL && count == 1);
            memset(item, 0xff, 500);
            *item = first;
            first = item;
        }
        firsts[batch] = first;
    }
    UNIT_EQUAL(shelf.out_bytes, (size_t)BATCHES * EACH * 500);
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        hak_pool_shelf_put(&shelf, firsts[batch], EACH);
    }
    UNIT_EQUAL(shelf.out_bytes, 0);
    for (unsigned batch = BATCHES; batch > 0; batch--) { // the latest batch first
        uint32_t count = 0;
        void **item = hak_pool_shelf_take(&shelf, &count);
        UNIT_CHECK(item == firsts[batch - 1] && count == EACH);
        for (; item != NULL; item = *item) {
            count--;
        }
        UNIT_EQUAL(count, 0);
    }
    UNIT_EQUAL(shelf.out_bytes, (size_t)BATCHES * EACH * 500);
    hak_fake.refuse_asks = true;
    uint32_t count = 1;
    while (hak_pool_shelf_take(&shelf, &count) != NULL) {
        UNIT_EQUAL(count, 1);
    }
    UNIT_EQUAL(count, 0);
    hak_fake.refuse_asks = false;
}

static void what_a_chunk_has_left_is_not_lost(void)
{
    // More than any chunk has left, so that the rest of the chunk is shelved …
    const size_t mapped = hak_pool.mapped_bytes;
    const size_t rest = hak_pool.fresh_bytes;
    void *large = hak_pool_take(HAK_MIB(4));
    UNIT_CHECK(large != NULL);
    UNIT_EQUAL(hak_pool.mapped_bytes, mapped + HAK_MIB(4));
    // … and then taken line by line, without another mapping.
    hak_fake.refuse_asks = true;
    size_t taken = 0;
    for (size_t bytes = HAK_MIB(1); bytes >= HAK_CACHE_LINE; bytes /= 2) {
        for (void *item; (item = hak_pool_take(bytes)) != NULL; taken += bytes) {
            check_zeroed(item, bytes);
        }
    }
    hak_fake.refuse_asks = false;
    UNIT_CHECK(taken >= rest);
}

static void without_memory_it_says_so_and_recovers(void)
{
    const size_t mapped = hak_pool.mapped_bytes;
    hak_fake.refuse_asks = true;
    UNIT_CHECK(hak_pool_take(HAK_MIB(1)) == NULL);
    while (hak_pool_take(5000) !=
           NULL) { // at the start of a chunk there may be room in front of an aligned item
    }
    hak_fake.refuse_asks = false;
    UNIT_EQUAL(hak_pool.mapped_bytes, mapped);
    hak_fake_fail_in(1, 1); // a whole chunk is refused, but not the bytes needed now
    void *item = hak_pool_take(5000);
    UNIT_CHECK(item != NULL);
    UNIT_EQUAL(hak_pool.mapped_bytes, mapped + HAK_KIB(64));
    check_zeroed(item, 5000);
    UNIT_CHECK(hak_pool_take(HAK_MIB(1)) != NULL);
}

// A tool that reads from outside finds each chunk, and chunks take few of the kernel's mappings.
static void many_descriptors_lie_in_few_chunks(void)
{
    while (hak_pool.mapped_bytes < 2 * HAK_GIB(1)) {
        UNIT_CHECK(hak_pool_take(HAK_MIB(1)) != NULL); // untouched
    }
    UNIT_CHECK(hak_pool.chunk_count < 200);
    size_t listed_bytes = 0;
    for (uint32_t i = 0; i < hak_pool.chunk_count; i++) {
        listed_bytes += hak_pool.chunks[i].bytes;
    }
    UNIT_EQUAL(listed_bytes, hak_pool.mapped_bytes);
}

static void more_than_the_largest_dies(void)
{
    UNIT_DIES(hak_pool_take(HAK_MIB(32) + 1), "internal: ");
}

int main(void)
{
    items_are_zeroed_aligned_and_apart();
    pages_of_an_item_in_use_can_go();
    items_are_used_again();
    what_a_chunk_has_left_is_not_lost();
    batches_come_back_as_they_were_given();
    without_memory_it_says_so_and_recovers();
    many_descriptors_lie_in_few_chunks();
    more_than_the_largest_dies();
    return 0;
}
