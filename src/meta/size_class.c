// size_class.c -- the tables, computed by the compiler.
#include "meta/size_class.h"

// The class of a request, as a constant expression (see size_class.h). Compilers check both
// branches of ?:, also the one that they drop, so the second gets a number that it can work with.
#define TOP_BIT(bytes)   (63U - (unsigned)__builtin_clzll((bytes) - 1))
#define ABOVE_128(bytes) ((bytes) <= 128 ? 129ULL : (unsigned long long)(bytes))
#define STEPS_OF_8(bytes) \
    ((TOP_BIT(bytes) - 7) * 8 + (unsigned)(((bytes) - 1) >> (TOP_BIT(bytes) - 3)))
#define CLASS_OF(bytes)                                    \
    ((uint8_t)((bytes) <= 16    ? 0U                       \
               : (bytes) <= 128 ? ((bytes) + 15U) / 16 - 1 \
                                : STEPS_OF_8(ABOVE_128(bytes))))

#define TIMES_4(entry, i) entry(i), entry((i) + 1), entry((i) + 2), entry((i) + 3)
#define TIMES_16(entry, i) \
    TIMES_4(entry, i), TIMES_4(entry, (i) + 4), TIMES_4(entry, (i) + 8), TIMES_4(entry, (i) + 12)
#define TIMES_64(entry, i)                                                    \
    TIMES_16(entry, i), TIMES_16(entry, (i) + 16), TIMES_16(entry, (i) + 32), \
        TIMES_16(entry, (i) + 48)
#define TIMES_256(entry, i)                                                    \
    TIMES_64(entry, i), TIMES_64(entry, (i) + 64), TIMES_64(entry, (i) + 128), \
        TIMES_64(entry, (i) + 192)

#define SMALL_ENTRY(i) CLASS_OF((i) * 128)

const uint8_t hak_tiny_table[HAK_TINY_MAX + 1] = {
    TIMES_256(CLASS_OF, 0),
    TIMES_256(CLASS_OF, 256),
    TIMES_256(CLASS_OF, 512),
    TIMES_256(CLASS_OF, 768),
    CLASS_OF(1024),
};
const uint8_t hak_small_table[HAK_SMALL_MAX / 128 + 1] = {TIMES_256(SMALL_ENTRY, 0),
                                                          SMALL_ENTRY(256)};

// A slab holds at least 7 blocks, in 1, 2 or 4 units.
#define UNITS(bytes) ((bytes) <= 8192 ? 1 : (bytes) <= 16384 ? 2 : 4)
// A first magazine holds about 4 KiB of blocks, but 6 to 62 of them.
#define MAGAZINE(bytes) ((bytes) <= 64 ? 6 : (bytes) <= 256 ? 5 : (bytes) <= 1024 ? 4 : 3)
#define CLASS(b)                                               \
    {                                                          \
        .reciprocal = ((UINT64_C(1) << 40) + (b) - 1) / (b),   \
        .bytes = (b),                                          \
        .blocks = (uint16_t)(UNITS(b) * HAK_UNIT_BYTES / (b)), \
        .units = UNITS(b),                                     \
        .magazine_log2 = MAGAZINE(b),                          \
    }
#define DOUBLING(b)                                                                     \
    CLASS((b) * 9), CLASS((b) * 10), CLASS((b) * 11), CLASS((b) * 12), CLASS((b) * 13), \
        CLASS((b) * 14), CLASS((b) * 15), CLASS((b) * 16)

HAK_IN_CORE const struct hak_class hak_classes[HAK_SMALL_CLASSES] = {
    CLASS(16),
    CLASS(32),
    CLASS(48),
    CLASS(64),
    CLASS(80),
    CLASS(96),
    CLASS(112),
    CLASS(128),
    DOUBLING(16),
    DOUBLING(32),
    DOUBLING(64),
    DOUBLING(128),
    DOUBLING(256),
    DOUBLING(512),
    DOUBLING(1024),
    DOUBLING(2048),
};
