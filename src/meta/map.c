// map.c -- see map.h.
#include "meta/map.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/options.h"
#include "os/os.h"

// Until the tables exist, every address leads to one entry that says "not ours".
static _Atomic(uint32_t) no_unit;
static _Atomic(struct hak_super *) no_super;
struct hak_map hak_map = {.units = &no_unit, .supers = &no_super, .covered_units = 1};

enum {
    UNITS_LOG2_MAX = 24, // 1 TiB of heap addresses: a table of 64 MiB, resident where used
    UNITS_LOG2_MIN = 16, // 4 GiB: 256 KiB
    REFUSED_LOG2 = 6,    // a table that was refused is made so much shorter
    COMMIT_LOG2 = 20,    // bytes of the unit table made writable at a time: 16 GiB of heap
};

// The window lies anywhere from 33 to 81 TiB: far from programs and from what the kernel maps top-down, on processors with 47 or
// more address bits. AddressSanitizer's shadow ends at 16 TiB. CLISP's heap lies from there to 32 TiB; it warns of others there.
#define WINDOW_LOW  (UINT64_C(33) << 40)
#define WINDOW_SPAN (UINT64_C(48) << 40)

// ThreadSanitizer and MemorySanitizer keep their shadow memory there, and leave programs room only where
// the kernel maps by itself. A program that contains these functions runs under one, however we are built.
extern const char thread_sanitizer __asm__("__tsan_init") __attribute__((weak));
extern const char memory_sanitizer __asm__("__msan_init") __attribute__((weak));

static uint64_t window_start(bool is_random)
{
    if (&thread_sanitizer != NULL || &memory_sanitizer != NULL) {
        return HAK_MAP_WINDOW_OF_SANITIZERS;
    }
    return WINDOW_LOW + (is_random ? hak_os_random() % WINDOW_SPAN : WINDOW_SPAN / 2);
}

static uint64_t window_bytes(void)
{
    return (hak_map.super_mask + 1) << HAK_SUPER_LOG2;
}

static void slots_set(uint64_t first, uint64_t count, bool used)
{
    const uint64_t end =
        first + count < hak_map_slot_count() ? first + count : hak_map_slot_count();
    while (first < end) {
        const uint64_t word = first / 64;
        const uint64_t left = 64 - first % 64;
        const uint64_t now = end - first < left ? end - first : left;
        const uint64_t bits = hak_bit_range((unsigned)(first % 64), (unsigned)now);
        const uint64_t changed = used ? ~hak_map.slots[word] & bits : hak_map.slots[word] & bits;
        const uint64_t slots = hak_count_bits(changed);
        hak_map.used_slots = used ? hak_map.used_slots + slots : hak_map.used_slots - slots;
        hak_map.slots[word] = used ? hak_map.slots[word] | bits : hak_map.slots[word] & ~bits;
        hak_set_bit(hak_map.used_words, word, hak_map.slots[word] != 0);
        hak_set_bit(hak_map.full_words, word, hak_map.slots[word] == ~UINT64_C(0));
        first += now;
    }
    hak_map.missing_row = used ? hak_map.missing_row : UINT64_MAX;
}

// Both tables for 2^log2 units, or neither.
static bool tables_make(unsigned log2, _Atomic(uint32_t) **units, char **supers)
{
    const size_t bytes = sizeof **units << log2;
    const uint64_t slots = UINT64_C(1) << (log2 - (HAK_SUPER_LOG2 - HAK_UNIT_LOG2));
    const size_t slot_bytes = hak_align_up(slots / 8, sizeof(uint64_t));
    *units = hak_os_reserve(bytes);
    if (*units == NULL) {
        return false;
    }
    *supers = hak_os_map_guarded(
        hak_align_up(slots * sizeof *hak_map.supers + slot_bytes, hak_os_page_bytes()));
    if (*supers == NULL) {
        hak_os_discard((void *)*units, bytes);
    }
    return *supers != NULL;
}

bool hak_map_start(void)
{
    unsigned log2 = UNITS_LOG2_MAX;
    _Atomic(uint32_t) *units = NULL;
    char *supers = NULL;
    // A table beyond a sixteenth of a limit on addresses would take the program's room. The same goes for a limit on data: other
    // tables are as long as this one, and writable.
    const size_t room = hak_least(hak_os_address_limit(), hak_os_data_limit()) / 16;
    while (log2 > UNITS_LOG2_MIN && sizeof *units << log2 > room) {
        log2--;
    }
    // A refusal shows a limit that is not known, as on locked memory: the next length has to leave room for the heap.
    while (!tables_make(log2, &units, &supers)) {
        if (log2 == UNITS_LOG2_MIN) {
            return false; // the next call tries again
        }
        log2 = log2 > UNITS_LOG2_MIN + REFUSED_LOG2 ? log2 - REFUSED_LOG2 : UNITS_LOG2_MIN;
    }
    const uint64_t slots = UINT64_C(1) << (log2 - (HAK_SUPER_LOG2 - HAK_UNIT_LOG2));
    hak_map.units = units;
    hak_map.unit_mask = (UINT64_C(1) << log2) - 1;
    hak_map.supers = (_Atomic(struct hak_super *) *)(void *)supers;
    hak_map.super_mask = slots - 1;
    hak_map.slots = (uint64_t *)(void *)(supers + slots * sizeof *hak_map.supers);
    // With option deterministic, the window is the same in each run.
    const bool is_random = hak_load_relaxed(&hak_options.deterministic) == 0;
    hak_map.window = (char *)(window_start(is_random) & ~(window_bytes() - 1));
    hak_store_relaxed(&hak_map.covered_units, hak_map.unit_mask + 1);
    // In the lower half, so that a heap can grow far before it wraps around.
    hak_map.next_slot = is_random ? hak_os_random() & (hak_map.super_mask >> 1) : 1;
    hak_map.missing_row = UINT64_MAX;
    hak_map.outside_at = (uintptr_t)(hak_map.window + window_bytes()) >> HAK_SUPER_LOG2;
    slots_set(0, 1, true); // NULL leads to its entry, which must say "not ours"
    return true;
}

// A mapping in our window uses all slots that its addresses lie in. One elsewhere uses only the
// slot of its start.
static uint64_t slots_used(const char *start, size_t bytes)
{
    return (uintptr_t)start - (uintptr_t)hak_map.window < window_bytes() ? hak_map_slots_of(bytes)
                                                                         : 1;
}

static bool map_commit_part(uint64_t part)
{
    if (hak_has_bit(hak_map.committed, part)) {
        return true;
    }
    size_t table_bytes = (hak_map.unit_mask + 1) * sizeof *hak_map.units;
    size_t bytes = (size_t)1 << COMMIT_LOG2;
    bytes = bytes < table_bytes ? bytes : table_bytes;
    if (!hak_os_commit((char *)hak_map.units + (part << COMMIT_LOG2), bytes)) {
        return false;
    }
    hak_set_bit(hak_map.committed, part, true);
    return true;
}

bool hak_map_commit(const char *start, size_t bytes)
{
    const uint64_t slot = hak_map_slot_of(start);
    const uint64_t count = slots_used(start, bytes);
    const unsigned slot_entry_bytes = HAK_SUPER_UNITS * sizeof *hak_map.units;
    const uint64_t last = (slot + count - 1) * slot_entry_bytes >> COMMIT_LOG2;
    for (uint64_t part = slot * slot_entry_bytes >> COMMIT_LOG2; part <= last; part++) {
        if (!map_commit_part(part)) {
            return false;
        }
    }
    return true;
}

void hak_map_set(const void *start, unsigned count, uint32_t entry)
{
    uint64_t unit = ((uintptr_t)start >> HAK_UNIT_LOG2) & hak_map.unit_mask;
    for (unsigned i = 0; i < count; i++) {
        hak_store_relaxed(&hak_map.units[unit + i], entry);
    }
}

static void slots_publish(uint64_t first, uint64_t count, struct hak_super *super)
{
    while (count-- > 0) {
        hak_store_release(&hak_map.supers[first + count], super); // pairs with: hak_map_super
    }
}

void hak_map_publish(const char *start, size_t bytes, struct hak_super *super)
{
    slots_publish(hak_map_slot_of(start), slots_used(start, bytes), super);
}

// The first slot at or after `slot` that is used, or, without `used`, free; hak_map_slot_count() if there is none. Skips
// words without such a slot 64 at a time.
static uint64_t slot_find(uint64_t slot, bool used)
{
    const uint64_t flip = used ? 0 : ~UINT64_C(0);
    const uint64_t *summary = used ? hak_map.used_words : hak_map.full_words;
    if (slot >= hak_map_slot_count()) {
        return hak_map_slot_count();
    }
    const uint64_t bits = (hak_map.slots[slot / 64] ^ flip) >> (slot % 64);
    if (bits != 0) {
        return slot + hak_lowest_bit(bits);
    }
    uint64_t word = slot / 64 + 1;
    while (word * 64 < hak_map_slot_count()) {
        HAK_LOOK();
        const uint64_t words = (summary[word / 64] ^ flip) >> (word % 64);
        if (words == 0) {
            word = (word / 64 + 1) * 64;
            continue;
        }
        word += hak_lowest_bit(words);
        return word * 64 < hak_map_slot_count()
                   ? word * 64 + hak_lowest_bit(hak_map.slots[word] ^ flip)
                   : hak_map_slot_count();
    }
    return hak_map_slot_count();
}

// The first of `count` free slots in a row, at or after `from`; hak_map_slot_count() if there are none.
static uint64_t slots_find(uint64_t from, uint64_t count)
{
    uint64_t slot = slot_find(from, false);
    while (slot + count <= hak_map_slot_count()) {
        HAK_LOOK();
        const uint64_t end = slot_find(slot, true);
        if (end - slot >= count) {
            return slot;
        }
        slot = slot_find(end, false);
    }
    return hak_map_slot_count();
}

// The next such row behind next_slot, or else the first in the window.
uint64_t hak_map_find_row(uint64_t count)
{
    if (count >= hak_map.missing_row || count > hak_map_slot_count()) {
        return hak_map_slot_count();
    }
    uint64_t slot = slots_find(hak_map.next_slot, count);
    if (slot == hak_map_slot_count()) {
        slot = slots_find(0, count);
    }
    if (slot == hak_map_slot_count()) {
        hak_map.missing_row = count;
    }
    return slot;
}

uint64_t hak_map_find_slot(uint64_t slot)
{
    return slot_find(slot, false);
}

void hak_map_use(const char *start, size_t bytes)
{
    slots_set(hak_map_slot_of(start), slots_used(start, bytes), true);
}

bool hak_map_try_use(const char *start, size_t bytes)
{
    const uint64_t slot = hak_map_slot_of(start);
    const bool is_free = hak_map_find_slot(slot) == slot;
    if (is_free) {
        hak_map_use(start, bytes);
    }
    return is_free;
}

// Purge the pages of `units` in which no slot is used any more, except the page of next_slot: where each block has a mapping of
// its own, the whole table would become resident in time. Entries of free slots are zeros, or nobody reads them.
static void units_purge(uint64_t slot, uint64_t count)
{
    const uint64_t in_page = hak_os_page_bytes() / (HAK_SUPER_UNITS * sizeof *hak_map.units);
    const uint64_t searched = hak_map.next_slot / in_page;
    uint64_t first = slot / in_page;
    uint64_t end = (slot + count - 1) / in_page + 1;
    first += first == searched || slot_find(first * in_page, true) < slot;
    end -= end > first && (end - 1 == searched || slot_find(slot + count, true) < end * in_page);
    if (first < end && end * in_page <= hak_map_slot_count()) {
        const uint64_t units = first * in_page * HAK_SUPER_UNITS;
        // If the kernel refuses, the entries just stay.
        HAK_UNHEEDED(
            hak_os_purge((void *)&hak_map.units[units], (end - first) * hak_os_page_bytes()));
    }
}

void hak_map_forget(const char *start, size_t bytes)
{
    const uint64_t slot = hak_map_slot_of(start);
    const uint64_t count = slots_used(start, bytes);
    slots_set(slot, count, false);
    units_purge(slot, count);
}

bool hak_map_resize(const char *start, size_t old_bytes, size_t bytes)
{
    const uint64_t first = hak_map_slot_of(start);
    const uint64_t old_count = slots_used(start, old_bytes);
    const uint64_t count = slots_used(start, bytes);
    const uint64_t end = first + count;
    if (count > old_count &&
        (end > hak_map_slot_count() || slot_find(first + old_count, true) < end)) {
        return false;
    }
    if (count > old_count) {
        slots_publish(first + old_count, count - old_count, hak_map_in_slot(first));
        slots_set(first + old_count, count - old_count, true);
    } else {
        slots_publish(first + count, old_count - count, NULL);
        slots_set(first + count, old_count - count, false);
    }
    return true;
}

uint64_t hak_map_slot(const void *start)
{
    const uint64_t offset = (uintptr_t)start - (uintptr_t)hak_map.window;
    return offset < window_bytes() ? offset >> HAK_SUPER_LOG2 : UINT64_MAX;
}

struct hak_super *hak_map_in_slot(uint64_t slot)
{
    return hak_load_relaxed(&hak_map.supers[slot]); // written under the lock that the caller holds
}
