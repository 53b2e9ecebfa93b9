// room.h -- threads that together never hold more than a given number of bytes, in blocks of which each takes exactly its length.
// No request is refused, whatever the others free, give back and count at that moment.
#ifndef HT_SUPPORT_ROOM_H
#define HT_SUPPORT_ROOM_H

#include <sched.h>

#include "addresses.h"
#include "stress.h"

#define HT_ROOM_BYTES (80 * HT_MIB)
#define HT_ROOM_LEAST (128 * HT_KIB)
enum { HT_ROOM_SIZES = 6, HT_ROOM_BLOCKS = HT_ROOM_BYTES / HT_ROOM_LEAST };

struct ht_room_block {
    char *start;
    size_t bytes;
};

static size_t ht_room_threads;
static size_t ht_room_addresses; // the most the process may have once all threads run; 0: no limit

static inline struct ht_room_block ht_room_take(size_t bytes)
{
    struct ht_room_block block = {malloc(bytes), bytes};
    for (size_t at = 0; at < bytes && block.start != NULL; at += HT_ROOM_LEAST / 2) {
        memcpy(block.start + at, &block, sizeof block);
    }
    return block;
}

static inline void ht_room_free(struct ht_room_block block)
{
    for (size_t at = 0; at < block.bytes; at += HT_ROOM_LEAST / 2) {
        const bool is_same = memcmp(block.start + at, &block, sizeof block) == 0;
        HT_CHECK(is_same, "%zu bytes were changed", block.bytes);
    }
    free(block.start);
}

static inline void *ht_room_work(void *argument)
{
    struct ht_worker *worker = argument;
    static _Thread_local struct ht_room_block held[HT_ROOM_BLOCKS];
    const size_t most = HT_ROOM_BYTES / ht_room_threads;
    size_t count = 0;
    size_t live = 0;
    ht_meet();
    if (worker->index == 0 && ht_room_addresses != 0) {
        ht_limit_addresses(ht_room_addresses);
    }
    ht_meet();
    for (size_t i = 0; i < worker->operations; i++) {
        const size_t bytes = HT_ROOM_LEAST << ht_random_below(&worker->random, HT_ROOM_SIZES);
        sched_yield(); // so that all threads hold something
        if (live + bytes <= most) {
            held[count] = ht_room_take(bytes);
            HT_CHECK(held[count].start != NULL, "%zu refused, with %zu of %zu", bytes, live, most);
            count++;
            live += bytes;
            continue;
        }
        const size_t kept = ht_random_below(&worker->random, 3) == 0 ? 0 : count / 2;
        while (count > kept) {
            live -= held[--count].bytes;
            ht_room_free(held[count]);
        }
    }
    while (count > 0) {
        ht_room_free(held[--count]);
    }
    return NULL;
}

static inline void ht_room_run(const struct ht_stress *stress, size_t addresses)
{
    ht_room_addresses = addresses;
    ht_room_threads = stress->threads;
    ht_run_threads(stress, stress->threads, ht_room_work);
}

#endif
