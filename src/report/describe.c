// describe.c -- what an address is.
#include "base/atomic.h"
#include "cache/nested.h"
#include "cache/seen.h"
#include "hakmem/hakmem.h"
#include "meta/map.h"
#include "owner/owner.h"
#include "report/visit.h"
#include "secure/guard.h"
#include "secure/harden.h"
#include "slab/slab.h"

static void describe_guarded(const struct hak_guard_slot *slot, struct hak_block_info *info)
{
    *info = (struct hak_block_info){.kind = HAK_BLOCK_SMALL,
                                    .start = hak_load_relaxed(&slot->block),
                                    .bytes = hak_load_relaxed(&slot->bytes),
                                    .is_free = hak_load_relaxed(&slot->state) != HAK_GUARD_LIVE};
}

static void describe_large(const struct hak_run *run, struct hak_block_info *info)
{
    info->kind = HAK_BLOCK_LARGE;
    info->start = run->base;
    info->bytes = run->bytes;
    info->is_free = !hak_map_is_large(hak_map_entry(run->base));
}

static void describe_small_locked(const struct hak_run *slab,
                                  const void *address,
                                  struct hak_block_info *info)
{
    const struct hak_class *class_info = &hak_classes[slab->size_class];
    const uint32_t index =
        hak_size_class_index(class_info, (size_t)((const char *)address - slab->base));
    info->kind = HAK_BLOCK_SMALL;
    info->start = slab->base + (size_t)index * class_info->bytes;
    info->is_free = index >= hak_load_relaxed(&slab->fresh) || !hak_slab_is_out(slab, info->start);
    if (!info->is_free && hak_harden_has_tags()) {
        info->start = hak_tag_seen(info->start);
    }
    info->bytes =
        info->is_free ? class_info->bytes : hak_seen_usable(info->start, class_info->bytes);
}

// A visitor's thread holds all locks already. Unproven, because the locks are not seen to be taken.
static struct hak_owner *owner_lock(const void *address)
{
    return hak_visit_is_own() ? hak_owner_of(address) : hak_owner_lock(address);
}

static void owner_drop(struct hak_owner *owner) HAK_RELEASES(&owner->lock) HAK_UNPROVEN
{
    if (!hak_visit_is_own()) {
        hak_lock_drop(&owner->lock);
    }
}

// If the address is not in a live block, its slab may end and become something else meanwhile. So an
// answer counts only if the run was the same before and after.
bool hak_describe(const void *address, struct hak_block_info *info)
{
    if (hak_guard_owns(address)) {
        describe_guarded(hak_guard_nearest(address), info);
        return true;
    }
    address = hak_tag_off(address);
    struct hak_run *run = hak_run_of(address);
    *info = (struct hak_block_info){.kind = HAK_BLOCK_FOREIGN};
    while (run != NULL && (hak_nested_may_wait() || hak_visit_is_own())) {
        struct hak_owner *owner = NULL;
        const bool is_small = run->state == HAK_RUN_SLAB;
        if (!is_small) {
            describe_large(run, info);
        } else if ((owner = owner_lock(address)) != NULL) {
            hak_lock_is_held(&owner->lock);
            describe_small_locked(hak_run_of(address), address, info);
            owner_drop(owner);
        }
        struct hak_run *now = hak_run_of(address);
        if (now == run && (run->state == HAK_RUN_SLAB) == is_small && (owner != NULL) == is_small) {
            return true;
        }
        run = now;
    }
    *info = (struct hak_block_info){.kind = HAK_BLOCK_FOREIGN};
    return false;
}
