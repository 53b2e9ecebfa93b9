// unreleased.h -- addresses that the kernel has not taken back when they were released.
//
// Owns      hak_unreleased: the list of them.
// Threads   the holder of the arena's lock.
// Fails     never; see hak_unreleased_drop.
//
// A hole in a mapping makes two of one, which the kernel refuses to a process that has as many as it may have
// (vm.max_map_count). That passes. So what was refused stays ours and its slots stay in use; its pages go at once. When
// the kernel takes back something else, the oldest is offered again, and who asks for as many bytes gets it.
#pragma once

#include "base/compiler.h"
#include "base/list.h"

struct hak_unreleased_range {
    struct hak_list link;
    char *start;
    size_t bytes;
    bool has_slots; // of the map, which end with it
    bool is_clean;  // plain memory that reads as zero
    void (*ended)(struct hak_unreleased_range *range);
};

struct hak_unreleased {
    struct hak_list ranges; // the next one to be tried first
    size_t count;
};
HAK_INTERNAL extern struct hak_unreleased hak_unreleased;

// Give addresses back, now or later. What holds them if need be comes from the pool, or, when that has none, from a small
// reserve; only beyond that the addresses are lost. `is_clean` as above: not where maybe nothing is mapped any more, which serves
// nobody. (An emulator says that it has given back the pages of such addresses, so that cannot tell.)
HAK_INTERNAL void hak_unreleased_drop(char *start, size_t bytes, bool has_slots, bool is_clean);
// The caller has given some back, or the kernel has refused (`is_gone`). Its own range holds them if need be, until `ended` is
// called for it; its `ended`, `has_slots` and `is_clean` (of plain memory) are set.
HAK_INTERNAL void hak_unreleased_note(char *start,
                                      size_t bytes,
                                      struct hak_unreleased_range *range,
                                      bool is_gone);
// Offer so many again. Returns the bytes that went.
HAK_INTERNAL size_t hak_unreleased_retry(size_t tries);
// A range of just as many bytes, with its slots, which is in use from now on; or NULL.
HAK_INTERNAL char *hak_unreleased_take(size_t bytes);
