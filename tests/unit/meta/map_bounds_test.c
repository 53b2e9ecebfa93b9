// pages: 16384 65536
// What a refused mapping costs, and that it leaves nothing behind; and what a search for free addresses costs.
#include "../unit.h"
#include "base/check.h"
#include "meta/addresses.h"
#include "meta/map.h"

#define SUPER(n) ((size_t)(n) * HAK_SUPER_BYTES)

enum { MOST_LOOKS = 200, HOLES = 500 };

static char *taken[2 * HOLES];

// Try a mapping that is refused; returns the system calls that it took.
static size_t maps_of_a_refusal(size_t bytes)
{
    const size_t before = hak_fake.maps;
    hak_fake.refuse_asks = true;
    UNIT_CHECK(hak_addresses_take(bytes, NULL) == NULL);
    hak_fake.refuse_asks = false;
    return hak_fake.maps - before;
}

// Nothing of ours is there yet: the kernel may be unable to map at those addresses.
static void before_the_first_mapping_another_place_is_tried(void)
{
    UNIT_EQUAL(maps_of_a_refusal(HAK_SUPER_BYTES), 2);
}

static void a_refusal_is_one_call_and_moves_nothing(void)
{
    char *first = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    const uint64_t next = hak_map.next_slot;
    for (unsigned i = 0; i < 10; i++) {
        UNIT_EQUAL(maps_of_a_refusal(HAK_GIB(64)), 1);
        UNIT_EQUAL(hak_map.next_slot, next);
    }
    char *second = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(second == first + HAK_SUPER_BYTES || HAK_TSAN);
    UNIT_CHECK(hak_addresses_give(first, HAK_SUPER_BYTES) &&
               hak_addresses_give(second, HAK_SUPER_BYTES));
}

static size_t looks_of_a_refusal(size_t bytes)
{
    const size_t before = hak_looks;
    maps_of_a_refusal(bytes);
    return hak_looks - before;
}

static void what_is_longer_than_the_window_is_not_looked_for(void)
{
    const size_t window = SUPER(hak_map.super_mask + 1);
    UNIT_CHECK(looks_of_a_refusal(window + HAK_SUPER_BYTES) < MOST_LOOKS);
    UNIT_CHECK(looks_of_a_refusal(4 * window) < MOST_LOOKS);
    UNIT_CHECK(looks_of_a_refusal(window - SUPER(1)) <
               MOST_LOOKS); // behind the first slot, which is never used
    UNIT_CHECK(looks_of_a_refusal(window - SUPER(100)) < MOST_LOOKS);
}

// Free addresses between others, each range too short: a search passes them once.
static void short_holes_are_passed_once(void)
{
    hak_map.next_slot = 1000;
    for (unsigned i = 0; i < 2 * HOLES; i++) {
        taken[i] = hak_addresses_take(HAK_SUPER_BYTES, NULL);
        UNIT_CHECK(taken[i] != NULL);
    }
    for (unsigned i = 0; i < 2 * HOLES; i += 2) {
        UNIT_CHECK(hak_addresses_give(taken[i], HAK_SUPER_BYTES));
    }
    hak_map.next_slot = 1000;
    char *long_one = hak_addresses_take(SUPER(2), NULL);
    const size_t before = hak_looks;
    char *next = hak_addresses_take(SUPER(2), NULL);
    UNIT_CHECK(hak_looks - before < MOST_LOOKS);
    UNIT_CHECK(next == long_one + SUPER(2) || HAK_TSAN);
    // What was not found is not searched for again until something is freed.
    const size_t most = SUPER(hak_map.super_mask + 1 - 1000);
    looks_of_a_refusal(most);
    UNIT_EQUAL(looks_of_a_refusal(most), 0);
    UNIT_CHECK(hak_addresses_give(long_one, SUPER(2)) && hak_addresses_give(next, SUPER(2)));
    for (unsigned i = 1; i < 2 * HOLES; i += 2) {
        UNIT_CHECK(hak_addresses_give(taken[i], HAK_SUPER_BYTES));
    }
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    before_the_first_mapping_another_place_is_tried();
    a_refusal_is_one_call_and_moves_nothing();
    what_is_longer_than_the_window_is_not_looked_for();
    short_holes_are_passed_once();
    return 0;
}
