// super.c -- see super.h.
#include "slab/super.h"

void hak_super_note_touched_locked(struct hak_super *super, uint64_t units)
{
    hak_super_place(super)->sparse_units &= ~units;
}

void hak_super_note_untouched_locked(struct hak_super *super, uint64_t units)
{
    struct hak_super_place *place = hak_super_place(super);
    place->sparse_units |= units;
    for (; units != 0; units &= units - 1) {
        place->untouched[hak_lowest_bit(units)] = HAK_UNIT_CHUNKS;
    }
}

uint64_t hak_super_whole_units(const struct hak_super *super)
{
    if (!super->is_huge) {
        return super->dirty_units;
    }
    return super->dirty_units & hak_super_whole_pages(super->free_units);
}
