// owner.c -- see owner.h.
#include "owner/owner.h"

// After a double free, the slab may have ended with the first free, and its memory may be something
// else by now, or become so at any moment: so every lookup below may find nothing.
struct hak_owner *hak_owner_of(const void *p)
{
    const struct hak_run *slab = hak_map_is_small(hak_map_entry(p)) ? hak_run_of(p) : NULL;
    if (slab == NULL || slab->state != HAK_RUN_SLAB) {
        return NULL;
    }
    return hak_load_acquire(&slab->owner); // pairs with: hak_slab_move
}

struct hak_owner *hak_owner_or_end(const void *block)
{
    struct hak_owner *owner = hak_owner_of(block);
    if (HAK_UNLIKELY(owner == NULL)) {
        hak_slab_die_not_live(block);
    }
    return owner;
}

bool hak_owner_is(const struct hak_owner *owner, const void *p) HAK_REQUIRES(&owner->lock)
{
    return HAK_MAP_TAG(hak_map_entry(p)) == owner->tag;
}

// Step lock_owner of owners.pml. Unproven: the result says which lock; callers use hak_lock_is_held.
struct hak_owner *hak_owner_lock(const void *p) HAK_UNPROVEN
{
    struct hak_owner *owner;
    while ((owner = hak_owner_of(p)) != NULL) {
        hak_lock_take(&owner->lock);
        if (hak_owner_is(owner, p)) {
            return owner;
        }
        hak_lock_drop(&owner->lock); // it changed hands meanwhile, or ended
    }
    return NULL;
}
