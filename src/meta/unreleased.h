// unreleased.h -- addresses that the kernel refused to take back.
//
// Owns      hak_unreleased: the list of them.
// Threads   the holder of the arena's lock.
// Fails     never; see hak_unreleased_drop.
//
// A hole splits a mapping in two. The kernel refuses that to a process that has as many mappings as it may have
// (vm.max_map_count). The state passes. So the addresses stay ours and their slots stay in use; their pages are purged at once.
// When the kernel takes back other addresses, the oldest are offered again, and a request for exactly as many bytes gets them.
#pragma once

#include "base/compiler.h"
#include "base/list.h"

struct hak_unreleased_range {
    struct hak_list link;
    char *start;
    size_t bytes;
    bool has_slots; // its map slots are in use until it ends
    bool is_clean;  // mapped memory that reads as zero
    void (*ended)(struct hak_unreleased_range *range);
};

struct hak_unreleased {
    struct hak_list ranges; // the first one is tried next
    size_t count;
};
HAK_INTERNAL extern struct hak_unreleased hak_unreleased;

// Give addresses back, now or later. If that has to wait, the pool provides the range, or a small reserve if the pool has no
// memory; without either, the addresses are lost. `is_clean` as above: false if maybe nothing is mapped there any more, as nobody
// could use that. (An emulator claims to have purged such addresses, so a purge cannot tell.)
HAK_INTERNAL void hak_unreleased_drop(char *start, size_t bytes, bool has_slots, bool is_clean);
// Note the result of the caller's own unmap: done (`is_gone`) or refused. `range` is the caller's; it holds the addresses if
// need be, until its `ended` is called. The caller has set `ended`, `has_slots` and `is_clean` (plain memory).
HAK_INTERNAL void hak_unreleased_note(char *start,
                                      size_t bytes,
                                      struct hak_unreleased_range *range,
                                      bool is_gone);
// Try to unmap up to `tries` ranges again. Returns the bytes unmapped.
HAK_INTERNAL size_t hak_unreleased_retry(size_t tries);
// Take a range of exactly `bytes`, with its slots, to use it again; or NULL.
HAK_INTERNAL char *hak_unreleased_take(size_t bytes);
