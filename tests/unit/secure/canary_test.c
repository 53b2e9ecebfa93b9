// Canaries and zeros of blocks of every length: the check covers all of a block, and nothing beside it is touched.
#include "clearing.h"

// The last two bytes of a canary hold the length of the padding: a write to them may give another length.
enum { WORD = 8, LENGTH = 2 };

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
            UNIT_EQUAL(hak_canary_request(block, bytes), request);
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

int main(void)
{
    every_request_has_a_canary_behind_it();
    a_cleared_block_is_zero_from_end_to_end();
    return 0;
}
