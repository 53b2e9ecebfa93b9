// addresses.c -- see addresses.h.
#include "meta/addresses.h"

#include "base/bits.h"
#include "meta/map.h"
#include "meta/unreleased.h"
#include "os/os.h"

// Map at `place`, whose slots are marked used already, without `lock` if it is not NULL. Unproven: which lock it is.
static bool map_at(char *place, size_t bytes, struct hak_lock *lock, bool *is_taken) HAK_UNPROVEN
{
    if (lock != NULL) {
        hak_lock_drop(lock);
    }
    const bool is_done = hak_os_map_at(place, bytes, is_taken) != NULL;
    if (lock != NULL) {
        hak_lock_take(lock);
    }
    return is_done;
}

// Map at free slots of our window, which become used; tries a few places. `*is_refused`: no other place would do.
static char *map_in_window(size_t bytes, struct hak_lock *lock, bool *is_refused)
{
    const uint64_t count = hak_map_slots_of(bytes);
    bool is_taken = true;
    *is_refused = false;
    // Another mapping may lie in our window: step over it, but not for ever.
    for (unsigned attempt = 0; attempt < 8 && is_taken; attempt++) {
        const uint64_t before = hak_map.next_slot;
        const uint64_t slot = hak_map_find_row(count);
        if (slot == hak_map_slot_count()) {
            return NULL;
        }
        char *place = hak_map.window + (slot << HAK_SUPER_LOG2);
        const uint64_t next = (slot + count) & hak_map.super_mask;
        hak_map_use(place, bytes);
        hak_map.next_slot = next;
        if (map_at(place, bytes, lock, &is_taken)) {
            hak_map.has_window = true;
            return place;
        }
        hak_map_forget(place, bytes);
        if (!is_taken && hak_map.next_slot == next) {
            hak_map.next_slot = before;
        }
    }
    // The kernel has mapped in the window before: so it lacks memory, not addresses.
    *is_refused = !is_taken && hak_map.has_window;
    return NULL;
}

// Map where the kernel likes, with room to align, and cut off the rest. The slots become used.
static char *map_anywhere(size_t bytes)
{
    char *start = hak_os_map(bytes + HAK_SUPER_BYTES);
    if (start == NULL) {
        return NULL;
    }
    char *aligned = (char *)hak_align_up((uintptr_t)start, HAK_SUPER_BYTES);
    size_t before = (size_t)(aligned - start);
    size_t after = HAK_SUPER_BYTES - before;
    hak_unreleased_drop(start, before, false, true);
    hak_unreleased_drop(aligned + bytes, after, false, true);
    if (!hak_map_try_use(aligned, bytes)) {
        hak_unreleased_drop(aligned, bytes, false, true);
        return NULL;
    }
    return aligned;
}

// Below the window's lowest place, and above the range that the kernel fills top-down.
#define OUTSIDE_LOW  (UINT64_C(1) << (40 - HAK_SUPER_LOG2))
#define OUTSIDE_HIGH (UINT64_C(126) << (40 - HAK_SUPER_LOG2))
enum { OUTSIDE_TRIES = 64 };

// The next address outside the window, in superslabs, where `count` superslabs fit and whose own slot is free. 0: none.
static uint64_t outside_next(uint64_t count)
{
    uint64_t at = hak_map.outside_at;
    for (unsigned turns = 0; turns < 2 + OUTSIDE_TRIES; turns++) {
        const uint64_t window = (uintptr_t)hak_map.window >> HAK_SUPER_LOG2;
        const uint64_t slot = at & hak_map.super_mask;
        const uint64_t free_slot = hak_map_find_slot(slot);
        at += free_slot - slot; // behind the last slot: the first of the next row
        if (at < window + hak_map_slot_count() && at + count > window) {
            at = window + hak_map_slot_count();
        } else if (count > OUTSIDE_HIGH || at > OUTSIDE_HIGH - count) {
            at = OUTSIDE_LOW;
        } else if (free_slot < hak_map_slot_count()) {
            return at;
        }
    }
    return 0;
}

// A mapping outside the window uses one slot only, that of its start.
static char *map_outside(size_t bytes)
{
    const uint64_t count = hak_map_slots_of(bytes);
    bool is_taken = true;
    for (unsigned attempt = 0; attempt < OUTSIDE_TRIES && is_taken; attempt++) {
        const uint64_t at = outside_next(count);
        if (at == 0) {
            return NULL;
        }
        char *start = hak_os_map_at((char *)(uintptr_t)(at << HAK_SUPER_LOG2), bytes, &is_taken);
        hak_map.outside_at = start != NULL || is_taken ? at + count : hak_map.outside_at;
        if (start != NULL) {
            hak_map_use(start, bytes);
            return start;
        }
    }
    return NULL;
}

// Longer mappings get what is left of an eighth of the window, if it has a long enough row; the rest is for superslabs. Outside,
// each uses only the slot of its start: so while seven of eight slots are free, seven eighths of all addresses are usable. Not if
// a sanitizer has its shadow memory there.
static bool is_for_outside(size_t bytes)
{
    const uint64_t count = hak_map_slots_of(bytes);
    return count > 1 && (uintptr_t)hak_map.window != HAK_MAP_WINDOW_OF_SANITIZERS &&
           (hak_map.used_slots + count > hak_map_slot_count() / 8 ||
            hak_map_find_row(count) == hak_map_slot_count());
}

// Map new addresses, whose slots become used.
static char *map_fresh(size_t bytes, struct hak_lock *lock)
{
    bool is_refused = false;
    char *start =
        is_for_outside(bytes) ? map_outside(bytes) : map_in_window(bytes, lock, &is_refused);
    return start != NULL || is_refused ? start : map_anywhere(bytes);
}

char *hak_addresses_take(size_t bytes, struct hak_lock *lock)
{
    char *start = hak_unreleased_take(bytes);
    if (start == NULL) {
        start = map_fresh(bytes, lock);
    }
    if (start == NULL) {
        return NULL;
    }
    // Also for unreleased addresses: an earlier call may have dropped them because this failed.
    if (!hak_map_commit(start, bytes)) {
        hak_addresses_drop(start, bytes);
        return NULL;
    }
    if (hak_map_slot(start) == UINT64_MAX) {
        hak_store_relaxed(&hak_map.covered_units, 0);
    }
    return start;
}

// Shorter mappings may as well move: they need two places for a moment only. Free addresses count towards no limit.
enum { LONG_SLOTS = 16, ROOM_TIMES = 3 };

void hak_addresses_leave_room(const char *start, size_t bytes)
{
    const uint64_t slot = hak_map_slot(start);
    const uint64_t count = hak_map_slots_of(bytes);
    const uint64_t room = ROOM_TIMES * count;
    if (slot != UINT64_MAX && count >= LONG_SLOTS && hak_map.next_slot == slot + count &&
        hak_map.next_slot + room < hak_map_slot_count()) {
        hak_map.next_slot += room;
    }
}

bool hak_addresses_give(char *start, size_t bytes)
{
    if (!hak_os_unmap(start, bytes)) {
        return false;
    }
    hak_map_forget(start, bytes);
    hak_unreleased_retry(1);
    return true;
}

void hak_addresses_drop(char *start, size_t bytes)
{
    hak_unreleased_drop(start, bytes, true, true);
}
