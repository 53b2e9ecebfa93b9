// pools.c -- see pools.h.
#include "cache/pools.h"

_Atomic(bool) hak_pools_went_above;

unsigned hak_pools_larger_class(unsigned size_class)
{
    // A block lies at a multiple of its size, so its alignment is the lowest set bit of the size.
    const uint32_t bytes = hak_classes[size_class].bytes;
    const uint32_t alignment = bytes & -bytes;
    hak_pools_go_above();
    while (size_class < HAK_SMALL_CLASSES &&
           (!hak_pools_have(size_class) || hak_classes[size_class].bytes % alignment != 0)) {
        size_class++;
    }
    return size_class;
}
