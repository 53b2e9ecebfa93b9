// pages: 16384 65536
// Mappings for single blocks: aligned, resized with their content, and found by their own addresses only.
#include "mapping.h"

#include "base/options.h"
#include "slab/purge.h"
#include "slab/superslabs.h"

// The map knows all its addresses, and no others.
static void check_known(struct hak_run *mapping)
{
    for (size_t at = 0; at < mapping->bytes; at += HAK_UNIT_BYTES) {
        UNIT_CHECK(hak_run_of(mapping->base + at) == mapping);
    }
    UNIT_CHECK(hak_run_of(mapping->base + mapping->bytes - 1) == mapping);
    UNIT_CHECK(hak_run_of(mapping->base + mapping->bytes) != mapping);
    UNIT_CHECK(hak_run_of(mapping->base - 1) != mapping);
    for (uint64_t slot = 0; slot <= hak_map.super_mask; slot++) {
        const struct hak_super *super = hak_map_in_slot(slot);
        UNIT_CHECK(super == NULL || hak_map_slot(super->base) <= slot);
        UNIT_CHECK(super == NULL ||
                   slot - hak_map_slot(super->base) <= (super->mapped_bytes - 1) / HAK_SUPER_BYTES);
    }
}

static void sums_follow(void)
{
    const size_t mapped = hak_fake.mapped_bytes;
    struct hak_run *one = map(SUPER(3) + hak_os_page_bytes(), 1);
    UNIT_EQUAL(hak_arena.mapping_bytes, SUPER(3) + hak_os_page_bytes());
    UNIT_EQUAL(hak_fake.mapped_bytes - mapped, SUPER(3) + hak_os_page_bytes());
    check_known(one);
    hak_mapping_end(one);
    UNIT_CHECK(hak_run_of(one->base + SUPER(2)) == NULL);
    UNIT_EQUAL(hak_arena.mapping_bytes, 0);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    UNIT_CHECK(hak_list_is_empty(&hak_arena.all));
}

static void alignments_beyond_superslabs_waste_nothing(void)
{
    for (size_t alignment = HAK_MIB(8); alignment <= HAK_MIB(64); alignment *= 2) {
        const size_t mapped = hak_fake.mapped_bytes;
        struct hak_run *mapping = map(HAK_MIB(5), alignment);
        UNIT_EQUAL(hak_fake.mapped_bytes - mapped, HAK_MIB(5));
        UNIT_CHECK(slot_used(mapping->base) && slot_used(mapping->base + HAK_SUPER_BYTES));
        UNIT_CHECK(!slot_used(mapping->base + SUPER(2)) && !slot_used(mapping->base - 1));
        memset(mapping->base, 1, HAK_MIB(5));
        check_known(mapping);
        hak_mapping_end(mapping);
        UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    }
}

static size_t left_without_lock;

static void note_what_is_left(void *start, size_t bytes)
{
    UNIT_CHECK(bytes <= HAK_MIB(16));
    if (hak_run_of(start) != NULL && hak_arena.lock.word == HAK_LOCK_FREE) {
        left_without_lock += bytes;
    }
}

// What a shorter block leaves goes back while others map and unmap: the kernel takes up to 0.1 ms for each mebibyte.
static void shrinks_without_the_lock(void)
{
    struct hak_run *mapping = map(HAK_MIB(64), 1);
    hak_fake.on_purge = note_what_is_left;
    mapping->base[HAK_MIB(8) - 1] = 7;
    UNIT_CHECK(hak_mapping_resize(mapping, HAK_MIB(8)));
    UNIT_CHECK(left_without_lock >= HAK_MIB(55));
    UNIT_EQUAL(mapping->base[HAK_MIB(8) - 1], 7);
    check_known(mapping);
    hak_mapping_end(mapping);
    hak_fake.on_purge = NULL;
}

static void resize_in_place(void)
{
    struct hak_run *mapping = map(SUPER(2), 1);
    char *base = mapping->base;
    memset(base, 7, SUPER(2));
    UNIT_CHECK(hak_mapping_resize(mapping, SUPER(4)));
    UNIT_CHECK(mapping->base == base && mapping->bytes == SUPER(4) && !mapping->zeroed);
    UNIT_CHECK(base[SUPER(2) - 1] == 7 && base[SUPER(4) - 1] == 0);
    check_known(mapping);
    UNIT_CHECK(hak_mapping_resize(mapping, HAK_MIB(5)));
    check_known(mapping);
    UNIT_EQUAL(hak_arena.mapping_bytes, HAK_MIB(5));
    UNIT_CHECK(slot_used(base + HAK_SUPER_BYTES) && !slot_used(base + SUPER(2)));
    UNIT_CHECK(hak_run_of(base + HAK_MIB(5)) == NULL);
    hak_mapping_end(mapping);
    UNIT_CHECK(!slot_used(base));
}

static void moves_when_there_is_no_room(void)
{
    struct hak_run *mapping = map(SUPER(2), 1);
    struct hak_run *wall = map(SUPER(1), 1);
    UNIT_CHECK(wall->base == mapping->base + SUPER(2));
    char *old_base = mapping->base;
    memset(old_base, 9, SUPER(2));
    const size_t mapped = hak_fake.mapped_bytes;
    UNIT_CHECK(hak_mapping_resize(mapping, SUPER(5)));
    UNIT_CHECK(mapping->base != old_base && mapping->base[SUPER(2) - 1] == 9 &&
               mapping->base[SUPER(2)] == 0);
    UNIT_CHECK(hak_run_of(mapping->base) == mapping && hak_run_of(old_base) == NULL);
    UNIT_CHECK(!slot_used(old_base) && slot_used(mapping->base + SUPER(4)));
    UNIT_EQUAL(hak_fake.mapped_bytes - mapped, SUPER(3));
    UNIT_EQUAL(hak_arena.mapping_bytes, SUPER(6));
    check_known(mapping);
    UNIT_CHECK(hak_run_of(old_base + HAK_SUPER_BYTES) == NULL);
    check_known(wall);
    hak_mapping_end(wall);
    hak_mapping_end(mapping);
}

static void refusals_change_nothing(void)
{
    struct hak_run *mapping = map(SUPER(2), 1);
    char *base = mapping->base;
    const size_t mapped = hak_fake.mapped_bytes;
    base[0] = 5;
    for (size_t n = 1; n <= 3; n++) { // in place, at a new place, moving there
        hak_fake_fail_in(n, SIZE_MAX / 2);
        hak_fake.refuse_remap = n > 1;
        UNIT_CHECK(!hak_mapping_resize(mapping, SUPER(3)));
        hak_fake.refuse_remap = false;
        hak_fake.fail_times = 0;
        UNIT_CHECK(mapping->base == base && mapping->bytes == SUPER(2) && base[0] == 5);
        UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
        UNIT_EQUAL(hak_arena.mapping_bytes, SUPER(2));
        UNIT_CHECK(hak_run_of(base) == mapping && !slot_used(base + SUPER(2)));
        check_known(mapping);
    }
    hak_fake.refuse_asks = true;
    UNIT_CHECK(hak_mapping_make(SUPER(1), 1, false) == NULL);
    UNIT_CHECK(hak_mapping_make(SUPER(1), HAK_MIB(16), false) == NULL);
    hak_fake.refuse_asks = false;
    hak_mapping_end(mapping);
}

// What is behind its new end has gone back by then: a block that is not shortened must not count as left alone.
static void a_refused_shrink_is_no_failure(void)
{
    struct hak_run *mapping = hak_mapping_make(HAK_MIB(600), 1, false);
    mapping->base[HAK_MIB(300) - 1] = 5;
    mapping->base[HAK_MIB(600) - 1] = 5;
    hak_fake.refuse_remap = true;
    UNIT_CHECK(hak_mapping_resize(mapping, HAK_MIB(300)));
    hak_fake.refuse_remap = false;
    UNIT_EQUAL(mapping->bytes, HAK_MIB(600));
    UNIT_EQUAL(hak_arena.mapping_bytes, HAK_MIB(600));
    UNIT_CHECK(mapping->base[HAK_MIB(300) - 1] == 5 && !mapping->zeroed);
    check_known(mapping);
    hak_mapping_end(mapping);
}

// The kernel has no room for another mapping: the addresses stay ours, the pages go back.
static void a_refused_unmap_keeps_the_addresses(void)
{
    struct hak_run *mapping = map(SUPER(2), 1);
    char *base = mapping->base;
    memset(base, 3, SUPER(2));
    hak_fake.refuse_unmap = true;
    hak_mapping_end(mapping);
    UNIT_CHECK(slot_used(base) && slot_used(base + HAK_SUPER_BYTES));
    UNIT_CHECK(hak_run_of(base) == NULL);
    UNIT_EQUAL(hak_arena.mapping_bytes, 0);
    UNIT_EQUAL(base[0], 0);
    // They serve a request for as many bytes, also of zeros.
    struct hak_run *longer = map(SUPER(3), 1);
    UNIT_CHECK(longer->base != base);
    const size_t maps = hak_fake.maps;
    struct hak_run *other = map(SUPER(2), 1);
    UNIT_CHECK(other->base == base && base[SUPER(2) - 1] == 0);
    UNIT_EQUAL(hak_fake.maps, maps);
    check_known(other);
    hak_fake.refuse_unmap = false;
    hak_mapping_end(other);
    hak_mapping_end(longer);
}

static size_t purged_without_lock;
static size_t unmapped_without_lock;

static void look_at_lock(void *start, size_t bytes)
{
    (void)start;
    UNIT_CHECK(bytes <= HAK_MIB(16));
    if (hak_lock_try(&hak_arena.lock)) {
        hak_lock_drop(&hak_arena.lock);
        purged_without_lock += bytes;
    }
}

// It counts until it is released, and a request that would fail can wait for it.
static void look_at_leaving(void *start, size_t bytes)
{
    UNIT_CHECK(hak_lock_try(&hak_arena.lock));
    UNIT_CHECK(hak_run_of(start) == NULL && slot_used(start));
    UNIT_CHECK(hak_arena.mapping_bytes == bytes && hak_arena.leaving_bytes == bytes);
    UNIT_EQUAL(hak_arena.under_way[0].number, hak_arena.load_number);
    hak_lock_drop(&hak_arena.lock);
    unmapped_without_lock += bytes;
}

// In the child of fork no thread completes it.
static void fork_meanwhile(void *start, size_t bytes)
{
    (void)start;
    const size_t leaving = hak_arena.leaving_bytes;
    UNIT_EQUAL(leaving, bytes);
    hak_purge_forked_locked();
    UNIT_EQUAL(hak_arena.mapping_bytes, 0);
    hak_arena.leaving_bytes = leaving; // as in the parent
    hak_arena.mapping_bytes = leaving;
}

static void a_mapping_goes_without_the_lock(void)
{
    struct hak_run *mapping = map(SUPER(2), 1);
    char *base = mapping->base;
    hak_fake.on_unmap = look_at_leaving;
    hak_mapping_end(mapping);
    UNIT_EQUAL(unmapped_without_lock, SUPER(2));
    UNIT_EQUAL(hak_arena.mapping_bytes, 0);
    UNIT_EQUAL(hak_arena.leaving_bytes, 0);
    UNIT_CHECK(!slot_used(base));
    UNIT_EQUAL(hak_arena.under_way[0].number, 0);
    mapping = map(SUPER(2), 1);
    hak_fake.on_unmap = fork_meanwhile;
    hak_mapping_end(mapping);
    hak_fake.on_unmap = NULL;
    UNIT_EQUAL(hak_arena.mapping_bytes, 0);
}

// While pages are being purged, other requests are served.
static void pages_go_without_the_lock(void)
{
    struct hak_run *mapping = hak_mapping_make(HAK_MIB(600), 1, false);
    hak_fake.on_purge = look_at_lock;
    hak_mapping_end(mapping);
    hak_fake.on_purge = NULL;
    UNIT_EQUAL(purged_without_lock, HAK_MIB(600 / 16 * 16));
}

// Pages that were locked in memory still have their content: they serve no request.
static void what_is_not_clean_serves_nobody(void)
{
    struct hak_run *mapping = map(SUPER(2), 1);
    char *base = mapping->base;
    memset(base, 3, SUPER(2));
    hak_fake.refuse_unmap = true;
    hak_fake.refuse_purge = true;
    hak_mapping_end(mapping);
    hak_fake.refuse_purge = false;
    struct hak_run *other = map(SUPER(2), 1);
    UNIT_CHECK(other->base != base);
    hak_fake.refuse_unmap = false;
    hak_mapping_end(other);
    hak_superslabs_trim();
    UNIT_EQUAL(hak_unreleased.count, 0);
}

// Releases that were refused are made once the kernel accepts: some with the next release, all with a trim.
static void what_was_refused_goes_later(void)
{
    enum { MAPPINGS = 100 };
    struct hak_run *mappings[MAPPINGS];
    const size_t mapped = hak_fake.mapped_bytes;
    for (unsigned trims = 0; trims < 2; trims++) {
        for (unsigned i = 0; i < MAPPINGS; i++) {
            mappings[i] = map(SUPER(2) + i * HAK_UNIT_BYTES, 1);
        }
        hak_fake.refuse_unmap = true;
        for (unsigned i = 1; i < MAPPINGS; i += 2) {
            hak_mapping_end(mappings[i]);
        }
        hak_fake.refuse_unmap = false;
        UNIT_EQUAL(hak_unreleased.count, MAPPINGS / 2);
        size_t unmaps = hak_fake.unmaps;
        hak_mapping_end(mappings[0]);
        UNIT_CHECK(hak_fake.unmaps - unmaps <= 4); // not all at once, as a thread waits
        UNIT_CHECK(hak_unreleased.count < MAPPINGS / 2);
        if (trims != 0) {
            UNIT_CHECK(hak_superslabs_trim() > 0);
            UNIT_EQUAL(hak_unreleased.count, 0);
        }
        for (unsigned i = 2; i < MAPPINGS; i += 2) {
            hak_mapping_end(mappings[i]);
        }
        UNIT_EQUAL(hak_unreleased.count, 0);
        UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    }
}

static void refused_ends_of_aligned_ones_go_later(void)
{
    const size_t mapped = hak_fake.mapped_bytes;
    hak_map.next_slot = 1001; // not a multiple of its alignment
    hak_fake.refuse_unmap = true;
    struct hak_run *mapping = map(HAK_MIB(5), HAK_MIB(64));
    hak_fake.refuse_unmap = false;
    UNIT_CHECK(hak_unreleased.count > 0);
    memset(mapping->base, 1, HAK_MIB(5));
    check_known(mapping);
    hak_superslabs_trim();
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped + HAK_MIB(5));
    UNIT_EQUAL(mapping->base[HAK_MIB(5) - 1], 1);
    hak_mapping_end(mapping);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_options.huge_start_bytes = SIZE_MAX;
    hak_mapping_end(map(SUPER(1), 1)); // so that the memory for descriptors is mapped
    sums_follow();
    alignments_beyond_superslabs_waste_nothing();
    shrinks_without_the_lock();
    resize_in_place();
    moves_when_there_is_no_room();
    refusals_change_nothing();
    a_refused_shrink_is_no_failure();
    a_refused_unmap_keeps_the_addresses();
    pages_go_without_the_lock();
    a_mapping_goes_without_the_lock();
    what_is_not_clean_serves_nobody();
    what_was_refused_goes_later();
    refused_ends_of_aligned_ones_go_later();
    return 0;
}
