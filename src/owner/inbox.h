// inbox.h -- an owner's inbox: remote frees on their way into their slabs.
//
// Only the holder of the owner's lock may touch a slab. So a thread gathers the blocks of another owner in a parcel
// (cache/remote.h), and when the parcel is full, hands it over with one atomic instruction. If there is no memory for a
// parcel, blocks are linked through themselves: they are loose.
#pragma once

#include "owner/owner.h"
#include "owner/place.h"

// Blocks freed for another owner. One thread fills the parcel, then hands it over as a whole.
enum { HAK_PARCEL_BLOCKS = 125 }; // 1 KiB with the header
struct hak_parcel {
    struct hak_parcel *next;
    _Atomic(uint32_t) count;             // the thread that fills it; a sweep reads it
    uint32_t bytes;                      // the thread that fills it
    hak_place blocks[HAK_PARCEL_BLOCKS]; // NULL where a sweep took a block out
};

struct hak_loose {
    struct hak_loose *next;
};

// Push a parcel onto the owner's inbox and have the owner watched. Returns the bytes in parcels that wait there then. Any thread.
HAK_INTERNAL size_t hak_inbox_push(struct hak_owner *owner, struct hak_parcel *parcel);
// Push a block when there is no memory for a parcel. The link goes into the freed block itself, which we otherwise avoid. Cannot
// fail. Any thread.
HAK_INTERNAL void hak_inbox_push_loose(void *block);
// The next parcel of `owner` to open, or NULL; all loose blocks, or NULL.
HAK_INTERNAL struct hak_parcel *hak_inbox_next(struct hak_owner *owner) HAK_REQUIRES(&owner->lock);
HAK_INTERNAL struct hak_loose *hak_inbox_next_loose(struct hak_owner *owner)
    HAK_REQUIRES(&owner->lock);
// Is the inbox empty?
HAK_INTERNAL bool hak_inbox_is_empty(const struct hak_owner *owner) HAK_REQUIRES(&owner->lock);
// Put a block straight into its slab, without the inbox: waits for the lock of its owner. The caller holds no owner's lock.
HAK_INTERNAL void hak_inbox_put(void *block);
