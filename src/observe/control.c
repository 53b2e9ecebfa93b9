// control.c -- the root of the metadata: only addresses, filled in by the linker.
#include "hakmem/control.h"

#include <stddef.h>

#include "meta/map.h"
#include "slab/arena.h"

const struct hak_control hak_control = {
    .magic = HAK_CONTROL_MAGIC,
    .version = HAK_CONTROL_VERSION,
    .bytes = sizeof(struct hak_control),
    .release = HAKMEM_VERSION,
    .units = &hak_map.units,
    .unit_mask = &hak_map.unit_mask,
    .supers = &hak_map.supers,
    .super_mask = &hak_map.super_mask,
    .unit_log2 = HAK_UNIT_LOG2,
    .super_log2 = HAK_SUPER_LOG2,
    .super_base_offset = offsetof(struct hak_super, base),
    .super_bytes_offset = offsetof(struct hak_super, mapped_bytes),
};
