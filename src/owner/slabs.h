// slabs.h -- an owner's slabs: their lists, and the blocks that come back.
//
// Threads   the holder of the owner's lock, unless a function says otherwise.
#pragma once

#include "owner/owner.h"
#include "owner/place.h"

// Put `block` back into its slab, which `owner` owns. True if that ended the slab.
HAK_INTERNAL bool hak_slabs_put(struct hak_owner *owner, struct hak_run *slab, void *block);
// Put at most `count` blocks back into `slab`: the one in places[0], which lies in it, and those after
// it, up to the first that lies elsewhere. Returns how many.
HAK_INTERNAL unsigned hak_slabs_put_row(struct hak_owner *owner,
                                        struct hak_run *slab,
                                        hak_place *places,
                                        unsigned count);
// The class's slabs with blocks to give: those whose free pages may be resident, and those that were swept.
HAK_INTERNAL struct hak_list *hak_slabs_of(struct hak_owner *owner, unsigned size_class);
HAK_INTERNAL struct hak_list *hak_slabs_swept(struct hak_owner *owner, unsigned size_class);
// The first slab in these two lists; NULL if both are empty.
HAK_INTERNAL struct hak_run *hak_slabs_first(struct hak_owner *owner, unsigned size_class);
// Slabs are made, moved and ended here, so that they are counted. hak_slabs_move: the caller holds both owners' locks.
HAK_INTERNAL struct hak_run *hak_slabs_make(struct hak_owner *owner, unsigned size_class);
HAK_INTERNAL void hak_slabs_move(struct hak_run *slab,
                                 struct hak_owner *from,
                                 struct hak_owner *to);
// Put a slab that is in no list at the end of the list in which it belongs. If its purge was put off at the last owner,
// it counts as not swept.
HAK_INTERNAL void hak_slabs_list(struct hak_owner *owner, struct hak_run *slab);
// Set when the process ends, in a thread that must not wait for a lock: no slab ends any more, no empty parcel goes to the
// pool, and no remote free is sent on.
HAK_INTERNAL extern _Atomic(bool) hak_slabs_end_nothing;
// Retire a slab of `owner` that is in no list.
HAK_INTERNAL void hak_slabs_end(struct hak_owner *owner, struct hak_run *slab);
// Retire a listed slab whose blocks have all come back, even the last one of its class: magazines absorb the swings, and its
// pages stay resident in the arena, for any class. True if it was retired: a hardened slab may stay.
HAK_INTERNAL bool hak_slabs_retire(struct hak_owner *owner, struct hak_run *slab);
// Call after `count` blocks of the class were taken from the owner's slabs.
HAK_INTERNAL void hak_slabs_note_taken(struct hak_owner *owner,
                                       unsigned size_class,
                                       unsigned count);
// Note whether the owner has a spare slab: more than one of the class with blocks to give; the shared owner: any. The second
// function returns what was noted; any thread may call it, as a hint.
HAK_INTERNAL void hak_slabs_note_spare(struct hak_owner *owner, unsigned size_class);
HAK_INTERNAL bool hak_slabs_has_spare(const struct hak_owner *owner, unsigned size_class);
// May another thread's owner have a spare slab? A hint.
HAK_INTERNAL bool hak_slabs_are_spare(const struct hak_owner *owner, unsigned size_class);
// For the sweeper: stop counting the owner if it has no spare slab; and: is its count right already?
HAK_INTERNAL void hak_slabs_count_spare(struct hak_owner *owner, unsigned size_class);
HAK_INTERNAL bool hak_slabs_are_counted(const struct hak_owner *owner, unsigned size_class);
