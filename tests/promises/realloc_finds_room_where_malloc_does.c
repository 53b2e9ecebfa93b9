// native only
// not secure: each large block has pages of its own there
// At an address space limit (RLIMIT_AS) realloc is refused only if malloc of that size is: the preferred places of a growing
// block (what_grows_again_meets_the_same_pages) may be taken, or too large. And it is not refused if the block can grow in place.
#include "../support/addresses.h"

enum { BLOCKS = 256, GAPS = 20, UNIT_BYTES = 64 * 1024, ALIGNED_UNITS = 4 };
#define BLOCK_BYTES  (5 * (size_t)UNIT_BYTES)
#define GROWER_BYTES (4 * (size_t)UNIT_BYTES)

static unsigned char *take(size_t bytes)
{
    unsigned char *block = malloc(bytes);
    HT_CHECK(block != NULL, "malloc(%zu) failed", bytes);
    memset(block, (int)(bytes / UNIT_BYTES), bytes);
    return block;
}

static void grow(unsigned char *block, size_t before, size_t bytes)
{
    const int error = errno;
    block = realloc(block, bytes);
    HT_CHECK(block != NULL, "realloc(%zu) was refused", bytes);
    HT_CHECK(errno == error, "errno is %d", errno);
    for (size_t i = 0; i < before; i++) {
        HT_CHECK(block[i] == before / UNIT_BYTES, "byte %zu was lost", i);
    }
    free(block);
}

// Gaps that are long enough, but start halfway between two multiples of 256 KiB; nothing else is free.
static void into_a_gap(void)
{
    unsigned char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = take(BLOCK_BYTES);
    }
    unsigned char *grower = take(GROWER_BYTES);
    ht_limit_addresses(0);
    ht_exhaust(BLOCK_BYTES);
    ht_exhaust(UNIT_BYTES - 4096);
    size_t gaps = 0;
    for (size_t i = 0; i < BLOCKS && gaps < GAPS; i++) {
        if ((uintptr_t)blocks[i] / UNIT_BYTES % ALIGNED_UNITS == 1) {
            free(blocks[i++]); // never two neighbours
            gaps++;
        }
    }
    HT_CHECK(gaps == GAPS, "%zu gaps", gaps);
    grow(grower, GROWER_BYTES, BLOCK_BYTES);
    ht_limit_addresses(SIZE_MAX);
}

// Room for the requested size, and little more.
static void into_a_mapping(void)
{
    for (size_t more = 0; more < 16; more++) {
        unsigned char *grower = take(3 * HT_MIB);
        unsigned char *in_the_way = take(3 * HT_MIB);
        ht_limit_addresses((24 + more) * HT_MIB);
        void *other = malloc(24 * HT_MIB);
        const bool has_room = ht_hide(other) != NULL;
        free(other);
        if (has_room) {
            grow(grower, 3 * HT_MIB, 24 * HT_MIB);
        } else {
            free(grower);
        }
        free(in_the_way);
        ht_limit_addresses(SIZE_MAX);
    }
}

// The memory behind it was freed, and waits to be reused: a copy has no room, but growth in place has.
static void where_it_is(void)
{
    enum { TRIES = 8 };
    unsigned char *behind[TRIES];
    unsigned char *grower = take(12 * HT_MIB);
    size_t next = TRIES;
    for (size_t i = 0; i < TRIES; i++) {
        behind[i] = take(HT_MIB);
        next = behind[i] == grower + 12 * HT_MIB ? i : next;
    }
    HT_CHECK(next < TRIES, "no block lies behind the first");
    ht_limit_addresses(0);
    free(behind[next]);
    grow(grower, 12 * HT_MIB, 12 * HT_MIB + UNIT_BYTES);
    ht_limit_addresses(SIZE_MAX);
    for (size_t i = 0; i < TRIES; i++) {
        if (i != next) {
            free(behind[i]);
        }
    }
}

int main(void)
{
    ht_start();
    where_it_is();
    into_a_mapping();
    into_a_gap();
    return 0;
}
