// guard.c -- see guard.h.
#include "cache/guard.h"

#include "meta/map.h"
#include "os/os.h"
#include "os/stack.h"
#include "slab/arena.h"
#include "slab/harden.h"

struct hak_guard hak_guard;

// Slot i has page 2 i + 1; the even ones are never touched.
static char *page_of(unsigned index)
{
    return hak_load_relaxed(&hak_guard.base) + (2 * (size_t)index + 1) * hak_os_page_bytes();
}

static unsigned slot_count(void)
{
    const size_t pairs = (HAK_SUPER_BYTES / hak_os_page_bytes() - 1) / 2;
    return pairs < HAK_GUARD_SLOTS ? (unsigned)pairs : HAK_GUARD_SLOTS;
}

static bool has_addresses(void)
{
    if (hak_load_relaxed(&hak_guard.base) != NULL) {
        return true;
    }
    hak_lock_take(&hak_arena.lock);
    if (hak_load_relaxed(&hak_guard.base) == NULL) {
        char *base = hak_map_take(HAK_SUPER_BYTES);
        if (base != NULL && !hak_os_guard(base, HAK_SUPER_BYTES)) {
            hak_map_give(base, HAK_SUPER_BYTES);
            base = NULL;
        }
        hak_store_relaxed(&hak_guard.base, base);
    }
    hak_lock_drop(&hak_arena.lock);
    return hak_load_relaxed(&hak_guard.base) != NULL;
}

// Who calls: from the program's call on.
static void note_call(struct hak_guard_call *call, const void *site)
{
    uintptr_t frames[2 * HAK_GUARD_FRAMES];
    const unsigned count = hak_stack_walk(frames, 2 * HAK_GUARD_FRAMES);
    unsigned first = 0;
    while (first < count && frames[first] != (uintptr_t)site) {
        first++;
    }
    call->thread_id = hak_os_thread_id();
    call->frame_count = 1;
    call->frames[0] = (uintptr_t)site;
    for (unsigned i = first + 1; i < count && call->frame_count < HAK_GUARD_FRAMES; i++) {
        call->frames[call->frame_count++] = frames[i];
    }
}

// A slot that is free, taken; in turn, so that the one freed last comes last. NULL: none of the next few.
static struct hak_guard_slot *slot_take(void)
{
    static _Atomic(uint32_t) turn;
    for (unsigned looks = 0; looks < 16; looks++) {
        const unsigned index = hak_add_relaxed(&turn, 1) % slot_count();
        uint32_t state = HAK_GUARD_FREE;
        if (hak_cas_acquire(&hak_guard.slots[index].state, // pairs with: slot_set
                            &state,
                            HAK_GUARD_BUSY)) {
            return &hak_guard.slots[index];
        }
    }
    return NULL;
}

static void slot_set(struct hak_guard_slot *slot, enum hak_guard_state state)
{
    hak_store_release(&slot->state, state); // pairs with: slot_take
}

void *hak_guard_take(struct hak_request request, unsigned size_class)
{
    const size_t page = hak_os_page_bytes();
    const size_t alignment = hak_classes[size_class].bytes & -hak_classes[size_class].bytes;
    if (request.bytes > page || alignment > page || !has_addresses()) {
        return NULL;
    }
    struct hak_guard_slot *slot = slot_take();
    if (slot == NULL) {
        return NULL;
    }
    char *start = page_of((unsigned)(slot - hak_guard.slots));
    if (!hak_os_unguard(start, page)) {
        slot_set(slot, HAK_GUARD_FREE);
        return NULL;
    }
    slot->block = start + ((page - request.bytes) & ~(alignment - 1));
    slot->bytes = request.bytes;
    slot->freed.frame_count = 0;
    note_call(&slot->allocated, request.site);
    slot_set(slot, HAK_GUARD_LIVE);
    return slot->block;
}

struct hak_guard_slot *hak_guard_nearest(const void *p)
{
    const size_t page = hak_os_page_bytes();
    const size_t number = (size_t)((const char *)p - hak_load_relaxed(&hak_guard.base)) / page;
    // Of a page between two slots, the lower half is the overflow of the slot below.
    const bool is_lower_half = ((uintptr_t)p & (page - 1)) < page / 2;
    size_t index = number % 2 == 0 && is_lower_half && number > 0 ? number / 2 - 1 : number / 2;
    index = index < slot_count() ? index : slot_count() - 1;
    return &hak_guard.slots[index];
}

size_t hak_guard_usable(const void *block)
{
    const struct hak_guard_slot *slot = hak_guard_nearest(block);
    const bool is_live = slot->block == block && hak_load_relaxed(&slot->state) == HAK_GUARD_LIVE;
    return is_live ? slot->bytes : 0;
}

static _Noreturn void report_and_die(const char *kind,
                                     const struct hak_guard_slot *slot,
                                     const char *p)
{
    hak_guard_report(kind, slot, p);
    hak_os_abort();
}

static void check_rest(const struct hak_guard_slot *slot, const char *page)
{
    for (const char *c = page; c < slot->block; c++) {
        if (*c != 0) {
            report_and_die("underflow", slot, c);
        }
    }
    for (const char *c = slot->block + slot->bytes; c < page + hak_os_page_bytes(); c++) {
        if (*c != 0) {
            report_and_die("overflow", slot, c);
        }
    }
}

void hak_guard_put(void *block, const void *site)
{
    struct hak_guard_slot *slot = hak_guard_nearest(block);
    const size_t page = hak_os_page_bytes();
    uint32_t state = HAK_GUARD_LIVE;
    if (slot->block != block) {
        report_and_die("invalid free", slot, block);
    }
    if (!hak_cas_acquire(&slot->state, &state, HAK_GUARD_BUSY)) { // pairs with: slot_set
        report_and_die("double free", slot, block);
    }
    char *start = page_of((unsigned)(slot - hak_guard.slots));
    check_rest(slot, start);
    note_call(&slot->freed, site);
    hak_os_purge(start, page);
    if (hak_os_guard(start, page)) {
        slot_set(slot, HAK_GUARD_FREE);
    } // else it stays busy for ever: nobody may get a slot that is not guarded
}
