// clearing.h -- clears blocks of every length and checks them, with vectors of one width or the other.
#ifndef HAK_TESTS_CLEARING_H
#define HAK_TESTS_CLEARING_H

#include "secure/canary.h"

#include "../unit.h"

enum { LONGEST = 1040, STEP = 16, BESIDE = 64, FILL = 0x33 };

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

HAK_WIDEST static void a_cleared_block_is_zero_from_end_to_end(void)
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

#endif
