// mapping.h -- what the tests of mappings for single blocks share.
#ifndef HAK_TESTS_UNIT_MAPPING_H
#define HAK_TESTS_UNIT_MAPPING_H

#include "../unit.h"
#include "meta/map.h"
#include "slab/arena.h"
#include "slab/mapping.h"
#include "slab/slab.h"

#define SUPER(n) ((size_t)(n) * HAK_SUPER_BYTES)

static inline struct hak_run *map(size_t bytes, size_t alignment)
{
    struct hak_run *mapping = hak_mapping_make(bytes, alignment, false);
    UNIT_CHECK(mapping != NULL && mapping->bytes == bytes && mapping->zeroed);
    UNIT_CHECK(UNIT_IS_ALIGNED(mapping->base, alignment));
    mapping->state = HAK_RUN_LARGE;
    UNIT_CHECK(hak_run_of(mapping->base) == mapping);
    return mapping;
}

static inline bool slot_used(const char *start)
{
    const uint64_t slot = ((uintptr_t)start >> HAK_SUPER_LOG2) & hak_map.super_mask;
    return (hak_map.slots[slot / 64] >> (slot % 64) & 1) != 0;
}

#endif
