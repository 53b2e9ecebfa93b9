// unreleased.c -- see unreleased.h.
#include "meta/unreleased.h"

#include "base/check.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "os/os.h"

enum { RESERVE = 16, RETRIES = 2, LOOKS = 16 };

struct hak_unreleased hak_unreleased;
static struct hak_unreleased_range reserve[RESERVE];

static void range_ended(struct hak_unreleased_range *range)
{
    range->start = NULL;
    if (range < reserve || range >= reserve + RESERVE) {
        hak_pool_give(range, sizeof *range);
    }
}

static struct hak_unreleased_range *range_make(bool has_slots, bool is_clean)
{
    struct hak_unreleased_range *range = hak_pool_take(sizeof *range);
    for (unsigned i = 0; i < RESERVE && range == NULL; i++) {
        range = reserve[i].start == NULL ? &reserve[i] : NULL;
    }
    if (range != NULL) {
        *range = (struct hak_unreleased_range){
            .has_slots = has_slots, .is_clean = is_clean, .ended = range_ended};
    }
    return range;
}

static void remove_range(struct hak_unreleased_range *range)
{
    hak_list_remove(&range->link);
    hak_unreleased.count--;
    range->ended(range);
}

static void hold(char *start, size_t bytes, struct hak_unreleased_range *range)
{
    const bool is_purged = hak_os_purge(start, bytes);
    if (range == NULL) {
        return;
    }
    if (hak_unreleased.ranges.next == NULL) {
        hak_list_start(&hak_unreleased.ranges);
    }
    range->start = start;
    range->bytes = bytes;
    range->is_clean &= is_purged;
    hak_list_append(&hak_unreleased.ranges, &range->link);
    hak_unreleased.count++;
}

// Unmap, and free the slots if there are any. False, and nothing has changed, when the kernel refuses.
static bool unmap(char *start, size_t bytes, bool has_slots)
{
    if (!hak_os_unmap(start, bytes)) {
        return false;
    }
    if (has_slots) {
        hak_map_forget(start, bytes);
    }
    return true;
}

void hak_unreleased_note(char *start,
                         size_t bytes,
                         struct hak_unreleased_range *range,
                         bool is_gone)
{
    if (!is_gone) {
        hold(start, bytes, range);
        return;
    }
    if (range->has_slots) {
        hak_map_forget(start, bytes);
    }
    range->ended(range);
    hak_unreleased_retry(RETRIES);
}

void hak_unreleased_drop(char *start, size_t bytes, bool has_slots, bool is_clean)
{
    if (bytes == 0) {
        return;
    }
    if (!unmap(start, bytes, has_slots)) {
        hold(start, bytes, range_make(has_slots, is_clean));
        return;
    }
    hak_unreleased_retry(RETRIES);
}

size_t hak_unreleased_retry(size_t tries)
{
    size_t gone = 0;
    for (; tries > 0 && hak_unreleased.count > 0; tries--) {
        struct hak_unreleased_range *range =
            HAK_LIST_ITEM(hak_unreleased.ranges.next, struct hak_unreleased_range, link);
        HAK_LOOK();
        if (!unmap(range->start, range->bytes, range->has_slots)) {
            hak_list_remove(&range->link);
            hak_list_append(&hak_unreleased.ranges, &range->link);
            continue;
        }
        gone += range->bytes;
        remove_range(range);
    }
    return gone;
}

char *hak_unreleased_take(size_t bytes)
{
    struct hak_list *link = hak_unreleased.ranges.next;
    for (unsigned looks = 0; looks < LOOKS && looks < hak_unreleased.count;
         looks++, link = link->next) {
        struct hak_unreleased_range *range = HAK_LIST_ITEM(link, struct hak_unreleased_range, link);
        HAK_LOOK();
        if (range->bytes == bytes && range->has_slots && range->is_clean) {
            char *start = range->start;
            remove_range(range);
            return start;
        }
    }
    return NULL;
}
