// usable.c -- how many bytes of a block the program may use, and whether an address is ours.
#include "cache/dying.h"
#include "cache/hooks.h"
#include "cache/nested.h"
#include "cache/seen.h"
#include "front/override.h"
#include "hakmem/hakmem.h"
#include "meta/map.h"

size_t hak_usable_size(const void *block)
{
    const uint32_t entry = hak_map_entry(block);
    if (HAK_LIKELY(hak_map_is_small(entry) && hak_map_covers(block))) {
        return hak_seen_usable(block, hak_classes[HAK_MAP_CLASS(entry)].bytes);
    }
    if (hak_hook_owns(block)) {
        return hak_hook_owned_bytes(block);
    }
    if (hak_nested_owns(block)) {
        return hak_nested_usable(block);
    }
    const struct hak_run *run = hak_run_of(block);
    if (run == NULL) {
        return hak_dying_bytes(block);
    }
    if (run->state == HAK_RUN_SLAB) {
        return hak_seen_usable(block, hak_classes[run->size_class].bytes);
    }
    return hak_map_is_large(entry) ? run->bytes : 0;
}

bool hak_owns(const void *address)
{
    return hak_hook_owns(address) || hak_run_of(address) != NULL;
}

HAK_ALSO(size_t, malloc_usable_size, (const void *), hak_usable_size);
