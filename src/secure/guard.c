// guard.c -- see guard.h.
#include "secure/guard.h"

#include <string.h>

#include "base/check.h"
#include "cache/hooks.h"
#include "meta/addresses.h"
#include "meta/table.h"
#include "os/os.h"
#include "slab/arena.h"
#include "stacks/code.h"
#include "stacks/stack.h"

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

// Whoever sees `base` finds the table.
static struct hak_guard_slot *slots(void)
{
    struct hak_guard_table *table = hak_table_find(&hak_guard.table);
    return table->slots;
}

static bool has_addresses(void)
{
    static char
        *base; // with the arena's lock; kept for another try when the kernel refuses to guard it
    if (hak_load_acquire(&hak_guard.base) != NULL) { // pairs with: has_addresses
        return true;
    }
    if (hak_table_take(&hak_guard.table, sizeof(struct hak_guard_table)) == NULL) {
        return false;
    }
    hak_lock_take(&hak_arena.lock);
    if (hak_load_relaxed(&hak_guard.base) == NULL) {
        base = base != NULL ? base : hak_addresses_take(HAK_SUPER_BYTES, NULL);
        if (base != NULL && hak_os_guard(base, HAK_SUPER_BYTES)) {
            // pairs with: has_addresses, hak_guard_nearest
            hak_store_release(&hak_guard.base, base);
        }
    }
    hak_lock_drop(&hak_arena.lock);
    return hak_load_relaxed(&hak_guard.base) != NULL;
}

// Note the thread and the call stack, whose first frame is the program's call.
static void note_call(struct hak_guard_call *call, const void *site)
{
    call->thread_id = hak_os_thread_id();
    call->frame_count = hak_stack_walk_from(site, call->frames, HAK_GUARD_FRAMES, true);
    for (unsigned i = 0; i < call->frame_count; i++) {
        call->frames[i] = HAK_PLACE_ADDRESS(call->frames[i]);
    }
}

// Take a free slot, in turn, so that the slot freed last comes last. NULL if the next few are all in use.
static struct hak_guard_slot *slot_take(void)
{
    static _Atomic(uint32_t) turn;
    for (unsigned looks = 0; looks < 16; looks++) {
        const unsigned index = hak_add_relaxed(&turn, 1) % slot_count();
        uint32_t state = HAK_GUARD_FREE;
        struct hak_guard_slot *slot = &slots()[index];
        if (hak_cas_acquire(&slot->state, &state, HAK_GUARD_BUSY)) { // pairs with: slot_set
            return slot;
        }
    }
    return NULL;
}

static void slot_set(struct hak_guard_slot *slot, enum hak_guard_state state)
{
    hak_store_release(&slot->state, state); // pairs with: slot_take
}

struct hak_guard_slot *hak_guard_nearest(const void *p)
{
    const size_t page = hak_os_page_bytes();
    const char *base = hak_load_acquire(&hak_guard.base); // pairs with: has_addresses
    const size_t number = (size_t)((const char *)p - base) / page;
    // In a page between two slots, the lower half counts as an overflow of the slot below.
    const bool is_lower_half = ((uintptr_t)p & (page - 1)) < page / 2;
    size_t index = number % 2 == 0 && is_lower_half && number > 0 ? number / 2 - 1 : number / 2;
    index = index < slot_count() ? index : slot_count() - 1;
    return &slots()[index];
}

size_t hak_hook_owned_bytes(const void *block)
{
    const struct hak_guard_slot *slot = hak_guard_nearest(block);
    const bool is_live =
        hak_load_relaxed(&slot->block) == block && hak_load_relaxed(&slot->state) == HAK_GUARD_LIVE;
    return is_live ? hak_load_relaxed(&slot->bytes) : 0;
}

static _Noreturn void report_and_die(const char *kind,
                                     const struct hak_guard_slot *slot,
                                     const char *p)
{
    hak_guard_report(kind, slot, p);
    hak_end();
}

// The bytes of a slot's page outside the block have to be zeros.
static void check_zeros(const struct hak_guard_slot *slot,
                        const char *kind,
                        const char *start,
                        const char *end)
{
    for (const char *c = start; c < end; c++) {
        if (*c != 0) {
            report_and_die(kind, slot, c);
        }
    }
}

// Make the page of a free slot accessible. It is all zeros; a page that could not be guarded is checked for that.
static bool page_open(struct hak_guard_slot *slot, char *page)
{
    const size_t bytes = hak_os_page_bytes();
    if (!slot->is_open) {
        return hak_os_unguard(page, bytes);
    }
    check_zeros(slot, "use after free", page, page + bytes);
    return true;
}

// Fill the page with zeros and make it inaccessible, as far as the kernel allows: it purges no page that is locked in memory, and
// each border between two kinds of pages takes one of its mappings.
static void page_close(struct hak_guard_slot *slot, char *page)
{
    const size_t bytes = hak_os_page_bytes();
    if (!hak_os_purge(page, bytes)) {
        memset(page, 0, bytes);
    }
    slot->is_open = !hak_os_guard(page, bytes);
}

void *hak_guard_take(struct hak_request request, unsigned size_class)
{
    const size_t page = hak_os_page_bytes();
    const size_t of_class = hak_classes[size_class].bytes & -hak_classes[size_class].bytes;
    const size_t alignment = request.alignment > of_class ? request.alignment : of_class;
    if (request.bytes > page || alignment > page || !has_addresses()) {
        return NULL;
    }
    struct hak_guard_slot *slot = slot_take();
    if (slot == NULL) {
        return NULL;
    }
    char *start = page_of((unsigned)(slot - slots()));
    if (!page_open(slot, start)) {
        slot_set(slot, HAK_GUARD_FREE);
        return NULL;
    }
    char *block = start + ((page - request.bytes) & ~(alignment - 1));
    hak_store_relaxed(&slot->block, block);
    hak_store_relaxed(&slot->bytes, request.bytes);
    slot->freed.frame_count = 0;
    note_call(&slot->allocated, request.site);
    slot_set(slot, HAK_GUARD_LIVE);
    return block;
}

void hak_guard_put(void *block, const void *site)
{
    struct hak_guard_slot *slot = hak_guard_nearest(block);
    const char *start = hak_load_relaxed(&slot->block);
    uint32_t state = HAK_GUARD_LIVE;
    if (start != block) {
        report_and_die("invalid free", slot, block);
    }
    if (!hak_cas_acquire(&slot->state, &state, HAK_GUARD_BUSY)) { // pairs with: slot_set
        report_and_die("double free", slot, block);
    }
    char *page = page_of((unsigned)(slot - slots()));
    check_zeros(slot, "underflow", page, start);
    check_zeros(
        slot, "overflow", start + hak_load_relaxed(&slot->bytes), page + hak_os_page_bytes());
    note_call(&slot->freed, site);
    // A visitor, who holds this lock, is done with the block, or will see that it is not live.
    hak_lock_take(&hak_arena.lock);
    hak_lock_drop(&hak_arena.lock);
    page_close(slot, page);
    slot_set(slot, HAK_GUARD_FREE);
}

bool hak_guard_visit(bool (*visit)(void *start, size_t bytes, void *argument), void *argument)
    HAK_REQUIRES(&hak_arena.lock)
{
    const struct hak_guard_table *table = hak_table_find(&hak_guard.table);
    const unsigned count = table != NULL ? slot_count() : 0;
    for (unsigned i = 0; i < count; i++) {
        const struct hak_guard_slot *slot = &table->slots[i];
        if (hak_load_acquire(&slot->state) == HAK_GUARD_LIVE && // pairs with: slot_set
            !visit(hak_load_relaxed(&slot->block), hak_load_relaxed(&slot->bytes), argument)) {
            return false;
        }
    }
    return true;
}
