// outside.c -- see outside.h.
#include "slab/outside.h"

#include <string.h>

#include "base/check.h"
#include "meta/pool.h"

enum { ROOM_LEAST = 64 };

struct hak_lock hak_outside_lock;

static struct hak_super **supers;
static size_t count;
static size_t room; // of `supers`, in entries

bool hak_outside_reserve_locked(void) HAK_REQUIRES(&hak_arena.lock)
{
    if (count < room) {
        return true;
    }
    const size_t more = room == 0 ? ROOM_LEAST : 2 * room;
    struct hak_super **longer = hak_pool_take(more * sizeof *longer);
    if (longer == NULL) {
        return false;
    }
    struct hak_super **shorter = supers;
    hak_lock_take(&hak_outside_lock);
    if (room != 0) {
        memcpy(longer, shorter, count * sizeof *longer);
    }
    supers = longer;
    hak_lock_drop(&hak_outside_lock);
    if (room != 0) {
        hak_pool_give(shorter, room * sizeof *shorter);
    }
    room = more;
    return true;
}

// The number of mappings that begin at or before `p`.
static size_t count_up_to(const char *p)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        HAK_LOOK();
        if (supers[middle]->base <= p) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void hak_outside_add_locked(struct hak_super *super) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t place = count_up_to(super->base);
    hak_lock_take(&hak_outside_lock);
    memmove(&supers[place + 1], &supers[place], (count - place) * sizeof *supers);
    supers[place] = super;
    count++;
    hak_lock_drop(&hak_outside_lock);
}

void hak_outside_remove_locked(const struct hak_super *super) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t behind = count_up_to(super->base);
    hak_lock_take(&hak_outside_lock);
    memmove(&supers[behind - 1], &supers[behind], (count - behind) * sizeof *supers);
    count--;
    hak_lock_drop(&hak_outside_lock);
}

struct hak_super *hak_outside_find(const void *p)
{
    struct hak_super *found = NULL;
    hak_lock_take(&hak_outside_lock);
    const size_t behind = count_up_to(p);
    if (behind > 0 &&
        (uintptr_t)p - (uintptr_t)supers[behind - 1]->base < supers[behind - 1]->mapped_bytes) {
        found = supers[behind - 1];
    }
    hak_lock_drop(&hak_outside_lock);
    return found;
}
