// soak in: aarch64 mte
// pages: 16384 65536
// The address map: parts, slots and windows, and their state after memory was refused.
#include "meta/addresses.h"
#include "meta/map.h"

#include <sys/mman.h>

#include "../unit.h"

// Superslabs whose entries one committed part of the table holds.
#define PART_SLOTS (HAK_MIB(1) / sizeof(uint32_t) / HAK_SUPER_UNITS)
#define SUPER(n)   ((size_t)(n) * HAK_SUPER_BYTES)

static bool slot_used(uint64_t slot)
{
    return (hak_map.slots[slot / 64] >> (slot % 64) & 1) != 0;
}

// Without the first, which is never ours: NULL leads there.
static uint64_t slots_used(void)
{
    UNIT_CHECK(slot_used(0));
    uint64_t used = 0;
    for (uint64_t slot = 1; slot <= hak_map.super_mask; slot++) {
        used += slot_used(slot);
    }
    return used;
}

static char *window_at(uint64_t slot)
{
    return hak_map.window + SUPER(slot);
}

static void before_the_start_nothing_is_ours(void)
{
    for (uint64_t bits = 1; bits != 0; bits <<= 1) {
        const void *p = (const void *)(uintptr_t)bits;
        UNIT_EQUAL(hak_map_entry(p), HAK_MAP_NOTHING);
        UNIT_CHECK(hak_map_super(p) == NULL);
    }
}

static void a_start_without_memory_can_be_repeated(void)
{
    hak_fake.refuse_asks = true;
    UNIT_CHECK(!hak_map_start());
    hak_fake.refuse_asks = false;
    before_the_start_nothing_is_ours();
    hak_fake_fail_in(2, 3); // the smaller table, and both shorter lengths
    UNIT_CHECK(!hak_map_start());
    UNIT_EQUAL(hak_fake.mapped_bytes, 0);
    before_the_start_nothing_is_ours();
}

static void tables_shrink_when_reservations_are_refused(void)
{
    const struct hak_map before = hak_map;
    hak_fake_fail_in(1, 1);
    UNIT_CHECK(hak_map_start());
    UNIT_EQUAL(hak_map.unit_mask, (1U << 18) - 1);
    UNIT_EQUAL(hak_map.super_mask, (1U << 12) - 1);
    hak_map = before;
    hak_fake_fail_in(2, 1); // the longest one took all that there is
    UNIT_CHECK(hak_map_start());
    UNIT_EQUAL(hak_map.unit_mask, (1U << 18) - 1);
    hak_map = before;
    hak_fake.address_limit = HAK_MIB(64); // a sixteenth is 4 MiB: 2^20 entries
    UNIT_CHECK(hak_map_start());
    UNIT_EQUAL(hak_map.unit_mask, (1U << 20) - 1);
    hak_map = before;
    hak_fake.address_limit = 1; // the least that works at all
    UNIT_CHECK(hak_map_start());
    UNIT_EQUAL(hak_map.unit_mask, (1U << 16) - 1);
    hak_fake.address_limit = SIZE_MAX;
    hak_map = before;
}

static void taken_and_given_slots_are_counted(void)
{
    UNIT_EQUAL(slots_used(), 0);
    char *one = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    char *three = hak_addresses_take(SUPER(2) + hak_os_page_bytes(), NULL);
    UNIT_CHECK(one != NULL && UNIT_IS_ALIGNED(one, HAK_SUPER_BYTES));
    UNIT_CHECK(three == one + HAK_SUPER_BYTES);
    UNIT_EQUAL(slots_used(), 4);
    UNIT_EQUAL(hak_map_slot(three), hak_map_slot(one) + 1);
    UNIT_CHECK(hak_addresses_give(three, SUPER(2) + hak_os_page_bytes()));
    UNIT_EQUAL(slots_used(), 1);
    hak_fake.refuse_unmap = true;
    UNIT_CHECK(!hak_addresses_give(one, HAK_SUPER_BYTES));
    hak_fake.refuse_unmap = false;
    UNIT_EQUAL(slots_used(), 1);
    UNIT_CHECK(hak_addresses_give(one, HAK_SUPER_BYTES));
    UNIT_EQUAL(slots_used(), 0);
}

static void resizing_keeps_slots(void)
{
    hak_map.next_slot = 10;
    char *one = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(one == window_at(10));
    UNIT_CHECK(hak_map_resize(one, HAK_SUPER_BYTES, SUPER(3)));
    UNIT_EQUAL(slots_used(), 3);
    char *next = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(next == window_at(13)); // slots 11 and 12 stay taken, though nothing is mapped there
    UNIT_CHECK(!hak_map_resize(one, SUPER(3), SUPER(4)));
    UNIT_EQUAL(slots_used(), 4);
    UNIT_CHECK(hak_map_resize(one, SUPER(3), HAK_SUPER_BYTES));
    UNIT_EQUAL(slots_used(), 2);
    UNIT_CHECK(hak_addresses_give(one, HAK_SUPER_BYTES));
    UNIT_CHECK(hak_addresses_give(next, HAK_SUPER_BYTES));
}

// Every entry of a mapping that spans two parts of the table can be written.
static void long_mappings_have_room_behind_them(void)
{
    const size_t bytes = 16 * HAK_SUPER_BYTES;
    char *first = hak_addresses_take(bytes, NULL);
    hak_addresses_leave_room(first, bytes);
    char *next = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(next == first + 4 * bytes);
    hak_addresses_leave_room(next, HAK_SUPER_BYTES);
    char *last = hak_addresses_take(bytes, NULL);
    UNIT_CHECK(last == next + HAK_SUPER_BYTES);
    UNIT_CHECK(hak_map_resize(first, bytes, 4 * bytes) && hak_map_resize(first, 4 * bytes, bytes));
    hak_addresses_leave_room(first, bytes); // something was mapped behind it since
    char *behind = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(behind == last + bytes);
    UNIT_CHECK(hak_addresses_give(first, bytes) && hak_addresses_give(next, HAK_SUPER_BYTES));
    UNIT_CHECK(hak_addresses_give(last, bytes) && hak_addresses_give(behind, HAK_SUPER_BYTES));
}

static void mappings_across_parts_are_committed(void)
{
    hak_map.next_slot = PART_SLOTS - 1;
    const size_t commits = hak_fake.commits;
    char *both = hak_addresses_take(SUPER(2), NULL);
    UNIT_CHECK(both == window_at(PART_SLOTS - 1));
    UNIT_CHECK(hak_fake.commits > commits);
    for (size_t unit = 0; unit < 2 * HAK_SUPER_UNITS; unit++) {
        hak_map_set_one(both + unit * HAK_UNIT_BYTES, 0x100 + (uint32_t)unit);
    }
    for (size_t unit = 0; unit < 2 * HAK_SUPER_UNITS; unit++) {
        UNIT_EQUAL(hak_map_entry(both + (unit + 1) * HAK_UNIT_BYTES - 1), 0x100 + unit);
    }
    hak_map_set(both, HAK_SUPER_UNITS, HAK_MAP_NOTHING);
    hak_map_set(both + HAK_SUPER_BYTES, HAK_SUPER_UNITS, HAK_MAP_NOTHING);
    UNIT_EQUAL(hak_map_entry(both), HAK_MAP_NOTHING);
    UNIT_CHECK(hak_addresses_give(both, SUPER(2)));
}

static void a_refused_commit_loses_nothing(void)
{
    hak_map.next_slot = 5 * PART_SLOTS;
    const size_t mapped = hak_fake.mapped_bytes;
    hak_fake_fail_in(2, 1); // the mapping itself is the first
    UNIT_CHECK(hak_addresses_take(HAK_SUPER_BYTES, NULL) == NULL);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    UNIT_EQUAL(slots_used(), 0);
    hak_map.next_slot = 5 * PART_SLOTS;
    char *start = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(start == window_at(5 * PART_SLOTS));
    hak_map_set_one(start, HAK_MAP_NOTHING);
    UNIT_CHECK(hak_addresses_give(start, HAK_SUPER_BYTES));
}

// Addresses that can neither be used nor released are used only once their entries can be written.
static void a_refused_commit_and_a_refused_unmap(void)
{
    hak_map.next_slot = 7 * PART_SLOTS;
    hak_fake_fail_in(2, 1);
    hak_fake.refuse_unmap = true;
    UNIT_CHECK(hak_addresses_take(HAK_SUPER_BYTES, NULL) == NULL);
    UNIT_EQUAL(slots_used(), 1);
    const size_t commits = hak_fake.commits;
    hak_fake_fail_in(1, 1);
    UNIT_CHECK(hak_addresses_take(HAK_SUPER_BYTES, NULL) == NULL);
    char *start = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(start == window_at(7 * PART_SLOTS));
    UNIT_EQUAL(hak_fake.commits, commits + 2);
    hak_map_set_one(start, HAK_MAP_NOTHING);
    hak_fake.refuse_unmap = false;
    UNIT_CHECK(hak_addresses_give(start, HAK_SUPER_BYTES));
    UNIT_EQUAL(slots_used(), 0);
}

// A mapping never crosses the end of the table; behind it the search starts at the beginning again.
static void the_end_of_the_window_is_not_crossed(void)
{
    hak_map.next_slot = hak_map.super_mask;
    char *last = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(last == window_at(hak_map.super_mask));
    UNIT_CHECK(!hak_map_resize(last, HAK_SUPER_BYTES, SUPER(2)));
    UNIT_EQUAL(hak_map.next_slot, 0);
    hak_map.next_slot = hak_map.super_mask - 1;
    char *first = hak_addresses_take(SUPER(3), NULL);
    UNIT_CHECK(first == window_at(1));
    UNIT_CHECK(hak_addresses_give(first, SUPER(3)));
    UNIT_CHECK(hak_addresses_give(last, HAK_SUPER_BYTES));
}

static void others_mappings_in_the_window_are_stepped_over(void)
{
    hak_map.next_slot = 100;
    void *other =
        mmap(window_at(100), SUPER(2), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    UNIT_CHECK(other == window_at(100));
    char *start = hak_addresses_take(HAK_SUPER_BYTES, NULL);
    UNIT_CHECK(start == window_at(102));
    UNIT_EQUAL(slots_used(), 1);
    UNIT_CHECK(hak_addresses_give(start, HAK_SUPER_BYTES));
    munmap(other, SUPER(2));
}

// Where the kernel chooses: aligned, found through one slot, with the ends cut off.
static void mappings_outside_the_window_work(void)
{
    const size_t mapped = hak_fake.mapped_bytes;
    hak_fake.refuse_hints = true;
    char *start = hak_addresses_take(SUPER(3) + hak_os_page_bytes(), NULL);
    UNIT_CHECK(start != NULL && UNIT_IS_ALIGNED(start, HAK_SUPER_BYTES));
    UNIT_CHECK(hak_map_slot(start) == UINT64_MAX);
    UNIT_EQUAL(slots_used(), 1);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped + SUPER(3) + hak_os_page_bytes());
    memset(start, 1, SUPER(3) + hak_os_page_bytes());
    struct hak_super *super = (struct hak_super *)(void *)start;
    hak_map_publish(start, SUPER(3) + hak_os_page_bytes(), super);
    UNIT_CHECK(hak_map_super(start + HAK_SUPER_BYTES - 1) == super);
    hak_map_publish(start, SUPER(3) + hak_os_page_bytes(), NULL);
    UNIT_CHECK(hak_map_resize(start, SUPER(3) + hak_os_page_bytes(), SUPER(9)));
    UNIT_EQUAL(slots_used(), 1);
    UNIT_CHECK(hak_addresses_give(start, SUPER(3) + hak_os_page_bytes()));
    UNIT_EQUAL(slots_used(), 0);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    hak_fake.refuse_hints = false;
}

static struct hak_super *const somebody = (struct hak_super *)&hak_fake;

// Large mappings take an eighth of the window; later ones are outside it, where each keeps the slot of its start. These slots leave
// no long row free in the window, and yet a longer mapping finds room.
static void large_mappings_have_room_outside_the_window(void)
{
    enum { EACH = 1024, COUNT = 350 };
    static char *starts[COUNT];
    const uint64_t before = slots_used();
    uint64_t inside = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        starts[i] = hak_addresses_take(SUPER(EACH), NULL);
        UNIT_CHECK(starts[i] != NULL);
        inside += hak_map_slot(starts[i]) != UINT64_MAX;
    }
    UNIT_CHECK(inside > 0 && inside <= (hak_map.super_mask + 1) / 8 / EACH);
    UNIT_EQUAL(slots_used(), before + inside * EACH + (COUNT - inside));
    UNIT_EQUAL(slots_used() + 1, hak_map.used_slots);
    for (unsigned i = 0; i < inside; i += 2) {
        UNIT_CHECK(hak_addresses_give(starts[i], SUPER(EACH)));
    }
    for (unsigned i = 0; i < inside; i += 2) {
        starts[i] = hak_addresses_take(SUPER(5 * EACH), NULL);
        UNIT_CHECK(starts[i] != NULL && hak_map_slot(starts[i]) == UINT64_MAX);
    }
    for (unsigned i = 0; i < inside; i += 2) {
        UNIT_CHECK(hak_addresses_give(starts[i], SUPER(5 * EACH)));
        starts[i] = NULL;
    }
    for (unsigned i = 0; i < COUNT; i++) {
        UNIT_CHECK(starts[i] == NULL || hak_addresses_give(starts[i], SUPER(EACH)));
    }
    UNIT_EQUAL(slots_used(), before);
}

static void what_is_published_is_known_in_all_its_slots(void)
{
    char *start = hak_addresses_take(SUPER(3) + hak_os_page_bytes(), NULL);
    hak_map_publish(start, SUPER(3) + hak_os_page_bytes(), somebody);
    UNIT_CHECK(hak_map_super(start) == somebody && hak_map_super(start + SUPER(3)) == somebody);
    UNIT_CHECK(hak_map_super(start + SUPER(4)) == NULL && hak_map_super(start - 1) == NULL);
    UNIT_CHECK(hak_map_resize(start, SUPER(3) + hak_os_page_bytes(), HAK_SUPER_BYTES));
    UNIT_CHECK(hak_map_super(start) == somebody);
    UNIT_CHECK(hak_map_super(start + HAK_SUPER_BYTES) == NULL);
    UNIT_CHECK(hak_map_resize(start, HAK_SUPER_BYTES, SUPER(3)));
    UNIT_CHECK(hak_map_super(start + SUPER(3) - 1) == somebody);
    hak_map_publish(start, SUPER(3), NULL);
    UNIT_CHECK(hak_map_super(start) == NULL && hak_map_super(start + SUPER(2)) == NULL);
    UNIT_CHECK(hak_addresses_give(start, SUPER(3)));
}

// Until something of ours is outside the window, no address outside it shares an entry.
static void entries_cover_the_window_while_all_is_in_it(bool all_is_in_it)
{
    UNIT_CHECK(hak_map_has_window_only() == all_is_in_it);
    UNIT_CHECK(hak_map_covers(hak_map.window) == all_is_in_it);
    UNIT_CHECK(hak_map_covers(window_at(hak_map.super_mask) + HAK_SUPER_BYTES - 1) == all_is_in_it);
    UNIT_CHECK(!hak_map_covers(hak_map.window - 1));
    UNIT_CHECK(!hak_map_covers(window_at(hak_map.super_mask) + HAK_SUPER_BYTES));
    UNIT_CHECK(!hak_map_covers(NULL) && !hak_map_covers((void *)UINTPTR_MAX));
}

// Mappings that come and go, each behind the last one, leave no resident pages of the table behind. Those of mappings in use stay.
static void pages_of_the_table_go_back(void)
{
    const uint64_t in_page = hak_os_page_bytes() / (HAK_SUPER_UNITS * sizeof(uint32_t));
    const uint64_t pages = 20;
    char *held = hak_addresses_take(SUPER(1), NULL);
    UNIT_CHECK(held != NULL);
    hak_map_set(held, 1, 77);
    const size_t before = hak_fake.purged_bytes;
    for (uint64_t i = 0; i < pages * in_page; i++) {
        char *start = hak_addresses_take(SUPER(1), NULL);
        UNIT_CHECK(start != NULL);
        hak_map_set(start, 1, 78);
        hak_map_set(start, 1, HAK_MAP_NOTHING);
        UNIT_CHECK(hak_addresses_give(start, SUPER(1)));
        UNIT_EQUAL(hak_map_entry(held), 77);
    }
    const size_t gone = hak_fake.purged_bytes - before;
    UNIT_CHECK(gone >= (pages - 2) * hak_os_page_bytes() && gone <= pages * hak_os_page_bytes());
    hak_map_set(held, 1, HAK_MAP_NOTHING);
    UNIT_CHECK(hak_addresses_give(held, SUPER(1)));
}

int main(void)
{
    before_the_start_nothing_is_ours();
    a_start_without_memory_can_be_repeated();
    tables_shrink_when_reservations_are_refused();
    UNIT_CHECK(hak_map_start());
    taken_and_given_slots_are_counted();
    what_is_published_is_known_in_all_its_slots();
    resizing_keeps_slots();
    long_mappings_have_room_behind_them();
    mappings_across_parts_are_committed();
    a_refused_commit_loses_nothing();
    a_refused_commit_and_a_refused_unmap();
    pages_of_the_table_go_back();
    if (!HAK_TSAN) { // its window is where the kernel puts other mappings
        the_end_of_the_window_is_not_crossed();
        entries_cover_the_window_while_all_is_in_it(true);
        mappings_outside_the_window_work();
        entries_cover_the_window_while_all_is_in_it(false);
        large_mappings_have_room_outside_the_window();
    }
    others_mappings_in_the_window_are_stepped_over();
    return 0;
}
