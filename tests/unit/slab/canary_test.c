// Canaries and zeros of blocks of every length: all of a block is looked at, and nothing beside it is touched.
#include "slab/canary.h"

#include "../unit.h"

// The last two bytes of a canary say how long the padding is: what changes them may say so of another.
enum { LONGEST = 1040, STEP = 16, BESIDE = 64, WORD = 8, LENGTH = 2, FILL = 0x33 };

static HAK_ALIGNED(STEP) char room[BESIDE + LONGEST + BESIDE];
static char *const block = room + BESIDE;

static void start(void)
{
    hak_harden.secret = UINT64_C(0x1F2E3D4C5B6A7988);
    hak_harden.multiplier = UINT64_C(0x9E3779B97F4A7C15);
    memset(room, FILL, sizeof room);
}

static void nothing_beside_is_touched(size_t bytes)
{
    for (size_t i = 1; i <= BESIDE; i++) {
        UNIT_CHECK(block[-(ptrdiff_t)i] == FILL);
        UNIT_CHECK(block[bytes + i - 1] == FILL);
    }
}

static void a_changed_byte_is_seen(size_t bytes, size_t offset)
{
    block[offset] = (char)~block[offset];
    UNIT_CHECK(!hak_canary_is_whole(block, bytes));
    block[offset] = (char)~block[offset];
    UNIT_CHECK(hak_canary_is_whole(block, bytes));
}

static void every_request_has_a_canary_behind_it(void)
{
    for (size_t bytes = STEP; bytes <= LONGEST; bytes += STEP) {
        for (size_t request = 0; request <= bytes - HAK_CANARY_BYTES; request++) {
            start();
            hak_canary_write(block, bytes, request);
            UNIT_EQUAL(hak_harden_request(block, bytes), request);
            nothing_beside_is_touched(bytes);
            for (size_t i = 0; i < request; i++) {
                UNIT_CHECK(block[i] == FILL);
            }
            for (size_t i = request; i < bytes; i++) {
                if (i < bytes - LENGTH &&
                    (i < request + WORD || i >= bytes - HAK_CANARY_BYTES - WORD)) {
                    a_changed_byte_is_seen(bytes, i);
                }
            }
        }
    }
}

static void a_cleared_block_is_zero_from_end_to_end(void)
{
    for (size_t bytes = STEP; bytes <= LONGEST; bytes += STEP) {
        start();
        UNIT_CHECK(!hak_canary_is_zero(block, bytes));
        hak_canary_clear(block, bytes);
        UNIT_CHECK(hak_canary_is_zero(block, bytes));
        nothing_beside_is_touched(bytes);
        for (size_t i = 0; i < bytes; i++) {
            UNIT_CHECK(block[i] == 0);
            block[i] = 1;
            UNIT_CHECK(!hak_canary_is_zero(block, bytes));
            block[i] = 0;
        }
    }
}

int main(void)
{
    every_request_has_a_canary_behind_it();
    a_cleared_block_is_zero_from_end_to_end();
    return 0;
}
