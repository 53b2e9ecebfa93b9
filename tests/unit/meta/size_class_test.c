// The size classes: the smallest that fits, little waste, exact division.
#include "meta/size_class.h"

#include "../unit.h"

static size_t class_of(size_t bytes)
{
    return bytes <= HAK_TINY_MAX ? hak_size_class_of_tiny(bytes) : hak_size_class_of_small(bytes);
}

static void every_request_gets_the_smallest_class_that_fits(void)
{
    for (size_t bytes = 0; bytes <= HAK_SMALL_MAX; bytes++) {
        const size_t size_class = class_of(bytes);
        UNIT_CHECK(size_class < HAK_SMALL_CLASSES);
        UNIT_CHECK(hak_classes[size_class].bytes >= bytes);
        UNIT_CHECK(size_class == 0 || hak_classes[size_class - 1].bytes < bytes);
    }
}

static void blocks_are_little_larger_than_requests(void)
{
    for (size_t bytes = 1; bytes <= HAK_SMALL_MAX; bytes++) {
        const size_t waste = hak_classes[class_of(bytes)].bytes - bytes;
        UNIT_CHECK(bytes <= 128 ? waste < 16 : waste * 8 < bytes);
    }
}

static void every_offset_in_a_slab_is_divided_exactly(void)
{
    for (size_t size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const struct hak_class *info = &hak_classes[size_class];
        for (size_t offset = 0; offset < info->units * HAK_UNIT_BYTES; offset++) {
            UNIT_EQUAL(hak_size_class_index(info, offset), offset / info->bytes);
        }
    }
}

static void slabs_hold_enough_blocks_and_fit_their_bitmap(void)
{
    for (size_t size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const struct hak_class *info = &hak_classes[size_class];
        UNIT_EQUAL(info->blocks, info->units * HAK_UNIT_BYTES / info->bytes);
        UNIT_CHECK(info->blocks >= 7);
        UNIT_CHECK(info->blocks <= 64 * 64); // the summary is one word
        UNIT_CHECK(info->bytes % 16 == 0);
        UNIT_CHECK((1U << info->magazine_log2) >= 8);
    }
}

static void large_bins_go_on_where_the_classes_end(void)
{
    UNIT_EQUAL(hak_size_class_bin(HAK_SMALL_MAX + 1), 0);
    UNIT_EQUAL(hak_size_class_bin_bytes(HAK_LARGE_BINS - 1), HAK_MIB(4));
    UNIT_EQUAL(hak_size_class_bin(HAK_MIB(4) + 1), HAK_LARGE_BINS);
    for (unsigned bin = 0; bin < HAK_LARGE_BINS; bin++) {
        const size_t bytes = hak_size_class_bin_bytes(bin);
        UNIT_EQUAL(hak_size_class_bin(bytes), bin);
        UNIT_EQUAL(hak_size_class_bin(bytes + 1), bin + 1);
        UNIT_CHECK(bytes % 4096 == 0);
    }
}

int main(void)
{
    every_request_gets_the_smallest_class_that_fits();
    blocks_are_little_larger_than_requests();
    every_offset_in_a_slab_is_divided_exactly();
    slabs_hold_enough_blocks_and_fit_their_bitmap();
    large_bins_go_on_where_the_classes_end();
    return 0;
}
