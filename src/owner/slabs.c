// slabs.c -- see slabs.h.
#include "owner/slabs.h"

#include "owner/watch.h"

static struct hak_run *slab_item(struct hak_list *link)
{
    return HAK_LIST_ITEM(link, struct hak_run, link);
}

struct hak_list *hak_slabs_of(struct hak_owner *owner, unsigned size_class)
{
    struct hak_owner_class *of_class = &owner->classes[size_class];
    if (HAK_UNLIKELY(of_class->slabs.next == NULL)) {
        hak_list_start(&of_class->slabs);
        hak_list_start(&of_class->swept);
        hak_set_bit(owner->listed, size_class, true);
    }
    return &of_class->slabs;
}

struct hak_list *hak_slabs_swept(struct hak_owner *owner, unsigned size_class)
{
    hak_slabs_of(owner, size_class); // starts both
    return &owner->classes[size_class].swept;
}

struct hak_run *hak_slabs_first(struct hak_owner *owner, unsigned size_class)
{
    struct hak_list *slabs = hak_slabs_of(owner, size_class);
    struct hak_list *list = hak_list_is_empty(slabs) ? hak_slabs_swept(owner, size_class) : slabs;
    return hak_list_is_empty(list) ? NULL : slab_item(list->next);
}

void hak_slabs_list(struct hak_owner *owner, struct hak_run *slab)
{
    struct hak_list *slabs = hak_slabs_of(owner, slab->size_class);
    slab->is_swept = slab->is_swept && !hak_slab_wants_purge(slab);
    struct hak_list *list = slab->is_swept ? hak_slabs_swept(owner, slab->size_class) : slabs;
    hak_list_append(hak_slab_has_blocks(slab) ? list : &owner->full, &slab->link);
}

// By class: the number of threads' owners that have more than one slab with blocks to give, or had at some time since
// the sweeper's last visit. So a heap whose threads all take and give back writes it once per tick, not once per slab.
static _Atomic(uint32_t) spares[HAK_SMALL_CLASSES];

bool hak_slabs_are_spare(const struct hak_owner *owner, unsigned size_class)
{
    return hak_load_relaxed(&spares[size_class]) > hak_has_bit(owner->counted, size_class);
}

static void count_spare(struct hak_owner *owner, unsigned size_class, bool counts)
{
    // Only threads' owners are asked for spare slabs.
    if (hak_has_bit(owner->counted, size_class) != counts && owner->has_thread) {
        hak_set_bit(owner->counted, size_class, counts);
        hak_add_relaxed(&spares[size_class], counts ? 1U : 0U - 1U);
    }
}

// Has it more than the slab that its thread or heap takes from next?
static bool has_to_spare(struct hak_owner *owner, unsigned size_class)
{
    const struct hak_list *slabs = hak_slabs_of(owner, size_class);
    const struct hak_list *swept = hak_slabs_swept(owner, size_class);
    const bool has_unswept = !hak_list_is_empty(slabs);
    const bool has_swept = !hak_list_is_empty(swept);
    if (owner->spares_all) {
        return has_unswept || has_swept;
    }
    return slabs->next->next != slabs || swept->next->next != swept || (has_unswept && has_swept);
}

bool hak_slabs_has_spare(const struct hak_owner *owner, unsigned size_class)
{
    return (hak_load_relaxed(&owner->spare[size_class / 64]) >> (size_class % 64) & 1) != 0;
}

void hak_slabs_note_spare(struct hak_owner *owner, unsigned size_class)
{
    const bool has_some = has_to_spare(owner, size_class);
    if (has_some != hak_slabs_has_spare(owner, size_class)) {
        _Atomic(uint64_t) *word = &owner->spare[size_class / 64];
        hak_store_relaxed(word, hak_load_relaxed(word) ^ UINT64_C(1) << (size_class % 64));
        if (has_some) {
            count_spare(owner, size_class, true);
        }
    }
}

void hak_slabs_count_spare(struct hak_owner *owner, unsigned size_class)
{
    count_spare(owner, size_class, hak_slabs_has_spare(owner, size_class));
}

bool hak_slabs_are_counted(const struct hak_owner *owner, unsigned size_class)
{
    return !owner->has_thread ||
           hak_has_bit(owner->counted, size_class) == hak_slabs_has_spare(owner, size_class);
}

// The slab had no blocks to give, or was swept, and now has blocks.
static void slab_list_again(struct hak_owner *owner, struct hak_run *slab)
{
    // To the end: others have blocks, too, and this one may get more until its turn.
    slab->is_swept = false;
    hak_list_remove(&slab->link);
    hak_list_append(hak_slabs_of(owner, slab->size_class), &slab->link);
    hak_slabs_note_spare(owner, slab->size_class);
    hak_watch_note(owner);
}

struct hak_run *hak_slabs_make(struct hak_owner *owner, unsigned size_class)
{
    struct hak_run *slab = hak_slab_make(owner, owner->tag, size_class);
    if (slab != NULL) {
        owner->slab_count++;
        hak_count(&owner->classes[size_class].made_slabs, 1);
    }
    return slab;
}

void hak_slabs_move(struct hak_run *slab, struct hak_owner *from, struct hak_owner *to)
{
    from->slab_count--;
    to->slab_count++;
    hak_slab_move(slab, to, to->tag);
}

void hak_slabs_end(struct hak_owner *owner, struct hak_run *slab)
{
    owner->slab_count--;
    hak_count(&owner->classes[slab->size_class].ended_slabs, 1);
    hak_slab_end(slab); // from here on it may have another user
}

static void lower(size_t *bytes, size_t less)
{
    *bytes -= less < *bytes ? less : *bytes;
}

void hak_slabs_note_taken(struct hak_owner *owner, unsigned size_class, unsigned count)
{
    const size_t bytes = count * (size_t)hak_classes[size_class].bytes;
    lower(&owner->returned_bytes, bytes);
    lower(&owner->scattered_bytes, bytes);
}

_Atomic(bool) hak_slabs_end_nothing;

// When a hardened slab ends, all its blocks are checked: so a thread keeps the only slab of a class.
static bool slab_stays(struct hak_owner *owner, const struct hak_run *slab)
{
    const struct hak_list *slabs = hak_slabs_of(owner, slab->size_class);
    const struct hak_list *swept = hak_slabs_swept(owner, slab->size_class);
    return slab->is_hardened && slabs->next == &slab->link && slab->link.next == slabs &&
           hak_list_is_empty(swept) && hak_load_relaxed(&owner->state) == HAK_OWNER_LIVE;
}

bool hak_slabs_retire(struct hak_owner *owner, struct hak_run *slab)
{
    if (slab_stays(owner, slab) || HAK_UNLIKELY(hak_load_relaxed(&hak_slabs_end_nothing))) {
        return false;
    }
    hak_list_remove(&slab->link);
    hak_slabs_note_spare(owner, slab->size_class);
    lower(&owner->scattered_bytes, slab->units * HAK_UNIT_BYTES);
    hak_slabs_end(owner, slab);
    return true;
}

// Blocks came back into `slab`. True if that ended it.
HAK_INLINE bool slab_note_put(struct hak_owner *owner, struct hak_run *slab, bool was_full)
{
    if (HAK_UNLIKELY(was_full || slab->is_swept)) {
        slab_list_again(owner, slab);
    }
    return HAK_UNLIKELY(hak_slab_is_idle(slab)) && hak_slabs_retire(owner, slab);
}

bool hak_slabs_put(struct hak_owner *owner, struct hak_run *slab, void *block)
{
    const bool was_full = !hak_slab_has_blocks(slab);
    hak_slab_put(slab, block);
    owner->scattered_bytes += hak_classes[slab->size_class].bytes;
    return slab_note_put(owner, slab, was_full);
}

unsigned hak_slabs_put_row(struct hak_owner *owner,
                           struct hak_run *slab,
                           hak_place *places,
                           unsigned count)
{
    const bool was_full = !hak_slab_has_blocks(slab);
    const unsigned done = hak_slab_put_row(slab, places, count);
    owner->scattered_bytes += done * (size_t)hak_classes[slab->size_class].bytes;
    slab_note_put(owner, slab, was_full);
    return done;
}
