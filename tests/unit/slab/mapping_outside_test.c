// Where the kernel chooses the address, outside our window, a mapping keeps one slot: that of its start.
#include "mapping.h"

#include "base/check.h"
#include "base/options.h"
#include "meta/pool.h"
#include "slab/outside.h"
#include "slab/superslabs.h"

static uint64_t slots_used(void)
{
    uint64_t used = 0;
    for (uint64_t word = 0; word <= hak_map.super_mask / 64; word++) {
        used += hak_count_bits(hak_map.slots[word]);
    }
    return used;
}

static void it_keeps_one_slot_and_all_its_bytes(void)
{
    const uint64_t used = slots_used();
    struct hak_run *mapping = map(SUPER(3), HAK_SUPER_BYTES);
    UNIT_CHECK(hak_map_slot(mapping->base) == UINT64_MAX);
    UNIT_CHECK(slot_used(mapping->base));
    UNIT_EQUAL(slots_used(), used + 1);
    UNIT_CHECK(hak_mapping_resize(mapping, SUPER(2)));
    UNIT_EQUAL(slots_used(), used + 1);
    hak_mapping_end(mapping);
    UNIT_EQUAL(slots_used(), used);
}

// The map has the start of each; the rest of a long one is found by a search in order of address.
static void all_its_addresses_are_known(void)
{
    enum { MAPPINGS = 200, MOST_LOOKS = 20 };
    static struct hak_run *mappings[MAPPINGS];
    for (unsigned i = 0; i < MAPPINGS; i++) {
        mappings[i] = map(SUPER(3), 1);
    }
    UNIT_CHECK(hak_mapping_resize(mappings[1], SUPER(2)));
    hak_fake.refuse_remap = true; // it moves
    UNIT_CHECK(hak_mapping_resize(mappings[2], SUPER(5)));
    hak_fake.refuse_remap = false;
    for (unsigned i = 0; i < MAPPINGS; i++) {
        for (size_t at = 0; at < mappings[i]->bytes; at += HAK_UNIT_BYTES) {
            const size_t looks = hak_looks;
            UNIT_CHECK(hak_run_of(mappings[i]->base + at) == mappings[i]);
            UNIT_CHECK(hak_looks - looks <= MOST_LOOKS);
        }
        UNIT_CHECK(hak_run_of(mappings[i]->base + mappings[i]->bytes) != mappings[i]);
    }
    char *base = mappings[0]->base;
    for (unsigned i = 0; i < MAPPINGS; i++) {
        hak_mapping_end(mappings[i]);
    }
    UNIT_CHECK(hak_run_of(base) == NULL && hak_run_of(base + SUPER(2)) == NULL);
    UNIT_CHECK(hak_outside_find(base + SUPER(2)) == NULL);
}

// The list of mappings outside the window has to grow, and cannot.
static void without_memory_for_the_list_nothing_changes(void)
{
    enum { MAPPINGS = 4000 };
    static struct hak_run *mappings[MAPPINGS];
    const size_t mapped = hak_fake.mapped_bytes;
    const uint64_t used = slots_used();
    unsigned count = 0;
    while (count < MAPPINGS) {
        hak_fake_fail_in(10, SIZE_MAX / 2); // eight hints and the mapping itself are granted
        struct hak_run *mapping = hak_mapping_make(SUPER(2), 1, false);
        hak_fake.fail_times = 0;
        if (mapping == NULL) {
            break;
        }
        mapping->state = HAK_RUN_LARGE;
        mappings[count++] = mapping;
    }
    UNIT_CHECK(count > 0 && count < MAPPINGS);
    UNIT_EQUAL(slots_used(), used + count);
    UNIT_CHECK(hak_run_of(mappings[count - 1]->base + SUPER(2) - 1) == mappings[count - 1]);
    while (count > 0) {
        hak_mapping_end(mappings[--count]);
    }
    UNIT_EQUAL(slots_used(), used);
    UNIT_CHECK(hak_fake.mapped_bytes - mapped < HAK_MIB(16)); // descriptors
}

// The visitor of a walk over all blocks asks about addresses while it holds every lock.
static void it_is_found_by_a_thread_that_holds_the_arenas_lock(void)
{
    struct hak_run *mapping = map(SUPER(3), 1);
    hak_lock_take(&hak_arena.lock);
    UNIT_CHECK(hak_run_of(mapping->base + SUPER(2)) == mapping);
    UNIT_CHECK(hak_run_of(&mapping) == NULL);
    hak_lock_drop(&hak_arena.lock);
    hak_mapping_end(mapping);
}

// With its ends cut off, it begins at another slot than the kernel's mapping.
static void alignments_beyond_superslabs_hold(void)
{
    const uint64_t used = slots_used();
    const size_t mapped = hak_fake.mapped_bytes;
    struct hak_run *mapping = map(HAK_MIB(5), HAK_MIB(64));
    UNIT_CHECK(hak_map_slot(mapping->base) == UINT64_MAX);
    UNIT_CHECK(slot_used(mapping->base));
    UNIT_EQUAL(slots_used(), used + 1);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped + HAK_MIB(5));
    UNIT_CHECK(hak_run_of(mapping->base + HAK_MIB(5) - 1) == mapping);
    hak_mapping_end(mapping);
    UNIT_EQUAL(slots_used(), used);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    UNIT_EQUAL(hak_arena.mapping_bytes, 0);
}

// An address with this slot: its lower bits count.
static const char *start_at(uint64_t slot)
{
    return (const char *)(uintptr_t)(slot << HAK_SUPER_LOG2);
}

// All places at such an alignment have slots that are used; nothing is left behind.
static void a_start_whose_slot_is_used_is_refused(void)
{
    enum { APART = 8 };
    const uint64_t slots = hak_map_slot_count();
    bool *is_taken = calloc(slots, sizeof *is_taken);
    UNIT_CHECK(is_taken != NULL);
    for (uint64_t slot = 0; slot < slots; slot += APART) {
        is_taken[slot] = !slot_used(start_at(slot));
        if (is_taken[slot]) {
            hak_map_use(start_at(slot), SUPER(1));
        }
    }
    const uint64_t used = slots_used();
    const size_t mapped = hak_fake.mapped_bytes;
    UNIT_CHECK(hak_mapping_make(HAK_MIB(5), SUPER(APART), false) == NULL);
    UNIT_EQUAL(slots_used(), used);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    UNIT_EQUAL(hak_arena.mapping_bytes, 0);
    for (uint64_t slot = 0; slot < slots; slot += APART) {
        if (is_taken[slot]) {
            hak_map_forget(start_at(slot), SUPER(1));
        }
    }
    free(is_taken);
}

// Without the memory for descriptors, of which a mapping may need more at any time.
static size_t heap_mapped(void)
{
    return hak_fake.mapped_bytes - hak_load_relaxed(&hak_pool.mapped_bytes);
}

// It was mapped with room to align; the ends may be refused to be cut off, and are released later.
static void refused_ends_go_later(void)
{
    const uint64_t used = slots_used();
    const size_t mapped = heap_mapped();
    hak_fake.refuse_unmap = true;
    struct hak_run *mapping = map(SUPER(3), 1);
    UNIT_EQUAL(heap_mapped(), mapped + SUPER(4));
    struct hak_run *aligned = map(SUPER(2), HAK_MIB(32));
    hak_fake.refuse_unmap = false;
    hak_superslabs_trim();
    UNIT_EQUAL(heap_mapped(), mapped + SUPER(3) + SUPER(2));
    memset(mapping->base, 1, SUPER(3));
    memset(aligned->base, 1, SUPER(2));
    hak_mapping_end(aligned);
    hak_mapping_end(mapping);
    UNIT_EQUAL(heap_mapped(), mapped);
    UNIT_EQUAL(slots_used(), used);
}

int main(void)
{
    if (HAK_TSAN) {
        return 77; // its window is where the kernel puts other mappings: nothing is outside
    }
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_options.huge_start_bytes = SIZE_MAX;
    hak_fake.refuse_hints = true;
    hak_mapping_end(map(SUPER(1), 1)); // so that the memory for descriptors is mapped
    it_keeps_one_slot_and_all_its_bytes();
    all_its_addresses_are_known();
    without_memory_for_the_list_nothing_changes();
    it_is_found_by_a_thread_that_holds_the_arenas_lock();
    alignments_beyond_superslabs_hold();
    a_start_whose_slot_is_used_is_refused();
    refused_ends_go_later();
    return 0;
}
