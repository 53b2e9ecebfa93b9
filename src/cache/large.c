// large.c -- see large.h.
#include "cache/large.h"

#include <string.h>

#include "base/bits.h"
#include "base/options.h"
#include "base/timing.h"
#include "cache/hooks.h"
#include "cache/refuse.h"
#include "cache/sweep.h"
#include "cache/sweeper.h"
#include "os/os.h"
#include "os/refusal.h"
#include "os/tags.h"
#include "slab/arena.h"
#include "slab/hooks.h"
#include "slab/huge_pages.h"
#include "slab/mapping.h"
#include "slab/misuse.h"
#include "slab/runs.h"

// The size of a request's block: whole pages, rounded up to the size of their bin. (With pages
// of 16 or 64 KiB the smallest bins stay empty.)
static size_t large_block_bytes(size_t bytes)
{
    const size_t pages_bytes = hak_align_up(bytes, hak_os_page_bytes());
    const unsigned bin = hak_size_class_bin(pages_bytes);
    return bin < HAK_LARGE_BINS ? hak_size_class_bin_bytes(bin) : pages_bytes;
}

// Smaller blocks contain no huge page.
#define HUGE_LEAST HAK_MIB(2)

static struct hak_run *take_run(size_t block_bytes, size_t alignment, bool wants_huge)
{
    const unsigned align_units =
        alignment > HAK_UNIT_BYTES ? (unsigned)(alignment >> HAK_UNIT_LOG2) : 1;
    return hak_runs_take(hak_arena_shard(hak_cache_self->owner.tag),
                         block_bytes,
                         align_units,
                         HAK_RUN_LARGE,
                         wants_huge);
}

// `is_better_alone`: prefer a mapping of its own, if there are addresses for one.
static struct hak_run *large_make(size_t block_bytes,
                                  size_t alignment,
                                  bool is_better_alone,
                                  bool is_new)
{
    const bool wants_huge = hak_huge_pages_wanted(block_bytes, is_new);
    const bool may_be_run = block_bytes <= HAK_LARGE_RUN_MAX && alignment <= HAK_SUPER_BYTES &&
                            hak_load_relaxed(&hak_options.large_pool) != 0;
    if (!may_be_run || is_better_alone) {
        struct hak_run *mapping = hak_mapping_make(block_bytes, alignment, wants_huge);
        return mapping == NULL && may_be_run ? take_run(block_bytes, alignment, wants_huge)
                                             : mapping;
    }
    struct hak_run *run = take_run(block_bytes, alignment, wants_huge);
    // If there is no room for a superslab, there may be room for the block.
    return run != NULL ? run : hak_mapping_make(block_bytes, alignment, wants_huge);
}

// The map entry of a large block in use.
static uint32_t large_entry(struct hak_run *run)
{
    const unsigned bin = hak_size_class_bin(run->bytes);
    // Only plain blocks can go straight into BigCache: a heap's block has to leave its heap's list, a sample has
    // to be forgotten, and an inset block has no bin's size.
    const bool is_plain = bin < HAK_LARGE_BINS && hak_load_relaxed(&run->owner) == NULL &&
                          run->sampled_blocks == 0 && !hak_mapping_is_inset(run) && !run->is_unkept;
    return HAK_MAP_LARGE(is_plain ? bin : HAK_LARGE_NO_BIN);
}

// Blocks allocated in these ways do not go into BigCache, which serves only requests without zeros and without a rule.
#define UNKEPT_WAYS (HAK_WAY_UNKEPT | HAK_WAY_UNMAP | HAK_WAY_ZERO)

void *hak_large_alloc(size_t bytes, size_t alignment, unsigned ways, bool *zeroed)
{
    const size_t block_bytes = large_block_bytes(bytes);
    const bool is_huge = (ways & HAK_WAY_HUGE) != 0 && block_bytes >= HUGE_LEAST;
    struct hak_run *run = NULL;
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_options.guard_large) != 0)) {
        run = hak_hook_inset_map(bytes, alignment);
    }
    if (run == NULL) {
        run = large_make(block_bytes,
                         alignment,
                         is_huge || (ways & HAK_WAY_UNMAP) != 0,
                         (ways & (HAK_WAY_ZERO | HAK_WAY_GROWN)) == 0);
    }
    if (run == NULL) {
        return NULL;
    }
    if (is_huge && run->units == 0) {
        hak_os_want_huge(run->base, block_bytes, true);
        run->is_ruled_huge = true;
    }
    run->is_unkept = (ways & UNKEPT_WAYS) != 0;
    *zeroed = run->zeroed;
    run->zeroed = false;
    run->sampled_blocks = 0;
    hak_store_relaxed(&run->owner, NULL);
    hak_map_set_one(run->base, large_entry(run));
    return run->base;
}

// From this size on it pays to look which pages are zeros already: most of those are not resident.
#define LOOK_MIN HAK_KIB(256)

void *hak_large_clear(void *block, size_t bytes)
{
    if (bytes < LOOK_MIN) {
        return memset(block, 0, bytes);
    }
    hak_os_clear(block, bytes);
    return block;
}

static void *large_ruled(size_t bytes, size_t alignment, unsigned ways, bool *zeroed)
{
    const size_t ruled = (size_t)1 << HAK_WAYS_ALIGN_LOG2(ways);
    void *block = hak_large_alloc(bytes, ruled > alignment ? ruled : alignment, ways, zeroed);
    if ((ways & HAK_WAY_ZERO) != 0 && block != NULL && !*zeroed) {
        hak_large_clear(block, bytes);
        *zeroed = true;
    }
    return block;
}

// Memory for the request was refused since `mark`: give back what all caches hold, if that can help, and try again.
static HAK_COLD void *large_again(
    struct hak_request request, size_t bytes, unsigned ways, bool *zeroed, uint64_t mark)
{
    if (hak_refusal_is_final(bytes)) {
        return hak_refuse_memory(request, mark);
    }
    struct hak_sweep_retry retry = {.mark = mark};
    void *block;
    do {
        hak_sweep_for_request(&retry);
        block = large_ruled(bytes, request.alignment, ways, zeroed);
    } while (block == NULL && hak_sweep_may_help(&retry, large_block_bytes(bytes)));
    return block != NULL ? block : hak_refuse_memory(request, retry.mark);
}

void *hak_large_serve(struct hak_cache *cache,
                      struct hak_request request,
                      size_t wished,
                      bool *zeroed)
{
    // Runs and mappings begin at a unit, so they also serve small requests with a large alignment.
    const size_t bytes = request.bytes > HAK_SMALL_MAX ? request.bytes : HAK_SMALL_MAX + 1;
    const uint64_t begin = hak_timing_begin();
    hak_sweeper_start_if_owed();
    hak_sweeper_follow(cache);
    hak_hook_follow(cache);
    unsigned ways = hak_hook_ways(request.site);
    if (ways == 0) {
        hak_bigcache_make_room(cache, bytes);
    }
    bool ignored;
    if (zeroed == NULL) {
        zeroed = &ignored;
    } else {
        ways |= HAK_WAY_ZERO; // hence not kept when freed: calloc does not look into BigCache
    }
    ways |= wished > request.alignment ? HAK_WAY_GROWN : 0;
    const uint64_t mark = hak_refusal_mark();
    void *block = wished > request.alignment ? large_ruled(bytes, wished, ways, zeroed) : NULL;
    if (block == NULL) {
        block = large_ruled(bytes, request.alignment, ways, zeroed);
    }
    hak_timing_end(HAK_TIMING_large_alloc, begin);
    if (HAK_UNLIKELY(block == NULL)) {
        block = large_again(request, bytes, ways, zeroed, mark);
    }
    if (HAK_LIKELY(block != NULL)) {
        const unsigned bin = hak_size_class_bin(bytes);
        hak_count(&cache->large_counts[bin < HAK_LARGE_BINS ? bin : HAK_LARGE_BINS], 1);
        hak_hook_large(block, request);
    }
    return block;
}

void hak_large_belongs(void *block, struct hak_cache *heap)
{
    struct hak_run *run = hak_run_of(block);
    if (HAK_UNLIKELY(run == NULL)) {
        return; // the process has begun to die since the request: the block lies apart (dying.h)
    }
    hak_lock_take(&heap->owner.lock);
    hak_store_relaxed(&run->owner, &heap->owner);
    hak_list_push(&heap->owner.larges, &run->link);
    hak_map_set_one(block, large_entry(run));
    hak_lock_drop(&heap->owner.lock);
}

static void large_leave_heap(struct hak_run *run)
{
    struct hak_owner *heap = hak_load_relaxed(&run->owner);
    hak_lock_take(&heap->lock);
    hak_list_remove(&run->link);
    hak_store_relaxed(&run->owner, NULL);
    hak_lock_drop(&heap->lock);
}

static void forget_sample(struct hak_run *run)
{
    if (HAK_UNLIKELY(run->sampled_blocks != 0)) {
        hak_hook_large_ends(run);
    }
}

static struct hak_run *large_take_from_heap(struct hak_cache *heap)
{
    struct hak_run *run = NULL;
    hak_lock_take(&heap->owner.lock);
    if (!hak_list_is_empty(&heap->owner.larges)) {
        run = HAK_LIST_ITEM(heap->owner.larges.next, struct hak_run, link);
        hak_list_remove(&run->link);
        hak_store_relaxed(&run->owner, NULL);
    }
    hak_lock_drop(&heap->owner.lock);
    return run;
}

void hak_large_end_all(struct hak_cache *heap)
{
    struct hak_run *run;
    while ((run = large_take_from_heap(heap)) != NULL) {
        forget_sample(run);
        hak_bigcache_give(run);
    }
}

// The run of `block`, whose `entry` names no owner. Dies unless it is a large block in use.
static struct hak_run *large_of(void *block, uint32_t entry)
{
    struct hak_run *run = hak_run_of(block);
    if (run == NULL || run->state != HAK_RUN_LARGE || hak_tag_of(block) != 0) {
        hak_slab_die_not_live(block); // with a tag: a small block that was there before
    }
    if (run->base != block) {
        hak_misuse_interior(block, (size_t)((char *)block - run->base), run->bytes);
    }
    if (!hak_map_is_large(entry)) {
        hak_misuse_double_free(block, run->bytes);
    }
    return run;
}

static void large_end(struct hak_run *run, void *block, uint32_t entry)
{
    if (!hak_cas_relaxed(hak_map_place(block), &entry, HAK_MAP_NOTHING)) {
        hak_misuse_double_free(block, run->bytes); // another thread was faster by a moment
    }
    if (hak_load_relaxed(&run->owner) != NULL) {
        large_leave_heap(run);
    }
    forget_sample(run);
    hak_bigcache_give(run);
}

void hak_large_free(struct hak_cache *cache, void *block, uint32_t entry)
{
    struct hak_run *run = large_of(block, entry);
    const size_t kept_bytes = entry != HAK_MAP_LARGE(HAK_LARGE_NO_BIN) ? run->bytes : 0;
    if (kept_bytes == 0 || !hak_bigcache_keep_instead(cache, block, kept_bytes)) {
        large_end(run, block, entry);
    }
    hak_sweeper_wanted(kept_bytes);
}

// Resize the block without a copy, unless that would waste memory. False: nothing has changed.
static bool large_fit(struct hak_run *run, size_t bytes)
{
    if (bytes <= HAK_SMALL_MAX) {
        return false;
    }
    if (HAK_UNLIKELY(hak_mapping_is_inset(run))) {
        // Up to half of it may become unused before a copy is worth it.
        return bytes >= run->bytes / 2 && hak_hook_inset_resize(run, bytes);
    }
    const size_t block_bytes = large_block_bytes(bytes);
    if (block_bytes == run->bytes) {
        return true;
    }
    if (run->units == 0) {
        return block_bytes > HAK_MAPPING_MOVED_MIN && hak_mapping_resize(run, block_bytes);
    }
    return block_bytes <= HAK_LARGE_RUN_GROWN && hak_runs_resize(run, block_bytes);
}

// Was it memory that was missing since `mark`, not room behind the block? The kernel refuses an inset block only for want of room.
static bool is_refused(struct hak_run *run, size_t bytes, uint64_t mark)
{
    const int error = hak_refusal_since(mark).error;
    return (error < 0 || (error > 0 && !hak_mapping_is_inset(run))) && !hak_refusal_is_final(bytes);
}

// Addresses or memory are missing: give back what all caches hold, and try again, as a new block would need all its bytes anew.
static HAK_COLD bool large_fit_again(struct hak_run *run, size_t bytes, uint64_t mark)
{
    struct hak_sweep_retry retry = {.mark = mark};
    const size_t more = bytes > run->bytes ? bytes - run->bytes : 0;
    bool done;
    do {
        hak_sweep_for_request(&retry);
        done = large_fit(run, bytes);
    } while (!done && hak_sweep_may_help(&retry, more));
    return done;
}

// The block's sample is forgotten after success only: if the resize is refused, the program keeps the block as it was. A heap's
// block that the kernel has moved is no longer the heap's, as if it had been copied.
void *hak_large_resize(struct hak_run *run, size_t bytes)
{
    const size_t old_bytes = run->bytes;
    const char *old_base = run->base;
    const uint64_t mark = hak_refusal_mark();
    if (!large_fit(run, bytes) &&
        !(is_refused(run, bytes, mark) && large_fit_again(run, bytes, mark))) {
        return NULL;
    }
    forget_sample(run);
    if (HAK_UNLIKELY(run->base != old_base) && hak_load_relaxed(&run->owner) != NULL) {
        large_leave_heap(run);
    }
    hak_map_set_one(run->base, large_entry(run));
    if (run->bytes < old_bytes) {
        hak_sweeper_wanted(0);
    }
    return run->base;
}

void hak_large_leave_room(void *block)
{
    struct hak_run *run = hak_run_of(block);
    if (HAK_UNLIKELY(run != NULL && run->state == HAK_RUN_LARGE && hak_mapping_is_inset(run))) {
        hak_hook_inset_leave_room(run);
    }
}
