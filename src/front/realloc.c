// realloc.c -- realloc, reallocarray.
#include <stdint.h>
#include <string.h>

#include "base/options.h"
#include "cache/failure.h"
#include "cache/inbox.h"
#include "cache/large.h"
#include "front/alloc.h"
#include "front/override.h"
#include "hakmem/hakmem.h"
#include "meta/map.h"
#include "slab/misuse.h"
#include "slab/slab.h"

// Option check: a free small block must not be resized.
static void check_is_live(const void *block)
{
    struct hak_cache *owner = hak_cache_lock_owner(block);
    if (owner == NULL) {
        hak_die_wild_realloc(block);
    }
    const struct hak_slab *slab = hak_slab_of(block);
    const bool is_out = hak_slab_is_out(slab, block);
    hak_lock_drop(&owner->lock);
    if (!is_out) {
        hak_die_freed_realloc(block, hak_classes[slab->size_class].bytes);
    }
}

static void *realloc_by_copy(void *block, size_t old_bytes, size_t bytes, const void *site)
{
    void *other = hak_alloc(bytes, site);
    if (other != NULL) {
        memcpy(other, block, old_bytes < bytes ? old_bytes : bytes);
        hak_free(block);
    }
    return other;
}

static void *realloc_large(void *block, size_t bytes, const void *site)
{
    struct hak_slab *slab = hak_slab_of(block);
    if (slab == NULL && hak_slab_ended_bytes(block) != 0) {
        hak_die_freed_realloc(block, hak_slab_ended_bytes(block));
    }
    if (slab == NULL || slab->base != block) {
        hak_die_wild_realloc(block);
    }
    if (!hak_map_is_large(hak_map_entry(block))) {
        hak_die_freed_realloc(block, slab->bytes);
    }
    void *same = bytes <= PTRDIFF_MAX ? hak_large_resize(slab, bytes) : NULL;
    return same != NULL ? same : realloc_by_copy(block, slab->bytes, bytes, site);
}

void *hak_realloc(void *block, size_t bytes)
{
    if (block == NULL) {
        return hak_malloc(bytes);
    }
    if (bytes == 0) {
        hak_free(block);
        return NULL;
    }
    const uint32_t entry = hak_map_entry(block);
    const unsigned size_class = HAK_MAP_CLASS(entry);
    const bool is_ours = hak_map_covers(block) || hak_slab_of(block) != NULL;
    if (!hak_map_is_small(entry) || HAK_UNLIKELY(!is_ours)) {
        return realloc_large(block, bytes, HAK_SITE);
    }
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_options.check) != 0)) {
        check_is_live(block);
    }
    // Half of a block may stay unused before the rest is worth a copy.
    const size_t old_bytes = hak_classes[size_class].bytes;
    if (bytes <= old_bytes && bytes >= old_bytes / 2) {
        return block;
    }
    return realloc_by_copy(block, old_bytes, bytes, HAK_SITE);
}

void *hak_reallocarray(void *block, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        return hak_refuse(HAK_FAILURE_THRESHOLD, (struct hak_request){SIZE_MAX, 1, HAK_SITE});
    }
    return hak_realloc(block, total); // its last call: HAK_SITE there is ours
}

HAK_ALSO(void *, realloc, (void *, size_t), hak_realloc);
HAK_ALSO(void *, reallocarray, (void *, size_t, size_t), hak_reallocarray);
HAK_ALSO(void *, __libc_realloc, (void *, size_t), hak_realloc);
HAK_ALSO(void *, __libc_reallocarray, (void *, size_t, size_t), hak_reallocarray);
