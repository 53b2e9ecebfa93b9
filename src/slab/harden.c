// harden.c -- see harden.h.
#include "slab/harden.h"

#include <string.h>

#include "base/atomic.h"
#include "base/options.h"
#include "os/os.h"
#include "slab/misuse.h"

struct hak_harden hak_harden;

// An overflow by a byte, by a word, or by a few: more of a long padding is not worth its time.
enum { PADDING_WRITTEN = 16, PADDING_SHIFT = 48 };

void hak_harden_start(void)
{
    hak_harden.zero = hak_load_relaxed(&hak_options.zero_on_free) != 0;
    hak_harden.canaries = hak_load_relaxed(&hak_options.canaries) != 0;
    hak_harden.random_order = hak_load_relaxed(&hak_options.random_order) != 0;
    hak_harden.quarantine_bytes = hak_load_relaxed(&hak_options.quarantine_bytes);
    hak_harden.sees_all =
        hak_harden.zero || hak_harden.canaries || hak_harden.quarantine_bytes != 0;
    hak_harden.is_on = hak_harden.sees_all || hak_harden.random_order;
    if (hak_harden.is_on) {
        const bool is_random = hak_load_relaxed(&hak_options.deterministic) == 0;
        hak_harden.secret = is_random ? hak_os_random() : 1;
    }
}

// SplitMix64's finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

uint64_t hak_harden_random(void)
{
    // Two threads that come at once may get the same number, which helps nobody to foresee it.
    static _Atomic(uint64_t) state;
    const uint64_t next = hak_load_relaxed(&state) + UINT64_C(0x9E3779B97F4A7C15);
    hak_store_relaxed(&state, next);
    return mix(hak_harden.secret + next);
}

static uint64_t canary_of(const char *block)
{
    return mix((uintptr_t)block ^ hak_harden.secret) | 0x80;
}

static unsigned char padding_of(uint64_t canary)
{
    return (unsigned char)(canary >> 56 | 0x80);
}

static uint64_t canary_read(const char *block, size_t block_bytes)
{
    uint64_t canary;
    memcpy(&canary, block + block_bytes - HAK_CANARY_BYTES, sizeof canary);
    return canary;
}

static void canary_write(char *block, size_t block_bytes, size_t request)
{
    const uint64_t canary = canary_of(block);
    const size_t padding = block_bytes - HAK_CANARY_BYTES - request;
    const uint64_t stored = canary ^ (uint64_t)padding << PADDING_SHIFT;
    memset(
        block + request, padding_of(canary), padding < PADDING_WRITTEN ? padding : PADDING_WRITTEN);
    memcpy(block + block_bytes - HAK_CANARY_BYTES, &stored, sizeof stored);
}

// How long the padding is; SIZE_MAX when the canary is damaged.
static size_t padding_bytes(const char *block, size_t block_bytes)
{
    const uint64_t difference = canary_read(block, block_bytes) ^ canary_of(block);
    const size_t padding = difference >> PADDING_SHIFT;
    const bool is_whole = difference << (64 - PADDING_SHIFT) == 0;
    return is_whole && padding <= block_bytes - HAK_CANARY_BYTES ? padding : SIZE_MAX;
}

size_t hak_harden_request(const char *block, size_t block_bytes)
{
    const size_t padding = padding_bytes(block, block_bytes);
    return padding != SIZE_MAX ? block_bytes - HAK_CANARY_BYTES - padding : 0;
}

void hak_harden_check_used(const char *block, size_t block_bytes)
{
    if (!hak_harden.canaries) {
        return;
    }
    const size_t padding = padding_bytes(block, block_bytes);
    if (HAK_UNLIKELY(padding == SIZE_MAX)) {
        hak_die_overflow(block, block_bytes, block_bytes - HAK_CANARY_BYTES);
    }
    const size_t request = block_bytes - HAK_CANARY_BYTES - padding;
    const size_t written = padding < PADDING_WRITTEN ? padding : PADDING_WRITTEN;
    const unsigned char byte = padding_of(canary_of(block));
    for (size_t i = 0; i < written; i++) {
        if (HAK_UNLIKELY((unsigned char)block[request + i] != byte)) {
            hak_die_overflow(block, request, request + i);
        }
    }
}

bool hak_harden_resize(char *block, size_t block_bytes, size_t request)
{
    hak_harden_check_used(block, block_bytes);
    if (request > block_bytes - HAK_CANARY_BYTES) {
        return false;
    }
    canary_write(block, block_bytes, request);
    return true;
}

bool hak_harden_is_zero(const char *start, size_t bytes)
{
    uint64_t any = 0;
    for (size_t i = 0; i < bytes; i += 2 * sizeof any) { // blocks are multiples of 16 bytes
        uint64_t words[2];
        memcpy(words, start + i, sizeof words);
        any |= words[0] | words[1];
    }
    return any == 0;
}

void hak_harden_check_free(const char *block, size_t block_bytes)
{
    if (!hak_harden.zero || HAK_LIKELY(hak_harden_is_zero(block, block_bytes))) {
        return;
    }
    size_t offset = 0;
    while (block[offset] == 0) {
        offset++;
    }
    hak_die_write_after_free(block, block_bytes, offset);
}

void hak_harden_leaves(char *block, size_t block_bytes, size_t request)
{
    hak_harden_check_free(block, block_bytes);
    if (hak_harden.canaries) {
        canary_write(block, block_bytes, request);
    }
}

void hak_harden_returns(char *block, size_t block_bytes)
{
    hak_harden_check_used(block, block_bytes);
    if (hak_harden.zero) {
        memset(block, 0, block_bytes);
    }
}
