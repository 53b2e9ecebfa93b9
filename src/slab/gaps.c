// gaps.c -- see gaps.h and docs/decisions/0027.
#include "slab/gaps.h"

#include "base/bits.h"
#include "base/check.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "os/os.h"

// A node describes the free units in 2^height neighbouring superslabs; a leaf describes one. All zeros where there are
// none. The lengths of long rows end at UINT16_MAX units, the most that a run may have.
struct hak_gaps_node {
    uint8_t inside;   // the longest row within a superslab
    uint8_t start;    // the longest row at the start of a superslab
    uint16_t head;    // the row at the start of the whole range
    uint16_t tail;    // the row at the end of the whole range
    uint16_t longest; // of the rows that reach the end of the superslab they begin in
};

// A block holds the nodes of six heights, a band: a heap of 64 superslabs needs one block of 1 KiB. The top of a
// block is a leaf of a block in the next band.
enum { BAND_HEIGHTS = 6, BLOCK_NODES = 1 << (BAND_HEIGHTS + 1), BANDS = HAK_GAPS_BANDS };

// Stands for every block where the shard has no superslabs: nothing is free there.
static struct hak_gaps_node none[BLOCK_NODES];

static uint64_t block_of(uint64_t slot, unsigned band)
{
    return slot >> (BAND_HEIGHTS * (band + 1));
}

// Called once the map exists. False without memory.
static bool start(struct hak_gaps *gaps)
{
    size_t all = 0;
    for (unsigned band = 0; band < BANDS; band++) {
        all += block_of(hak_map.super_mask, band) + 1;
    }
    struct hak_gaps_node **blocks =
        hak_os_map(hak_align_up(all * sizeof *blocks, hak_os_page_bytes()));
    for (unsigned band = 0; band < BANDS && blocks != NULL; band++) {
        gaps->bands[band] = blocks;
        blocks += block_of(hak_map.super_mask, band) + 1;
    }
    gaps->low = hak_map.super_mask + 1;
    return blocks != NULL;
}

bool hak_gaps_reserve(struct hak_gaps *gaps, uint64_t slot)
{
    bool has_all = gaps->bands[0] != NULL || start(gaps);
    for (unsigned band = 0; band < BANDS && has_all; band++) {
        struct hak_gaps_node **block = &gaps->bands[band][block_of(slot, band)];
        if (*block == NULL) {
            *block = hak_pool_take(sizeof none);
        }
        has_all = *block != NULL;
    }
    return has_all;
}

// A node's place in a block: the block's top has number 1, the nodes below it have 2 and 3, and so on to the leaves.
struct place {
    struct hak_gaps_node *block;
    unsigned number;
};

static struct place place_of(const struct hak_gaps *gaps, unsigned height, uint64_t index)
{
    const unsigned log2 = BAND_HEIGHTS - height % BAND_HEIGHTS; // of the row's number of nodes
    const unsigned row = 1U << log2;
    struct hak_gaps_node *block = gaps->bands[height / BAND_HEIGHTS][index >> log2];
    return (struct place){block != NULL ? block : none, row | ((unsigned)index & (row - 1))};
}

static struct hak_gaps_node *node_at(const struct hak_gaps *gaps, unsigned height, uint64_t index)
{
    HAK_LOOK();
    const struct place place = place_of(gaps, height, index);
    return &place.block[place.number];
}

// The number of units below a node.
static unsigned span(unsigned height)
{
    return (unsigned)HAK_SUPER_UNITS << height;
}

static uint16_t most(unsigned a, unsigned b)
{
    const unsigned more = a > b ? a : b;
    return (uint16_t)(more < UINT16_MAX ? more : UINT16_MAX);
}

// Recompute the node above `left` and the node behind it. False if it did not change.
static bool join_insides(struct hak_gaps_node *node, const struct hak_gaps_node *left)
{
    const struct hak_gaps_node *right = left + 1;
    const uint8_t inside = left->inside > right->inside ? left->inside : right->inside;
    const uint8_t start = left->start > right->start ? left->start : right->start;
    const bool is_new = inside != node->inside || start != node->start;
    node->inside = inside;
    node->start = start;
    return is_new;
}

// The same for long rows. Each of the two has `units` units below it.
static bool join_rows(struct hak_gaps_node *node, const struct hak_gaps_node *left, unsigned units)
{
    const struct hak_gaps_node *right = left + 1;
    const unsigned middle = left->tail != 0 ? left->tail + right->head : 0U;
    const unsigned longest = left->longest > right->longest ? left->longest : right->longest;
    const struct hak_gaps_node now = {
        .head = left->head == units ? most(units + right->head, 0) : left->head,
        .tail = right->tail == units ? most(units + left->tail, 0) : right->tail,
        .longest = most(middle, longest),
    };
    const bool is_new =
        now.head != node->head || now.tail != node->tail || now.longest != node->longest;
    node->head = now.head;
    node->tail = now.tail;
    node->longest = now.longest;
    return is_new;
}

// Recompute the nodes above `first` to `last`, which lie in one block, up to the first height at which nothing changes
// any more: their long rows, all else, or both.
static void climb(const struct hak_gaps *gaps, unsigned height, struct hak_gaps_changed changed)
{
    while (height < gaps->top && (changed.insides || changed.rows)) {
        const struct place place = place_of(gaps, height, changed.first);
        unsigned low = place.number;
        unsigned high = low + (unsigned)(changed.last - changed.first);
        do {
            low >>= 1;
            high >>= 1;
            changed.first >>= 1;
            changed.last >>= 1;
            struct hak_gaps_node *nodes =
                low > 1 ? &place.block[low] : node_at(gaps, height + 1, changed.first);
            bool insides = false;
            bool rows = false;
            for (unsigned i = 0; i <= high - low; i++) {
                const struct hak_gaps_node *left = &place.block[2 * (low + i)];
                insides |= changed.insides && join_insides(&nodes[i], left);
                rows |= changed.rows && join_rows(&nodes[i], left, span(height));
                HAK_LOOK();
            }
            changed.insides = insides;
            changed.rows = rows;
            height++;
        } while (low > 1 && height < gaps->top && (changed.insides || changed.rows));
    }
}

static void climb_to_top(struct hak_gaps *gaps)
{
    climb(gaps, 0, gaps->changed);
    gaps->changed.insides = false;
    gaps->changed.rows = false;
}

static void reach(struct hak_gaps *gaps, uint64_t slot)
{
    const uint64_t before = gaps->low;
    const unsigned top_before = gaps->top;
    if (slot >= gaps->low && slot < gaps->high) {
        return;
    }
    climb_to_top(gaps);
    gaps->low = slot < gaps->low ? slot : gaps->low;
    gaps->high = slot >= gaps->high ? slot + 1 : gaps->high;
    while (gaps->low >> gaps->top != (gaps->high - 1) >> gaps->top) {
        gaps->top++;
    }
    const uint64_t root = before >> top_before;
    climb(gaps, top_before, (struct hak_gaps_changed){root, root, true, true});
}

static unsigned longest_row(uint64_t bits)
{
    enum { LENGTHS_LOG2 = 7 };   // 1 to 64 units
    uint64_t rows[LENGTHS_LOG2]; // rows[i]: where 2^i bits in a row begin
    unsigned log2 = 0;
    if (bits == 0) {
        return 0;
    }
    if (((bits + (bits & -bits)) & bits) == 0) { // there is one row only
        return hak_highest_bit(bits) - hak_lowest_bit(bits) + 1;
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

// Is `slot` close enough to the changed superslabs to be recomputed with them?
static bool climbs_along(const struct hak_gaps_changed *changed, uint64_t slot)
{
    return (changed->insides || changed->rows) && slot + 1 >= changed->first &&
           slot <= changed->last + 1 && slot >> BAND_HEIGHTS == changed->first >> BAND_HEIGHTS;
}

static void note_changed(struct hak_gaps *gaps, uint64_t slot, bool insides, bool rows)
{
    struct hak_gaps_changed *changed = &gaps->changed;
    if (!climbs_along(changed, slot)) {
        climb_to_top(gaps);
        *changed = (struct hak_gaps_changed){slot, slot, insides, rows};
        return;
    }
    changed->first = slot < changed->first ? slot : changed->first;
    changed->last = slot > changed->last ? slot : changed->last;
    changed->insides |= insides;
    changed->rows |= rows;
}

void hak_gaps_note(struct hak_gaps *gaps, uint64_t slot, uint64_t free_units, bool joins)
{
    const uint64_t used = ~free_units;
    const unsigned head = used != 0 ? hak_lowest_bit(used) : HAK_SUPER_UNITS;
    const unsigned tail = used != 0 ? HAK_SUPER_UNITS - 1 - hak_highest_bit(used) : HAK_SUPER_UNITS;
    reach(gaps, slot);
    struct hak_gaps_node *leaf = node_at(gaps, 0, slot);
    const struct hak_gaps_node before = *leaf;
    *leaf = (struct hak_gaps_node){
        .inside = (uint8_t)longest_row(free_units),
        .start = (uint8_t)head,
        .head = (uint16_t)(joins ? head : 0),
        .tail = (uint16_t)(joins ? tail : 0),
        .longest = (uint16_t)(joins ? tail : 0),
    };
    const bool insides = leaf->inside != before.inside || leaf->start != before.start;
    const bool rows = leaf->head != before.head || leaf->tail != before.tail;
    if (insides || rows) {
        note_changed(gaps, slot, insides, rows);
    }
}

// A walk over all superslabs from a slot on, from left to right, in nodes as large as possible.
struct walk {
    unsigned height;
    uint64_t index;
};

// False if there are none.
static bool walk_begin(const struct hak_gaps *gaps, struct walk *walk, uint64_t slot)
{
    *walk = slot > gaps->low ? (struct walk){0, slot}
                             : (struct walk){gaps->top, gaps->low >> gaps->top};
    return slot < gaps->high;
}

static bool walk_next(const struct hak_gaps *gaps, struct walk *walk)
{
    while (walk->height < gaps->top && (walk->index & 1) != 0) {
        walk->index >>= 1;
        walk->height++;
    }
    walk->index++;
    return walk->height < gaps->top;
}

static unsigned row_of(const struct hak_gaps_node *node, bool at_start)
{
    HAK_LOOK();
    return at_start ? node->start : node->inside;
}

// The first superslab below that node that has such a row. There must be one.
static uint64_t leaf_below(const struct hak_gaps *gaps,
                           struct walk walk,
                           unsigned units,
                           bool at_start)
{
    while (walk.height > 0) {
        const struct place place = place_of(gaps, walk.height - 1, 2 * walk.index);
        unsigned number = place.number;
        for (;;) {
            number += row_of(&place.block[number], at_start) < units;
            walk.height--;
            walk.index = 2 * walk.index + (number & 1);
            if (number >= BLOCK_NODES / 2) {
                break; // a leaf of the block
            }
            number *= 2;
        }
    }
    return walk.index;
}

uint64_t hak_gaps_find(struct hak_gaps *gaps, uint64_t slot, unsigned units, bool at_start)
{
    climb_to_top(gaps);
    struct walk walk;
    bool is_there = walk_begin(gaps, &walk, slot);
    while (is_there && row_of(node_at(gaps, walk.height, walk.index), at_start) < units) {
        is_there = walk_next(gaps, &walk);
    }
    return is_there ? leaf_below(gaps, walk, units, at_start) : UINT64_MAX;
}

// The place `units` units before the start of a node.
static struct hak_gap place_before(unsigned height, uint64_t index, unsigned units)
{
    const uint64_t unit = (index << height) * HAK_SUPER_UNITS - units;
    return (struct hak_gap){unit / HAK_SUPER_UNITS, (unsigned)(unit % HAK_SUPER_UNITS)};
}

// The first row of `units` below that node. There must be one.
static struct hak_gap row_below(const struct hak_gaps *gaps, struct walk walk, unsigned units)
{
    while (walk.height > 0) {
        walk.height--;
        walk.index *= 2;
        const struct hak_gaps_node *left = node_at(gaps, walk.height, walk.index);
        if (left->longest < units) {
            walk.index++;
            const unsigned head = node_at(gaps, walk.height, walk.index)->head;
            if (left->tail != 0 && left->tail + head >= units) {
                return place_before(walk.height, walk.index, left->tail);
            }
        }
    }
    return place_before(0, walk.index + 1, node_at(gaps, 0, walk.index)->tail);
}

// Find the first row of `units` or more that reaches the end of the superslab in which it begins, at or behind `slot`.
static bool find_row(const struct hak_gaps *gaps,
                     uint64_t slot,
                     unsigned units,
                     struct hak_gap *gap)
{
    struct walk walk;
    unsigned open = 0; // length of the row that ends where the node begins
    bool is_there = walk_begin(gaps, &walk, slot);
    while (is_there) {
        const struct hak_gaps_node *node = node_at(gaps, walk.height, walk.index);
        if (open != 0 && open + node->head >= units) {
            *gap = place_before(walk.height, walk.index, open);
            return true;
        }
        if (node->longest >= units) {
            *gap = row_below(gaps, walk, units);
            return true;
        }
        open = node->tail + (node->tail == span(walk.height) ? open : 0);
        is_there = walk_next(gaps, &walk);
    }
    return false;
}

// The length of the row from that place on. `*end`: the first slot behind it that is not wholly free.
static unsigned row_from(const struct hak_gaps *gaps, struct hak_gap gap, uint64_t *end)
{
    unsigned units = HAK_SUPER_UNITS - gap.unit;
    for (*end = gap.slot + 1; *end < gaps->high && node_at(gaps, 0, *end)->head == HAK_SUPER_UNITS;
         ++*end) {
        units += HAK_SUPER_UNITS;
    }
    return units + (*end < gaps->high ? node_at(gaps, 0, *end)->head : 0U);
}

// Move `gap` to the next multiple of `align_units`, in this superslab or, if that is wholly free, at the start
// of the next. False if there is none.
static bool align(const struct hak_gaps *gaps, struct hak_gap *gap, unsigned align_units)
{
    gap->unit = (unsigned)hak_align_up(gap->unit, align_units);
    if (gap->unit == HAK_SUPER_UNITS) {
        *gap = (struct hak_gap){gap->slot + 1, 0};
        return gap->slot < gaps->high && node_at(gaps, 0, gap->slot)->head == HAK_SUPER_UNITS;
    }
    return true;
}

bool hak_gaps_find_across(struct hak_gaps *gaps,
                          uint64_t slot,
                          unsigned units,
                          unsigned align_units,
                          unsigned looks,
                          struct hak_gap *gap)
{
    uint64_t end = slot;
    climb_to_top(gaps);
    for (; looks > 0 && find_row(gaps, end, units, gap); looks--) {
        if (align_units == 1) {
            return true;
        }
        const struct hak_gap row = *gap;
        if (align(gaps, gap, align_units) && row_from(gaps, *gap, &end) >= units) {
            return true;
        }
        row_from(gaps, row, &end);
    }
    return looks == 0 && find_row(gaps, end, units + align_units - 1, gap) &&
           align(gaps, gap, align_units);
}

unsigned hak_gaps_before(const struct hak_gaps *gaps, uint64_t slot)
{
    unsigned units = 0;
    unsigned tail = HAK_SUPER_UNITS;
    while (slot > gaps->low && slot <= gaps->high && tail == HAK_SUPER_UNITS) {
        slot--;
        tail = node_at(gaps, 0, slot)->tail;
        units += tail;
    }
    return units;
}
