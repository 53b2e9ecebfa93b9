// block.h -- blocks that carry a stamp, so that a wrong allocator is found.
//
// Owns      nothing.
// Threads   a block belongs to one thread at a time; the caller orders its passing on.
// Fails     no memory, or a stamp that has changed, ends the program with code 1.
//
// The stamp is in the first and the last eight bytes of a block: a neighbour that overlaps, or
// a block that is handed out twice, changes one of them. Two words are the least that a program
// touches, and cheap enough to be timed with the rest.
#ifndef WORKLOADS_BLOCK_H
#define WORKLOADS_BLOCK_H

#include "prng.h"
#include "report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// A block that a workload holds. The caller remembers the size, as in most programs.
struct block {
    unsigned char *bytes;
    size_t size;
};

static inline void *block_require(void *memory)
{
    if (memory == NULL) {
        report_exhausted("the allocator returned NULL");
    }
    return memory;
}

// Write `stamp` to both ends; below 16 bytes to the only word, below 8 to every byte.
static inline void block_stamp(void *memory, size_t size, uint64_t stamp)
{
    unsigned char *bytes = memory;
    if (size >= 16) {
        uint64_t tail = ~stamp;
        memcpy(bytes, &stamp, 8);
        memcpy(bytes + size - 8, &tail, 8);
    } else if (size >= 8) {
        memcpy(bytes, &stamp, 8);
    } else {
        memset(bytes, (int)(stamp & 0xff), size);
    }
}

// Stop the program unless block_stamp's words are still there.
static inline void block_verify(const void *memory, size_t size, uint64_t stamp)
{
    const unsigned char *bytes = memory;
    uint64_t head = stamp;
    uint64_t tail = ~stamp;
    bool is_intact = true;
    if (size >= 16) {
        memcpy(&head, bytes, 8);
        memcpy(&tail, bytes + size - 8, 8);
        is_intact = head == stamp && tail == ~stamp;
    } else if (size >= 8) {
        memcpy(&head, bytes, 8);
        is_intact = head == stamp;
    } else {
        for (size_t i = 0; i < size; i++) {
            is_intact = is_intact && bytes[i] == (stamp & 0xff);
        }
    }
    if (!is_intact) {
        report_wrong("a block has changed while the program held it");
    }
}

// A stamped block of `size` bytes in `slot`.
static inline void block_take(struct block *slot, size_t size, uint64_t stamp)
{
    slot->bytes = block_require(malloc(size));
    slot->size = size;
    block_stamp(slot->bytes, size, stamp);
}

// Verify the block in `slot` and free it. Returns what it adds to the answer.
static inline uint64_t block_give(struct block *slot, uint64_t stamp)
{
    block_verify(slot->bytes, slot->size, stamp);
    free(slot->bytes);
    slot->bytes = NULL;
    return prng_mix(stamp + slot->size);
}

#endif
