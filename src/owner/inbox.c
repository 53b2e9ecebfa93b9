// inbox.c -- see inbox.h.
#include "owner/inbox.h"

#include "owner/slabs.h"
#include "owner/watch.h"

size_t hak_inbox_push(struct hak_owner *owner, struct hak_parcel *parcel)
{
    // Added before the parcel can be opened, so that the sum never falls below zero.
    const size_t bytes = parcel->bytes;
    const size_t waiting = hak_add_relaxed(&owner->inbox_bytes, bytes) + bytes;
    struct hak_parcel *head = hak_load_relaxed(&owner->inbox);
    do {
        parcel->next = head;
    } while (!hak_cas_release(&owner->inbox, &head, parcel)); // pairs with: hak_inbox_next
    hak_fence_compiler(); // see unwatch_judge
    hak_watch_note(owner);
    return waiting;
}

void hak_inbox_push_loose(void *block)
{
    struct hak_owner *owner = hak_owner_or_end(block);
    struct hak_loose *loose = block;
    struct hak_loose *head = hak_load_relaxed(&owner->loose);
    do {
        loose->next = head;
    } while (!hak_cas_release(&owner->loose, &head, loose)); // pairs with: hak_inbox_next_loose
    hak_fence_compiler(); // see unwatch_judge
    hak_watch_note(owner);
}

// Step take of parcels.pml.
struct hak_parcel *hak_inbox_next(struct hak_owner *owner) HAK_REQUIRES(&owner->lock)
{
    if (owner->pending == NULL && hak_load_relaxed(&owner->inbox) != NULL) {
        owner->pending = hak_swap_acquire(&owner->inbox, NULL); // pairs with: hak_inbox_push
    }
    struct hak_parcel *parcel = owner->pending;
    if (parcel != NULL) {
        owner->pending = parcel->next;
        hak_sub_relaxed(&owner->inbox_bytes, parcel->bytes);
    }
    return parcel;
}

struct hak_loose *hak_inbox_next_loose(struct hak_owner *owner) HAK_REQUIRES(&owner->lock)
{
    if (HAK_LIKELY(hak_load_relaxed(&owner->loose) == NULL)) {
        return NULL;
    }
    return hak_swap_acquire(&owner->loose, NULL); // pairs with: hak_inbox_push_loose
}

bool hak_inbox_is_empty(const struct hak_owner *owner) HAK_REQUIRES(&owner->lock)
{
    return owner->pending == NULL && hak_load_relaxed(&owner->inbox) == NULL &&
           hak_load_relaxed(&owner->loose) == NULL;
}

void hak_inbox_put(void *block)
{
    struct hak_owner *owner = hak_owner_lock(block);
    if (HAK_UNLIKELY(owner == NULL)) {
        hak_slab_die_not_live(block);
    }
    hak_lock_is_held(&owner->lock);
    hak_slabs_put(owner, hak_run_of(block), block);
    hak_lock_drop(&owner->lock);
}
