// pages: 16384 65536
// Free pages of the pool go back, and no others: checked against a model of every item. With refusals of the kernel.
#include <stdint.h>
#include <sys/mman.h>

#include "../unit.h"
#include "base/bits.h"
#include "meta/pool.h"

enum { ITEMS = 3000, ROUNDS = 60000, SHOWN = 5000, PAGE = 4096, TRAY = 4 * PAGE };
#define KEPT HAK_KIB(256)

static struct item {
    unsigned char *start;
    size_t bytes;
} items[ITEMS];

static bool is_small(const struct item *item)
{
    return hak_power_of_two_above(item->bytes) < PAGE;
}

// The start of what may be resident because of the item: its tray, or all that its size is rounded to.
static size_t begin_of(const struct item *item)
{
    return (uintptr_t)item->start - (is_small(item) ? (uintptr_t)item->start % TRAY : 0);
}

static size_t bytes_of(const struct item *item)
{
    return is_small(item) ? TRAY : hak_power_of_two_above(item->bytes);
}

static unsigned char mark(size_t i)
{
    return (unsigned char)(i | 1);
}

static bool is_all(const unsigned char *start, size_t bytes, unsigned char value)
{
    return bytes == 0 || (start[0] == value && memcmp(start, start + 1, bytes - 1) == 0);
}

static void give(size_t i)
{
    struct item *item = &items[i];
    UNIT_CHECK(is_all(item->start, item->bytes, mark(i)));
    unsigned char *start = item->start;
    item->start = NULL; // from here on its pages may go back
    hak_pool_give(start, item->bytes);
}

static void give_all(void)
{
    for (size_t i = 0; i < ITEMS; i++) {
        if (items[i].start != NULL) {
            give(i);
        }
    }
}

static void take(size_t i, size_t bytes)
{
    struct item *item = &items[i];
    item->bytes = bytes;
    item->start = hak_pool_take(bytes);
    UNIT_CHECK(item->start != NULL && is_all(item->start, bytes, 0));
    const bool has_pages = hak_power_of_two_above(bytes) >= hak_os_page_bytes();
    UNIT_CHECK(UNIT_IS_ALIGNED(item->start, has_pages ? hak_os_page_bytes() : HAK_CACHE_LINE));
    memset(item->start, mark(i), bytes);
}

// No item in use is in the purged range.
static void look_at_purge(void *start, size_t bytes)
{
    const uintptr_t from = (uintptr_t)start;
    for (size_t i = 0; i < ITEMS; i++) {
        if (items[i].start != NULL) {
            const uintptr_t begin = begin_of(&items[i]);
            UNIT_CHECK(begin + bytes_of(&items[i]) <= from || begin >= from + bytes);
        }
    }
}

static const struct hak_pool_chunk *chunk_of(uintptr_t p)
{
    uint32_t i = 0;
    while (p - (uintptr_t)hak_pool.chunks[i].start >= hak_pool.chunks[i].bytes) {
        UNIT_CHECK(++i < hak_pool.chunk_count);
    }
    return &hak_pool.chunks[i];
}

static size_t count_there(const unsigned char *there, size_t pages)
{
    size_t count = 0;
    for (size_t i = 0; i < pages; i++) {
        count += there[i] & 1;
    }
    return count;
}

// Resident bytes that are in no item in use, nor in the tray of one.
static size_t idle_bytes(void)
{
    static unsigned char there[HAK_MIB(256) / PAGE];
    size_t offsets[512];
    size_t pages = 0;
    for (uint32_t i = 0; i < hak_pool.chunk_count; i++) {
        const struct hak_pool_chunk *chunk = &hak_pool.chunks[i];
        UNIT_CHECK(pages + chunk->bytes / PAGE <= sizeof there);
        UNIT_EQUAL(mincore(chunk->start, chunk->bytes, there + pages), 0);
        offsets[i] = pages;
        pages += chunk->bytes / PAGE;
    }
    for (size_t i = 0; i < ITEMS; i++) {
        if (items[i].start != NULL) {
            const uintptr_t begin = begin_of(&items[i]);
            const struct hak_pool_chunk *chunk = chunk_of(begin);
            const size_t page = (begin - (uintptr_t)chunk->start) / PAGE;
            memset(there + offsets[chunk - hak_pool.chunks] + page, 0, bytes_of(&items[i]) / PAGE);
        }
    }
    return count_there(there, pages) * PAGE;
}

static bool has_smallest_pages(void)
{
    return hak_os_page_bytes() == PAGE;
}

// Besides what is kept, a page of each size stays, which has the addresses of other items. With larger pages more stays.
static void expect_idle(size_t kept)
{
    const size_t most = kept + (size_t)HAK_POOL_SIZES * PAGE;
    const size_t bytes = idle_bytes();
    if (has_smallest_pages() && bytes > most) {
        fprintf(stderr, "%zu bytes are idle, not %zu\n", bytes, most);
        UNIT_STOP();
    }
}

static size_t some_bytes(struct ht_random *random)
{
    return ht_random_below(random, 20) == 0 ? 1 + ht_random_below(random, 100000)
                                            : 1 + ht_random_size(random, 6000);
}

static void step(struct ht_random *random, size_t among)
{
    const size_t i = ht_random_below(random, among);
    if (items[i].start != NULL) {
        give(i);
    } else {
        take(i, some_bytes(random));
    }
}

static void what_is_free_goes(void)
{
    struct ht_random random = {5};
    hak_fake.on_purge = look_at_purge;
    for (size_t round = 0; round < ROUNDS; round++) {
        const size_t among = round / (4 * SHOWN) % 2 == 0 ? ITEMS : ITEMS / 30; // a swing
        step(&random, among);
        if (round % SHOWN == 0) {
            expect_idle(KEPT);
        }
        if (round % (4 * SHOWN) == 0) {
            give_all();
            expect_idle(KEPT);
        }
    }
    give_all();
    hak_fake.on_purge = NULL;
}

// The same large amount, again and again, stays within the memory that was mapped for it the first time.
static void the_same_again_takes_no_more(void)
{
    size_t mapped = 0;
    for (unsigned turn = 0; turn < 5; turn++) {
        struct ht_random random = {9};
        for (size_t i = 0; i < ITEMS; i++) {
            take(i, some_bytes(&random));
        }
        UNIT_CHECK(turn == 0 || hak_pool.mapped_bytes == mapped);
        mapped = hak_pool.mapped_bytes;
        give_all();
        expect_idle(KEPT);
    }
}

static void a_trim_takes_the_rest(void)
{
    take(0, PAGE);
    take(1, 100);
    give_all();
    UNIT_CHECK(hak_pool_trim() > 0 || !has_smallest_pages());
    expect_idle(0);
    const size_t purges = hak_fake.purges;
    UNIT_EQUAL(hak_pool_trim(), 0);
    UNIT_EQUAL(hak_fake.purges, purges);
}

// An item that comes and goes costs no system call.
static void what_comes_and_goes_stays(void)
{
    const size_t purges = hak_fake.purges;
    for (unsigned i = 0; i < 1000; i++) {
        take(0, 100);
        take(1, 2 * PAGE);
        give(0);
        give(1);
    }
    UNIT_EQUAL(hak_fake.purges, purges);
}

static void what_is_refused_stays_and_serves(void)
{
    struct ht_random random = {11};
    hak_fake.on_purge = look_at_purge;
    for (unsigned one_in = 0; one_in < 4; one_in++) { // 0: every one is refused
        hak_fake.refuse_purge = one_in == 0;
        hak_fake.refuse_one_in = one_in;
        for (size_t round = 0; round < ROUNDS / 4; round++) {
            step(&random, round % 1000 < 500 ? ITEMS / 3 : ITEMS / 100);
        }
        hak_fake.refuse_purge = true;
        give_all();
        const size_t idle = hak_pool.idle_bytes;
        UNIT_EQUAL(hak_pool_trim(), 0);
        UNIT_EQUAL(hak_pool.idle_bytes, idle); // it is all still resident
        hak_fake.refuse_purge = false;
        hak_fake.refuse_one_in = 0;
        UNIT_CHECK(hak_pool_trim() > 0);
        UNIT_EQUAL(hak_pool.idle_bytes, 0);
        expect_idle(0);
    }
    hak_fake.on_purge = NULL;
}

// What exceeds a shelf's bound goes back to where it came from.
static void a_full_shelf_passes_on(void)
{
    enum { EACH = 8, BATCHES = 400 };
    static struct hak_pool_shelf shelf = {.item_bytes = 500};
    static void **firsts[BATCHES];
    for (unsigned turn = 0; turn < 3; turn++) {
        size_t taken = 0;
        for (size_t batch = 0; batch < BATCHES; batch++) {
            void **first = NULL;
            for (size_t i = 0; i < EACH;) {
                uint32_t count = 0;
                void **item = hak_pool_shelf_take(&shelf, &count);
                UNIT_CHECK(item != NULL && count > 0);
                for (; item != NULL; i++) {
                    void **next = *item;
                    memset(item, 0xff, 500);
                    *item = first;
                    first = item;
                    item = next;
                }
            }
            firsts[batch] = first;
            taken += EACH;
        }
        UNIT_EQUAL(shelf.out_bytes, taken * 500);
        for (size_t batch = 0; batch < BATCHES; batch++) {
            hak_pool_shelf_put(&shelf, (void *)firsts[batch], EACH);
        }
        UNIT_EQUAL(shelf.out_bytes, 0);
        hak_pool_trim();
        expect_idle(KEPT); // what is on the shelf
    }
}

int main(void)
{
    what_is_free_goes();
    the_same_again_takes_no_more();
    a_trim_takes_the_rest();
    what_comes_and_goes_stays();
    what_is_refused_stays_and_serves();
    a_full_shelf_passes_on();
    return 0;
}
