// watch.c -- see watch.h.
#include "owner/watch.h"

struct hak_watch hak_watch;

// Step note of watch.pml.
void hak_watch_add(struct hak_owner *owner)
{
    bool before = false;
    if (!hak_cas_acquire(&owner->is_watched, &before, true)) { // pairs with: unwatch
        return;                                                // another thread is adding it
    }
    hak_add_relaxed(&hak_watch.count, 1);
    struct hak_owner *head = hak_load_relaxed(&hak_watch.noted);
    do {
        owner->watch_next = head;
    } while (!hak_cas_release(&hak_watch.noted, &head, owner)); // pairs with: hak_watch_all
}

void hak_watch_put(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock)
{
    owner->watch_next = hak_watch.watched;
    hak_watch.watched = owner;
}

void hak_watch_put_off(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock)
{
    owner->watch_next = hak_watch.put_off;
    hak_watch.put_off = owner;
}

static void keep_all(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock)
{
    while (owner != NULL) {
        struct hak_owner *next = owner->watch_next;
        hak_watch_put(owner);
        owner = next;
    }
}

struct hak_owner *hak_watch_all(void) HAK_REQUIRES(&hak_watch.lock)
{
    keep_all(hak_watch.unvisited);
    hak_watch.unvisited = NULL;
    keep_all(hak_watch.put_off);
    hak_watch.put_off = NULL;
    keep_all(hak_swap_acquire(&hak_watch.noted, NULL)); // pairs with: hak_watch_add
    return hak_watch.watched;
}

void hak_watch_none_locked(void) HAK_REQUIRES(&hak_watch.lock)
{
    hak_watch.watched = NULL;
    hak_watch.unvisited = NULL;
    hak_watch.put_off = NULL;
    hak_watch.strips = 0;
    hak_watch.first_strips = 0;
    hak_store_relaxed(&hak_watch.noted, NULL);
    hak_store_relaxed(&hak_watch.count, 0);
}

void hak_watch_again(struct hak_owner *owner) HAK_REQUIRES(&hak_watch.lock)
{
    hak_store_relaxed(&owner->is_watched, false);
    hak_watch_note(owner);
}
