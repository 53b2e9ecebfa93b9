// pages: 16384 65536
// Guarded blocks, in mappings of their own.
#include "secure/inset.h"

#include <string.h>

#include "../slab/mapping.h"
#include "base/options.h"
#include "cache/hooks.h"
#include "meta/unreleased.h"

static struct hak_run *guarded(size_t bytes)
{
    struct hak_run *mapping = hak_hook_inset_map(bytes, 1);
    UNIT_CHECK(mapping != NULL && mapping->bytes == bytes && hak_mapping_is_inset(mapping));
    mapping->state = HAK_RUN_LARGE;
    return mapping;
}

static void guarded_ones_are_half_of_the_mappings(void)
{
    enum { MOST = 4 }; // 24 mappings: half of them, three for each
    static const struct hak_fake_file files[] = {{"/proc/sys/vm/max_map_count", "24\n"},
                                                 {NULL, NULL}};
    struct hak_run *mappings[MOST];
    hak_fake.files = files;
    hak_options.guard_large = 1;
    hak_inset_start();
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < MOST; i++) {
            mappings[i] = guarded(HAK_KIB(40));
        }
        UNIT_CHECK(hak_hook_inset_map(HAK_KIB(40), 1) == NULL);
        for (unsigned i = 0; i < MOST; i++) {
            hak_mapping_end(mappings[i]);
        }
    }
    hak_fake.files = NULL;
    hak_options.guard_large = 0;
}

// Addresses that the kernel does not take back are mappings, too. Those of guarded blocks serve no other block.
static void what_is_not_unmapped_counts(void)
{
    enum { MOST = 4 }; // of the 24 mappings above
    hak_fake.refuse_unmap = true;
    for (unsigned i = 0; i < MOST; i++) {
        hak_mapping_end(guarded(HAK_KIB(40)));
    }
    const size_t maps = hak_fake.maps;
    UNIT_CHECK(hak_hook_inset_map(HAK_KIB(40), 1) == NULL);
    UNIT_EQUAL(hak_fake.maps, maps);
    hak_fake.refuse_unmap = false;
    hak_lock_take(&hak_arena.lock);
    hak_unreleased_retry(MOST);
    hak_lock_drop(&hak_arena.lock);
    hak_mapping_end(guarded(HAK_KIB(40)));
}

static void guarded_ones_grow_and_shrink(void)
{
    const size_t mapped = hak_fake.mapped_bytes;
    const size_t page = hak_os_page_bytes();
    struct hak_run *mapping = guarded(HAK_KIB(100));
    char *base = mapping->base;
    const size_t asks = hak_fake.asks;
    memset(base, 1, mapping->bytes);
    for (size_t bytes = mapping->bytes; bytes <= SUPER(3); bytes += page) {
        UNIT_CHECK(hak_hook_inset_resize(mapping, bytes) && mapping->base == base);
        UNIT_CHECK(mapping->bytes == bytes && base[bytes - 1] == (bytes == HAK_KIB(100)));
        base[bytes - 1] = 0;
        UNIT_CHECK(hak_run_of(base + bytes - 1) == mapping);
    }
    UNIT_CHECK(hak_fake.asks - asks <= 60); // an eighth at a time, from 100 KiB to 12 MiB
    UNIT_EQUAL(hak_fake.mapped_bytes - mapped, hak_arena.mapping_bytes);
    base[HAK_KIB(100)] = 2;
    UNIT_CHECK(hak_hook_inset_resize(mapping, HAK_KIB(100)));
    UNIT_CHECK(hak_hook_inset_resize(mapping, SUPER(2)) && base[HAK_KIB(100)] == 0);
    hak_mapping_end(mapping);
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    UNIT_EQUAL(hak_arena.mapping_bytes, 0);
}

static void guarded_ones_stay_when_refused(void)
{
    struct hak_run *mapping = guarded(SUPER(1) + HAK_KIB(100));
    const size_t mapped = hak_fake.mapped_bytes;
    char *base = mapping->base;
    base[mapping->bytes - 1] = 1;
    hak_fake.refuse_remap = true;
    UNIT_CHECK(!hak_hook_inset_resize(mapping, SUPER(3)));
    hak_fake.refuse_remap = false;
    hak_fake.refuse_guard = true;
    UNIT_CHECK(!hak_hook_inset_resize(mapping, SUPER(3)));
    UNIT_CHECK(!hak_hook_inset_resize(mapping, SUPER(1)));
    hak_fake.refuse_guard = false;
    hak_fake.refuse_purge = true;
    UNIT_CHECK(!hak_hook_inset_resize(mapping, SUPER(1)));
    hak_fake.refuse_purge = false;
    UNIT_EQUAL(hak_fake.mapped_bytes, mapped);
    UNIT_CHECK(!slot_used(base + SUPER(2)) && slot_used(base + SUPER(1)));
    UNIT_CHECK(mapping->bytes == SUPER(1) + HAK_KIB(100) && base[mapping->bytes - 1] == 1);
    struct hak_run *wall = map(SUPER(1), 1);
    UNIT_CHECK(!hak_hook_inset_resize(mapping, SUPER(3)));
    hak_mapping_end(wall);
    hak_mapping_end(mapping);
}

// An inaccessible end that can neither be purged nor made accessible again no longer belongs to the block, and its old content is
// not behind a block that has grown over it.
static void guarded_ones_shrink_when_all_is_refused(void)
{
    struct hak_run *mapping = guarded(HAK_KIB(200));
    memset(mapping->base, 1, mapping->bytes);
    hak_fake.refuse_purge = true;
    hak_fake.refuse_unguard = true;
    UNIT_CHECK(hak_hook_inset_resize(mapping, HAK_KIB(100)) && mapping->bytes == HAK_KIB(100));
    hak_hook_inset_freed(mapping); // all of it can be read
    hak_fake.refuse_purge = false;
    hak_fake.refuse_unguard = false;
    UNIT_CHECK(hak_hook_inset_resize(mapping, HAK_KIB(150) + 1));
    UNIT_EQUAL(mapping->base[HAK_KIB(100) - 1], 1);
    hak_hook_inset_freed(mapping); // it ends the process if not
    hak_mapping_end(mapping);
}

// Guards cannot be touched, also if their addresses could not be released: those serve no block.
static void guards_serve_nobody(void)
{
    const size_t page = hak_os_page_bytes();
    struct hak_run *mapping = guarded(HAK_KIB(64));
    hak_fake.refuse_unmap = true;
    hak_mapping_end(mapping);
    struct hak_run *small = map(HAK_UNIT_BYTES + HAK_KIB(64) + page, 1);
    memset(small->base, 1, small->bytes);
    hak_fake.refuse_unmap = false;
    hak_mapping_end(small);
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_options.huge_start_bytes = SIZE_MAX;
    hak_mapping_end(map(SUPER(1), 1)); // so that the memory for descriptors is mapped
    if (hak_os_page_bytes() < HAK_UNIT_BYTES) {
        guarded_ones_are_half_of_the_mappings();
        what_is_not_unmapped_counts();
        guarded_ones_grow_and_shrink();
        guarded_ones_stay_when_refused();
        guarded_ones_shrink_when_all_is_refused();
        guards_serve_nobody();
    }
    return 0;
}
