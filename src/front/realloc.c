// realloc.c -- realloc, reallocarray.
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "cache/dying.h"
#include "cache/fast_path.h"
#include "cache/hooks.h"
#include "cache/large.h"
#include "cache/nested.h"
#include "cache/refuse.h"
#include "cache/seen.h"
#include "front/alloc.h"
#include "front/override.h"
#include "hakmem/hakmem.h"
#include "meta/map.h"
#include "os/os.h"
#include "slab/arena.h"
#include "slab/misuse.h"
#include "slab/ranges.h"

// Has a block that was just allocated a mapping of its own, whose pages are untouched? Blocks of this size are never kept.
static bool is_fresh(const void *block, size_t bytes)
{
    const struct hak_run *run = bytes > HAK_MAPPING_MOVED_MIN ? hak_run_of(block) : NULL;
    return run != NULL && run->state == HAK_RUN_LARGE && run->units == 0;
}

static void copy(char *other, const char *block, size_t bytes, bool other_is_fresh)
{
    if (other_is_fresh) {
        hak_os_copy(other, block, bytes);
    } else {
        memcpy(other, block, bytes);
    }
}

// How much is copied at a time.
#define PIECE_BYTES HAK_MIB(4)

// Is the block so large that memory may have no room for a second copy? (A dying process changes nothing.)
static bool goes_by_pieces(size_t bytes)
{
    const enum hak_free_policy policy = hak_ranges_policy();
    const size_t part = hak_load_relaxed(&hak_arena.part_bytes); // 0: not known
    return part != 0 && bytes > part && bytes > PIECE_BYTES &&
           (policy == HAK_FREE_NOW || policy == HAK_FREE_AND_UNMAP) && !hak_dying_now();
}

// Purges pages once they are copied. Locked pages go back when the block does.
static HAK_COLD void copy_by_pieces(char *other, char *block, size_t bytes, bool other_is_fresh)
{
    const size_t page = hak_os_page_bytes();
    char *gone = (char *)hak_align_up((uintptr_t)block, page);
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        const size_t piece = hak_least(bytes - at, PIECE_BYTES);
        copy(other + at, block + at, piece, other_is_fresh);
        char *end = block + at + piece;
        end -= (uintptr_t)end % page;
        HAK_UNHEEDED(hak_os_purge(gone, (size_t)(end - gone)));
        gone = end;
    }
}

// `other`, which is NULL without memory, takes the place of `block`. Untouched pages stay untouched.
static void *realloc_into(void *other, void *block, size_t old_bytes, size_t bytes)
{
    const size_t content_bytes = old_bytes < bytes ? old_bytes : bytes;
    if (other == NULL) {
        return NULL;
    }
    if (HAK_UNLIKELY(goes_by_pieces(content_bytes))) {
        copy_by_pieces(other, block, content_bytes, is_fresh(other, bytes));
    } else {
        copy(other, block, content_bytes, is_fresh(other, bytes));
    }
    hak_free(block);
    return other;
}

_Atomic(bool) hak_realloc_left_long;

// The block shrinks, and there is no memory for a shorter one: it stays where it is.
static HAK_COLD void *realloc_left_long(void *block, int error)
{
    errno = error;
    hak_store_relaxed(&hak_realloc_left_long, true);
    return block;
}

static void *realloc_by_copy(void *block, size_t old_bytes, size_t bytes, const void *site)
{
    const int error = errno;
    void *other = hak_alloc(bytes, site);
    if (HAK_UNLIKELY(other == NULL) && bytes <= old_bytes && !hak_seen_injects()) {
        return realloc_left_long(block, error);
    }
    return realloc_into(other, block, old_bytes, bytes);
}

// A run of at least this size that moves to grow goes to a multiple of it. It will grow again, and the first gap by
// address is a different one each time. There are few multiples, so the next run that grows
// mostly gets the same place, whose pages are resident.
#define GROWN_MIN HAK_KIB(256)

// A block that is aligned to more than a superslab lies in none, but in a mapping of its own.
static size_t grown_alignment(size_t bytes)
{
    return bytes > HAK_MAPPING_MOVED_MIN ? 2 * HAK_SUPER_BYTES : GROWN_MIN;
}

// Up to half of a block may stay unused; beyond that, a copy pays.
HAK_INLINE void *realloc_usual(void *block, size_t old_bytes, size_t bytes, const void *site)
{
    return bytes <= old_bytes && bytes >= old_bytes / 2
               ? block
               : realloc_by_copy(block, old_bytes, bytes, site);
}

// For a small block, when every call is seen (cache/seen.h).
static HAK_NOINLINE void *realloc_seen(void *block,
                                       size_t old_bytes,
                                       size_t bytes,
                                       const void *site)
{
    const enum hak_resized resized =
        hak_is_nested ? HAK_RESIZED_BY_A_COPY : hak_hook_resize(block, bytes);
    if (resized == HAK_RESIZED_IN_PLACE) {
        return block;
    }
    return resized == HAK_RESIZED_AS_USUAL
               ? realloc_usual(block, old_bytes, bytes, site)
               : realloc_by_copy(block, hak_seen_usable(block, old_bytes), bytes, site);
}

HAK_INLINE void *realloc_small(void *block, unsigned size_class, size_t bytes, const void *site)
{
    const size_t old_bytes = hak_classes[size_class].bytes;
    if (HAK_UNLIKELY(hak_seen_is_wanted()) && !hak_dying_now()) {
        return realloc_seen(block, old_bytes, bytes, site);
    }
    return realloc_usual(block, old_bytes, bytes, site);
}

static void *realloc_elsewhere(struct hak_run *run, size_t bytes, const void *site)
{
    const bool will_grow = bytes > run->bytes;
    if (run->units > 0 && will_grow && bytes >= GROWN_MIN && bytes <= PTRDIFF_MAX) {
        const struct hak_request request = {bytes, 1, site};
        void *other = hak_alloc_large(request, grown_alignment(bytes), NULL);
        return realloc_into(other, run->base, run->bytes, bytes);
    }
    void *other = realloc_by_copy(run->base, run->bytes, bytes, site);
    if (other != NULL && will_grow) {
        hak_large_leave_room(other);
    }
    return other;
}

static void *realloc_large(void *block, size_t bytes, const void *site)
{
    // A dying process changes nothing (dying.h). If a feature owns the block and it is free, the copy or the free reports that.
    if (hak_dying_now() || hak_hook_owns(block) || hak_nested_owns(block) || hak_is_nested) {
        return realloc_by_copy(block, hak_usable_size(block), bytes, site);
    }
    struct hak_run *run = hak_run_of(block);
    if (run == NULL && hak_run_ended_bytes(block) != 0) {
        hak_misuse_freed_realloc(block, hak_run_ended_bytes(block));
    }
    if (run == NULL || run->base != block) {
        hak_misuse_wild_realloc(block);
    }
    if (!hak_map_is_large(hak_map_entry(block))) {
        hak_misuse_freed_realloc(block, run->bytes);
    }
    void *same = bytes <= PTRDIFF_MAX ? hak_large_resize(run, bytes) : NULL;
    if (same == NULL) {
        const int error = errno;
        void *other = realloc_elsewhere(run, bytes, site);
        // The request for the other block has given back all free memory, also that behind this block.
        if (HAK_LIKELY(other != NULL) || bytes > PTRDIFF_MAX || hak_seen_injects()) {
            return other;
        }
        same = hak_large_resize(run, bytes);
        if (same == NULL) {
            return NULL;
        }
        errno = error;
    }
    hak_hook_large(same, (struct hak_request){bytes, 1, site});
    return same;
}

// A block that is not small, or whose address may share its map entry with another one.
static HAK_NOINLINE void *realloc_other(void *block, uint32_t entry, size_t bytes, const void *site)
{
    return hak_map_is_small(entry) && hak_run_of(block) != NULL
               ? realloc_small(block, HAK_MAP_CLASS(entry), bytes, site)
               : realloc_large(block, bytes, site);
}

// All its calls are tail calls, so that resizing a small block in place saves no registers.
void *hak_realloc(void *block, size_t bytes)
{
    HAK_COUNT_CALL();
    if (block == NULL) {
        return hak_malloc(bytes);
    }
    if (bytes == 0) {
        hak_free(block);
        return NULL;
    }
    const uint32_t entry = hak_map_entry(block);
    return HAK_LIKELY(hak_map_is_small(entry) && hak_map_covers(block))
               ? realloc_small(block, HAK_MAP_CLASS(entry), bytes, HAK_SITE)
               : realloc_other(block, entry, bytes, HAK_SITE);
}

void *hak_reallocarray(void *block, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        return hak_refuse(HAK_REFUSE_THRESHOLD, (struct hak_request){SIZE_MAX, 1, HAK_SITE});
    }
    return hak_realloc(block, total); // a tail call: HAK_SITE is the same there
}

HAK_ALSO(void *, realloc, (void *, size_t), hak_realloc);
