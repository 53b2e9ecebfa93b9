// size_class.h -- request size to size class, and back.
//
// Owns      nothing; constant tables.
// Threads   any.
//
// Classes go in steps of 16 bytes to 128, then in 8 steps per doubling, so that a
// block is at most 12.5 % larger than the request above 128 bytes. The same
// formula numbers the small classes (slabs, to 32 KiB) and, counted on from
// there, the bins of large blocks (runs of pages).
#pragma once

#include "base/bits.h"
#include "base/compiler.h"

#define HAK_UNIT_BYTES  HAK_KIB(64) // what an entry of the address map stands for
#define HAK_UNIT_LOG2   16
#define HAK_SUPER_BYTES HAK_MIB(4) // two huge pages, which a superslab can fill
#define HAK_SUPER_LOG2  22
#define HAK_SUPER_UNITS 64 // one bit each in a word

#define HAK_TINY_MAX        1024
#define HAK_SMALL_MAX       HAK_KIB(32)
#define HAK_SMALL_CLASSES   72
#define HAK_LARGE_BINS      56           // 36 KiB to 4 MiB: sizes of kept blocks (BigCache)
#define HAK_HOT_PLACES      7            // one per doubling of these sizes
#define HAK_LARGE_RUN_MAX   HAK_MIB(512) // a run of units up to this, else a mapping of its own
#define HAK_LARGE_RUN_GROWN (UINT16_MAX * HAK_UNIT_BYTES) // the most that a run may grow to
// From this size on, a block that realloc has to move gets a mapping of its own, whose pages can move, until it gets smaller.
#define HAK_MAPPING_MOVED_MIN HAK_MIB(4)

struct hak_class {
    uint64_t reciprocal;   // ceil(2^40 / bytes): divides any offset in a slab exactly
    uint32_t bytes;        // of a block
    uint16_t blocks;       // in a slab
    uint8_t units;         // of a slab
    uint8_t magazine_log2; // first magazine: 2^this slots, two of them for its end marks
};

HAK_INTERNAL extern const struct hak_class hak_classes[HAK_SMALL_CLASSES];
// Indexed by byte, not by 16 bytes: saves two instructions in malloc, and costs a cache line per 64
// bytes of sizes in use.
HAK_INTERNAL extern const uint8_t hak_tiny_table[HAK_TINY_MAX + 1];
HAK_INTERNAL extern const uint8_t hak_small_table[HAK_SMALL_MAX / 128 + 1];

// Class of a request of `bytes` <= HAK_TINY_MAX. Zero bytes map to the smallest class.
HAK_INLINE size_t hak_size_class_of_tiny(size_t bytes)
{
    return hak_tiny_table[bytes];
}

// Class of a request of HAK_TINY_MAX < `bytes` <= HAK_SMALL_MAX: the steps are 128 or more there.
HAK_INLINE size_t hak_size_class_of_small(size_t bytes)
{
    return hak_small_table[(bytes + 127) / 128];
}

// Bin of a request of `bytes` > HAK_SMALL_MAX; HAK_LARGE_BINS or more above 4 MiB.
HAK_INLINE unsigned hak_size_class_bin(size_t bytes)
{
    unsigned top = hak_highest_bit(bytes - 1);
    return (top - 15) * 8 + (unsigned)((bytes - 1) >> (top - 3)) - 8;
}

// Bytes of a block in a bin, before rounding to pages (a no-op for 4 KiB pages).
HAK_INLINE size_t hak_size_class_bin_bytes(unsigned bin)
{
    return (size_t)(9 + bin % 8) << (12 + bin / 8);
}

// The index of the block of a slab that contains an offset.
HAK_INLINE uint32_t hak_size_class_index(const struct hak_class *info, size_t offset)
{
    return (uint32_t)((offset * info->reciprocal) >> 40);
}
