// gaps.c -- see gaps.h.
#include "slab/gaps.h"

#include "base/bits.h"
#include "meta/map.h"
#include "os/os.h"
#include "slab/arena.h"

struct gaps_of_super {
    uint8_t longest; // row of free units
    uint8_t head;    // row at its beginning
    uint8_t tail;    // row at its end
};

enum { LENGTHS_LOG2 = 7 }; // of rows inside a superslab: 1 to 64 units

static struct gaps_of_super *table; // by slot
static uint64_t low;                // superslabs lie in slots low … high - 1
static uint64_t high;
// No superslab before this slot has 2^i free units in a row; UINT64_MAX: none has.
static uint64_t first_with[LENGTHS_LOG2];

bool hak_gaps_start(void)
{
    const size_t bytes = (hak_map.super_mask + 1) * sizeof *table;
    table = hak_os_map(hak_align_up(bytes, hak_os_page_bytes()));
    low = hak_map.super_mask + 1;
    high = 0;
    for (unsigned i = 0; i < LENGTHS_LOG2; i++) {
        first_with[i] = UINT64_MAX;
    }
    return table != NULL;
}

static unsigned longest_row(uint64_t bits)
{
    uint64_t rows[LENGTHS_LOG2]; // rows[i]: where 2^i bits in a row begin
    unsigned log2 = 0;
    if (bits == 0) {
        return 0;
    }
    rows[0] = bits;
    while (log2 + 1 < LENGTHS_LOG2 && (rows[log2] & rows[log2] >> (1U << log2)) != 0) {
        rows[log2 + 1] = rows[log2] & rows[log2] >> (1U << log2);
        log2++;
    }
    unsigned length = 1U << log2;
    uint64_t starts = rows[log2];
    while (log2-- > 0 && length < HAK_SUPER_UNITS) {
        const uint64_t longer = starts & rows[log2] >> length;
        if (longer != 0) {
            starts = longer;
            length += 1U << log2;
        }
    }
    return length;
}

void hak_gaps_note(uint64_t slot, uint64_t free_units)
{
    struct gaps_of_super *gaps = &table[slot];
    const uint64_t used = ~free_units;
    gaps->longest = (uint8_t)longest_row(free_units);
    gaps->head = (uint8_t)(used != 0 ? hak_lowest_bit(used) : HAK_SUPER_UNITS);
    gaps->tail =
        (uint8_t)(used != 0 ? HAK_SUPER_UNITS - 1 - hak_highest_bit(used) : HAK_SUPER_UNITS);
    low = slot < low ? slot : low;
    high = slot >= high ? slot + 1 : high;
    for (unsigned i = 0; i < LENGTHS_LOG2 && gaps->longest >> i != 0; i++) {
        first_with[i] = slot < first_with[i] ? slot : first_with[i];
    }
}

uint64_t hak_gaps_find_inside(uint64_t slot, unsigned units)
{
    for (; slot < high; slot++) {
        if (table[slot].longest >= units) {
            return slot;
        }
    }
    return UINT64_MAX;
}

uint64_t hak_gaps_begin(unsigned units)
{
    const unsigned log2 = hak_highest_bit(units);
    first_with[log2] = hak_gaps_find_inside(first_with[log2], 1U << log2);
    return first_with[log2];
}

// Do the superslabs in `slot` and the one before it lie next to each other?
static bool is_joined(uint64_t slot)
{
    const struct hak_super *super = slot < high ? hak_map_in_slot(slot) : NULL;
    const struct hak_super *before = slot > low ? hak_map_in_slot(slot - 1) : NULL;
    return super != NULL && before != NULL && super->base == before->base + HAK_SUPER_BYTES;
}

bool hak_gaps_find_across(unsigned units, unsigned align_units, struct hak_gap *gap)
{
    for (uint64_t slot = low; slot < high; slot++) {
        unsigned unit = HAK_SUPER_UNITS - table[slot].tail;
        unit = (unit + align_units - 1) & ~(align_units - 1);
        if (unit >= HAK_SUPER_UNITS) {
            continue;
        }
        unsigned found = HAK_SUPER_UNITS - unit;
        uint64_t next = slot + 1;
        while (found < units && is_joined(next) && table[next].head > 0) {
            found += table[next].head;
            if (table[next].head < HAK_SUPER_UNITS) {
                break;
            }
            next++;
        }
        if (found >= units) {
            *gap = (struct hak_gap){slot, unit};
            return true;
        }
        slot = next - 1; // none of the wholly free ones that were passed begins a longer row
    }
    return false;
}

unsigned hak_gaps_before(uint64_t slot)
{
    unsigned units = 0;
    while (slot > low && slot <= high && table[slot - 1].tail > 0) {
        slot--;
        units += table[slot].tail;
        if (table[slot].tail < HAK_SUPER_UNITS || !is_joined(slot)) {
            break;
        }
    }
    return units;
}
