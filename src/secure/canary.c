// canary.c -- see canary.h.
#include "secure/canary.h"

#include "slab/misuse.h"

#define UPPER(bytes) (~UINT64_C(0) << (64 - 8 * (bytes)))
const uint64_t hak_canary_masks[sizeof(uint64_t) + 1] = {
    0, UPPER(1), UPPER(2), UPPER(3), UPPER(4), UPPER(5), UPPER(6), UPPER(7), UPPER(8)};

// A walk over all blocks may read a block that is freed and handed out again meanwhile. The result may then be anything up to the
// room of the block.
HAK_UNJUDGED size_t hak_canary_request(const char *block, size_t block_bytes)
{
    const size_t most = block_bytes - HAK_CANARY_BYTES;
    const size_t padding = hak_canary_padding_bytes(block, block_bytes, hak_canary_of(block));
    return padding <= most ? most - padding : 0;
}

// Does this byte lie in the padding's first or last word? Only these are written.
static bool is_written(size_t place, size_t padding)
{
    return place < sizeof(uint64_t) || padding - place <= sizeof(uint64_t);
}

void hak_canary_die_overflow(const char *block, size_t block_bytes)
{
    const size_t most = block_bytes - HAK_CANARY_BYTES;
    const size_t padding = hak_canary_padding_bytes(block, block_bytes, hak_canary_of(block));
    if (padding > most) {
        hak_misuse_overflow(block, block_bytes, most);
    }
    const char expected = (char)hak_canary_padding_word(hak_canary_of(block));
    const size_t request = most - padding;
    size_t offset = request;
    while (offset < most && (!is_written(offset - request, padding) || block[offset] == expected)) {
        offset++;
    }
    hak_misuse_overflow(block, request, offset);
}

bool hak_canary_resize(char *block, size_t block_bytes, size_t request)
{
    if (HAK_UNLIKELY(!hak_canary_is_whole(block, block_bytes))) {
        hak_canary_die_overflow(block, block_bytes);
    }
    if (request > block_bytes - HAK_CANARY_BYTES) {
        return false;
    }
    hak_canary_write(block, block_bytes, request);
    return true;
}

void hak_canary_die_written(const char *block, size_t block_bytes)
{
    size_t offset = 0;
    while (offset < block_bytes - 1 && block[offset] == 0) {
        offset++;
    }
    hak_misuse_write_after_free(block, block_bytes, offset);
}
