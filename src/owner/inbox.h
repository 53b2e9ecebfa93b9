// inbox.h -- blocks that other threads have freed, on their way into their slabs.
//
//
// Only who holds the lock of a slab's owner may touch the slab. So a thread gathers the blocks of another owner in a
// parcel (cache/remote.h), and hands it over with one atomic instruction when it is full. Blocks for which there was no memory for a
// parcel are linked through themselves: they are loose.
#pragma once

#include "owner/owner.h"
#include "owner/place.h"

// Blocks freed for another owner. Filled by one thread, then handed over whole.
enum { HAK_PARCEL_BLOCKS = 61 }; // with its header 512 bytes
struct hak_parcel {
    struct hak_parcel *next;
    _Atomic(uint32_t) count;             // thread that fills it; a sweep reads it
    uint32_t bytes;                      // thread that fills it
    hak_place blocks[HAK_PARCEL_BLOCKS]; // NULL where a sweep took one out
};

struct hak_loose {
    struct hak_loose *next;
};

// Push a parcel onto the owner's inbox, and note that it has one. Returns the bytes in parcels that wait there with it. Any thread.
HAK_INTERNAL size_t hak_inbox_push(struct hak_owner *owner, struct hak_parcel *parcel);
// Without memory for a parcel: the link goes into the freed block itself, which is the one thing that we do not do otherwise, and
// cannot fail. Any thread.
HAK_INTERNAL void hak_inbox_push_loose(void *block);
// The next parcel of `owner` to open, or NULL; and all loose blocks, or NULL.
HAK_INTERNAL struct hak_parcel *hak_inbox_next(struct hak_owner *owner) HAK_REQUIRES(&owner->lock);
HAK_INTERNAL struct hak_loose *hak_inbox_next_loose(struct hak_owner *owner)
    HAK_REQUIRES(&owner->lock);
// Does nothing wait there?
HAK_INTERNAL bool hak_inbox_is_empty(const struct hak_owner *owner) HAK_REQUIRES(&owner->lock);
// Past the inbox: into its slab, whose owner's lock is waited for. No owner locked.
HAK_INTERNAL void hak_inbox_put(void *block);
