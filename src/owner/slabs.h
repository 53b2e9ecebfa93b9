// slabs.h -- an owner's slabs: lists of them, and blocks that come back. With the owner's lock.
//
// Threads   any that holds the lock.
#pragma once

#include "owner/owner.h"
#include "owner/place.h"

// Put `block`, of a slab of `owner`, back into its slab. True when the slab has ended with that. Any
// thread with the lock.
HAK_INTERNAL bool hak_slabs_put(struct hak_owner *owner, struct hak_run *slab, void *block);
// Put the block in places[0] back into `slab`, where it lies, and those after it, `count` at most, up to
// the first that lies elsewhere. Returns how many. Any thread with the lock.
HAK_INTERNAL unsigned hak_slabs_put_row(struct hak_owner *owner,
                                        struct hak_run *slab,
                                        hak_place *places,
                                        unsigned count);
// The class's slabs with blocks to give: those whose free pages may be there; and those that were swept.
HAK_INTERNAL struct hak_list *hak_slabs_of(struct hak_owner *owner, unsigned size_class);
HAK_INTERNAL struct hak_list *hak_slabs_swept(struct hak_owner *owner, unsigned size_class);
// The first of both; NULL when there is none.
HAK_INTERNAL struct hak_run *hak_slabs_first(struct hak_owner *owner, unsigned size_class);
// Slabs are made, end and go to another owner here, so that they are counted. `slab_count` of both owners, with both locks.
HAK_INTERNAL struct hak_run *hak_slabs_make(struct hak_owner *owner, unsigned size_class);
HAK_INTERNAL void hak_slabs_move(struct hak_run *slab,
                                 struct hak_owner *from,
                                 struct hak_owner *to);
// Put a slab that is in no list to the end of the one in which it belongs. One whose pages the kernel refused another owner is
// swept again.
HAK_INTERNAL void hak_slabs_list(struct hak_owner *owner, struct hak_run *slab);
// The process ends, and who ends it waits for no lock: no slab ends any more, no empty parcel goes to the pool, and a block of
// another owner is not sent on.
HAK_INTERNAL extern _Atomic(bool) hak_slabs_end_nothing;
// Give a slab of `owner`, which is in no list, back to the arena.
HAK_INTERNAL void hak_slabs_end(struct hak_owner *owner, struct hak_run *slab);
// End a listed slab whose blocks have all come back, also the last one of its class: magazines absorb swings, and its pages stay
// resident in the arena, for any class. True when it has ended: a hardened one may stay. With the lock.
HAK_INTERNAL bool hak_slabs_retire(struct hak_owner *owner, struct hak_run *slab);
// So many blocks of the class were taken from its slabs.
HAK_INTERNAL void hak_slabs_note_taken(struct hak_owner *owner,
                                       unsigned size_class,
                                       unsigned count);
// Note whether the owner has more than one slab of the class with blocks to give; of the shared one, any. With the lock. And had it,
// when that was noted? Any thread, as a hint.
HAK_INTERNAL void hak_slabs_note_spare(struct hak_owner *owner, unsigned size_class);
HAK_INTERNAL bool hak_slabs_has_spare(const struct hak_owner *owner, unsigned size_class);
// May another thread's owner have a slab to spare? A hint; with the lock of `owner`.
HAK_INTERNAL bool hak_slabs_are_spare(const struct hak_owner *owner, unsigned size_class);
// By the sweeper: count the owner no longer if it has no more than one; and is there nothing to do for that? With the lock.
HAK_INTERNAL void hak_slabs_count_spare(struct hak_owner *owner, unsigned size_class);
HAK_INTERNAL bool hak_slabs_are_counted(const struct hak_owner *owner, unsigned size_class);
