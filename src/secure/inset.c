// inset.c -- see inset.h.
#include "secure/inset.h"

#include <string.h>

#include "base/bits.h"
#include "base/options.h"
#include "cache/hooks.h"
#include "meta/map.h"
#include "meta/unreleased.h"
#include "os/os.h"
#include "os/proc.h"
#include "slab/arena.h"
#include "slab/hooks.h"
#include "slab/mapping.h"
#include "slab/misuse.h"

enum {
    MAPPINGS_USUAL = 65530, // the kernel's default limit for a process
    GUARDED_PARTS = 2,      // half of them may serve guarded blocks
    GROWN_PARTS = 8,        // an eighth of a growing block is reserved in its last mapping
};
static size_t guarded_mappings = MAPPINGS_USUAL / GUARDED_PARTS;
static size_t guarded_count; // (arena lock)

void hak_inset_start(void)
{
    if (hak_load_relaxed(&hak_options.guard_large) != 0) {
        guarded_mappings =
            hak_proc_number("/proc/sys/vm/max_map_count", "", MAPPINGS_USUAL) / GUARDED_PARTS;
    }
}

// Addresses that the kernel did not take back are mappings, too, often of guarded blocks. Threads that ask at the same moment may
// exceed the limit by a few.
static bool may_guard(void)
{
    hak_lock_take(&hak_arena.lock);
    const size_t count = guarded_count + hak_unreleased.count;
    const bool may = count < guarded_mappings / (1 + hak_os_guard_mappings());
    hak_lock_drop(&hak_arena.lock);
    return may;
}

// A guarded unit lies before the block, so that the block begins in a unit of its own. The block's end lies as close to the guard
// behind it as the alignment allows, which is at most a unit. NULL also at the limit: each block takes one or three of the kernel's
// mappings, and half of those are left to the program.
struct hak_run *hak_hook_inset_map(size_t bytes, size_t alignment)
{
    const size_t page = hak_os_page_bytes();
    const size_t pages_bytes = hak_align_up(bytes, page);
    struct hak_run *mapping = alignment <= HAK_UNIT_BYTES && page < HAK_UNIT_BYTES && may_guard()
                                  ? hak_mapping_make(HAK_UNIT_BYTES + pages_bytes + page, 1, false)
                                  : NULL;
    if (mapping == NULL) {
        return NULL;
    }
    char *pages = mapping->base + HAK_UNIT_BYTES;
    if (!hak_os_guard(mapping->base, HAK_UNIT_BYTES) || !hak_os_guard(pages + pages_bytes, page)) {
        hak_mapping_end(mapping);
        return NULL;
    }
    alignment = alignment < 16 ? 16 : alignment;
    hak_lock_take(&hak_arena.lock); // a visitor may look at it
    mapping->base = pages + ((pages_bytes - bytes) & ~(alignment - 1));
    mapping->bytes = bytes;
    guarded_count++;
    hak_lock_drop(&hak_arena.lock);
    return mapping;
}

static char *guard_behind(const char *end)
{
    return (char *)hak_align_up((uintptr_t)end, hak_os_page_bytes());
}

// The first byte that is not zero; `end` if all are. The bytes beside a block are zeros unless they were overwritten. There may be
// nearly a page of them, so words are compared.
static const char *first_written(const char *start, const char *end)
{
    const char *c = start;
    for (uint64_t word = 0; end - c >= (ptrdiff_t)sizeof word; c += sizeof word) {
        memcpy(&word, c, sizeof word);
        if (word != 0) {
            break;
        }
    }
    while (c < end && *c == 0) {
        c++;
    }
    return c;
}

static void check_behind(const struct hak_run *mapping, const char *end)
{
    const char *written = first_written(mapping->base + mapping->bytes, end);
    if (HAK_UNLIKELY(written < end)) {
        hak_misuse_overflow(mapping->base, mapping->bytes, (size_t)(written - mapping->base));
    }
}

void hak_hook_inset_freed(struct hak_run *mapping)
{
    const char *written =
        first_written(hak_mapping_super(mapping)->base + HAK_UNIT_BYTES, mapping->base);
    if (HAK_UNLIKELY(written < mapping->base)) {
        hak_misuse_underflow(mapping->base, mapping->bytes, (size_t)(mapping->base - written));
    }
    check_behind(mapping, guard_behind(mapping->base + mapping->bytes));
}

// Make the guard behind a block longer by `more`, in place: only the last of the block's mappings grows.
static bool guard_grow_locked(struct hak_super *super, size_t more) HAK_REQUIRES(&hak_arena.lock)
{
    const size_t page = hak_os_page_bytes();
    const size_t old_bytes = super->mapped_bytes;
    char *end = super->base + old_bytes;
    if (!hak_mapping_may_grow_locked(more) ||
        !hak_map_resize(super->base, old_bytes, old_bytes + more)) {
        return false;
    }
    if (hak_os_remap(end - page, page, page + more, NULL) == NULL) {
        hak_map_resize(super->base, old_bytes + more, old_bytes);
        return false;
    }
    if (!hak_os_guard(end, more)) {
        hak_os_discard(end, more);
        hak_map_resize(super->base, old_bytes + more, old_bytes);
        return false;
    }
    super->mapped_bytes += more;
    hak_count(&hak_arena.mapping_bytes, more);
    hak_arena_note_peak_locked();
    return true;
}

static size_t guard_room(const struct hak_run *mapping, const char *end)
{
    return hak_align_up((size_t)(end - mapping->base) / GROWN_PARTS, hak_os_page_bytes());
}

// Make the guard behind a block reach beyond `end`, if possible with room for further growth.
static bool guard_stretch_locked(struct hak_run *mapping, const char *end)
    HAK_REQUIRES(&hak_arena.lock)
{
    struct hak_super *super = hak_mapping_super(mapping);
    const char *last = super->base + super->mapped_bytes - hak_os_page_bytes();
    if (end <= last) {
        return true;
    }
    const size_t more = (size_t)(end - last);
    return guard_grow_locked(super, more + guard_room(mapping, end)) ||
           guard_grow_locked(super, more);
}

// Reserve addresses behind the block, if possible, so that it can grow by an eighth.
void hak_hook_inset_leave_room(struct hak_run *mapping)
{
    hak_lock_take(&hak_arena.lock);
    guard_grow_locked(hak_mapping_super(mapping),
                      guard_room(mapping, guard_behind(mapping->base + mapping->bytes)));
    hak_lock_drop(&hak_arena.lock);
}

// Clear the rest of a page that was part of the guard: its old contents may still be there (guarded_shrink).
static void clear_behind(char *start, const char *end)
{
    if (first_written(start, end) < end) {
        memset(start, 0, (size_t)(end - start));
    }
}

static bool guarded_grow(struct hak_run *mapping, size_t bytes)
{
    char *old_end = guard_behind(mapping->base + mapping->bytes);
    char *end = guard_behind(mapping->base + bytes);
    check_behind(mapping, end == old_end ? mapping->base + bytes : old_end);
    hak_lock_take(&hak_arena.lock);
    const bool done = guard_stretch_locked(mapping, end) &&
                      (end == old_end || hak_os_unguard(old_end, (size_t)(end - old_end)));
    mapping->bytes = done ? bytes : mapping->bytes;
    hak_lock_drop(&hak_arena.lock);
    if (done && end != old_end) {
        clear_behind(mapping->base + bytes, end);
    }
    return done;
}

// The pages that the block loses are purged, so that they read as zero when it grows again. The kernel purges no locked pages: then
// they are opened again, and the block is copied. If the kernel refuses to open them, as a filter may, they are lost to the block.
static bool guarded_shrink(struct hak_run *mapping, size_t bytes)
{
    char *old_end = guard_behind(mapping->base + mapping->bytes);
    char *end = guard_behind(mapping->base + bytes);
    const size_t less = (size_t)(old_end - end);
    check_behind(mapping, old_end);
    if (less != 0) {
        if (!hak_os_guard(end, less)) {
            return false;
        }
        if (!hak_os_purge(end, less) && hak_os_unguard(end, less)) {
            return false;
        }
    }
    memset(mapping->base + bytes, 0, (size_t)(end - mapping->base) - bytes);
    hak_lock_take(&hak_arena.lock); // a visitor may look at it
    mapping->bytes = bytes;
    hak_lock_drop(&hak_arena.lock);
    return true;
}

// The block's start stays, and the guard moves to the next page behind its end. Dies if bytes behind its old end were written.
bool hak_hook_inset_resize(struct hak_run *mapping, size_t bytes)
{
    return bytes >= mapping->bytes ? guarded_grow(mapping, bytes) : guarded_shrink(mapping, bytes);
}

void hak_hook_inset_ends(void) HAK_REQUIRES(&hak_arena.lock)
{
    guarded_count--;
}
