// hardened.c -- see hardened.h.
#include "cache/hardened.h"

#include <string.h>

#include "base/options.h"
#include "cache/failure.h"
#include "cache/fast_path.h"
#include "cache/inbox.h"
#include "cache/site.h"
#include "cache/slabs.h"
#include "cache/sweep.h"
#include "meta/pool.h"

// A stock has room for so many blocks, and for so many bytes of them; a quarter of it moves at a time.
enum { STOCK_LEAST = 4, STOCK_MOST = 256, STOCK_BYTES = HAK_KIB(16), STOCK_PARTS = 4 };
// Blocks that one free takes out of the quarantine at most: no free has to wait for thousands.
enum { LEAVING_MAX = 16 };

// The cache's, made now if it has none. NULL: without memory, and for what threads share that have ended.
static struct hak_hardened *hardened_of(struct hak_cache *cache)
{
    if (cache->hardened == NULL && cache != &hak_cache_late) {
        struct hak_hardened *hardened = hak_pool_take(sizeof *hardened);
        if (hardened != NULL) {
            hardened->chance = hak_harden_seed();
            cache->hardened = hardened;
        }
    }
    return cache->hardened;
}

// False without memory.
static bool stock_start(struct hak_stock *stock, unsigned size_class)
{
    const uint32_t fits = STOCK_BYTES / hak_classes[size_class].bytes;
    const uint32_t room = fits < STOCK_LEAST ? STOCK_LEAST : fits > STOCK_MOST ? STOCK_MOST : fits;
    if (stock->blocks == NULL) {
        stock->blocks = hak_pool_take(room * sizeof *stock->blocks);
        stock->room = stock->blocks != NULL ? room : 0;
    }
    return stock->blocks != NULL;
}

// Any of them, or the one that came last.
HAK_INLINE struct hak_held stock_pick(struct hak_hardened *hardened, struct hak_stock *stock)
{
    const struct hak_held last = stock->blocks[--stock->count];
    if (!hak_harden.random_order) {
        return last;
    }
    const uint64_t chance = hak_harden_next(&hardened->chance) >> 32;
    struct hak_held *place = &stock->blocks[chance * (stock->count + 1) >> 32];
    const struct hak_held picked = *place;
    *place = last;
    return picked;
}

void *hak_hardened_malloc(struct hak_cache *cache,
                          size_t bytes,
                          size_t size_class,
                          const void *site)
{
    const unsigned served = hak_hardened_class((unsigned)size_class, bytes);
    struct hak_hardened *hardened = cache->hardened;
    const uint64_t guarded = hak_load_relaxed(&hak_options.guard_sample);
    const bool is_ordinary = served < HAK_SMALL_CLASSES && hardened->stocks[served].count != 0 &&
                             (guarded == 0 || cache->unguarded + 1 < guarded) &&
                             hak_load_relaxed(&hak_options.sample_bytes) == 0 &&
                             !hak_injector_is_on() && !hak_site_has_rules();
    if (HAK_UNLIKELY(!is_ordinary)) {
        return hak_malloc_slowest(bytes, size_class, site);
    }
    cache->unguarded++;
    const struct hak_held picked = stock_pick(hardened, &hardened->stocks[served]);
    hak_states_take(picked, hak_classes[served].bytes, bytes);
    return picked.block;
}

// Put free blocks into their slabs, whoever owns these. `cache`: the heap whose lock is held, and whose they are
// all; or NULL. True when a slab has ended with that. Clang cannot follow one lock after the other.
static bool give_back(struct hak_cache *cache, char **blocks, unsigned count) HAK_UNPROVEN
{
    struct hak_cache *owner = cache;
    bool has_ended = false;
    for (unsigned i = 0; i < count; i++) {
        if (owner == NULL || !hak_cache_owns_locked(owner, blocks[i])) {
            if (owner != NULL) {
                hak_lock_drop(&owner->lock);
            }
            owner = hak_cache_lock_owner(blocks[i]);
        }
        has_ended |= hak_cache_put(owner, hak_slab_of(blocks[i]), blocks[i]);
    }
    if (owner != NULL && owner != cache) {
        hak_lock_drop(&owner->lock);
    }
    return has_ended;
}

// Make room in a full stock: those that have been there longest leave, or any, as they are taken.
static HAK_NOINLINE bool stock_shed(struct hak_cache *cache, struct hak_stock *stock, bool has_lock)
{
    char *blocks[STOCK_MOST / STOCK_PARTS];
    const unsigned count = stock->room / STOCK_PARTS;
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = hak_harden.random_order ? stock_pick(cache->hardened, stock).block
                                            : stock->blocks[i].block;
    }
    if (!hak_harden.random_order) {
        stock->count -= count;
        memmove(stock->blocks, stock->blocks + count, stock->count * sizeof *stock->blocks);
    }
    return give_back(has_lock ? cache : NULL, blocks, count);
}

static HAK_NOINLINE bool strangers_leave(struct hak_hardened *hardened)
{
    const unsigned count = hardened->stranger_count;
    hardened->stranger_count = 0;
    return give_back(NULL, hardened->strangers, count);
}

// A block that has left the quarantine is no cache's, or its stock is full. True when a slab has ended.
static HAK_NOINLINE bool leave_unusually(struct hak_cache *cache,
                                         struct hak_held held,
                                         bool has_lock)
{
    struct hak_hardened *hardened = cache->hardened;
    const uint32_t entry = hak_map_entry(held.block);
    if (HAK_MAP_TAG(entry) != cache->tag) {
        hardened->strangers[hardened->stranger_count++] = held.block;
        return hardened->stranger_count == HAK_STRANGERS && strangers_leave(hardened);
    }
    struct hak_stock *stock = &hardened->stocks[HAK_MAP_CLASS(entry)];
    if (!stock_start(stock, HAK_MAP_CLASS(entry))) {
        return give_back(has_lock ? cache : NULL, &held.block, 1);
    }
    const bool has_ended = stock->count == stock->room && stock_shed(cache, stock, has_lock);
    stock->blocks[stock->count++] = held;
    return has_ended;
}

// The oldest leaves the quarantine, for its stock. False: it has to go elsewhere.
HAK_INLINE bool oldest_leaves(struct hak_cache *cache,
                              struct hak_hardened *hardened,
                              struct hak_held *oldest)
{
    *oldest = hardened->held[hardened->first];
    const uint32_t entry = hak_map_entry(oldest->block);
    const uint32_t size_class = entry - cache->tag;
    hardened->first = (hardened->first + 1) % HAK_QUARANTINE_BLOCKS;
    hardened->count--;
    hardened->bytes -= hak_classes[HAK_MAP_CLASS(entry)].bytes;
    hak_states_let_go(*oldest);
    if (HAK_UNLIKELY(size_class >= HAK_SMALL_CLASSES)) {
        return false;
    }
    struct hak_stock *stock = &hardened->stocks[size_class];
    if (HAK_UNLIKELY(stock->count == stock->room)) {
        return false;
    }
    stock->blocks[stock->count++] = *oldest;
    return true;
}

HAK_INLINE bool is_over(const struct hak_hardened *hardened)
{
    return hardened->bytes > hak_harden.quarantine_bytes ||
           hardened->count == HAK_QUARANTINE_BLOCKS;
}

HAK_INLINE void quarantine_add(struct hak_hardened *hardened, struct hak_held held, size_t bytes)
{
    hardened->held[(hardened->first + hardened->count) % HAK_QUARANTINE_BLOCKS] = held;
    hardened->count++;
    hardened->bytes += bytes;
}

static bool some_leave(struct hak_cache *cache, bool has_lock)
{
    bool has_ended = false;
    for (unsigned left = LEAVING_MAX; left > 0 && is_over(cache->hardened); left--) {
        struct hak_held oldest;
        if (!oldest_leaves(cache, cache->hardened, &oldest)) {
            has_ended |= leave_unusually(cache, oldest, has_lock);
        }
    }
    return has_ended;
}

static HAK_NOINLINE void leave_and_sweep(struct hak_cache *cache, struct hak_held held)
{
    bool has_ended = leave_unusually(cache, held, false);
    has_ended |= some_leave(cache, false);
    if (has_ended) {
        hak_sweep_wanted(0);
    }
}

static HAK_NOINLINE void more_leave(struct hak_cache *cache)
{
    if (some_leave(cache, false)) {
        hak_sweep_wanted(0);
    }
}

// As some_leave, and the most often one does: nothing but a last call, so that no register has to be saved.
static HAK_NOINLINE void one_leaves(struct hak_cache *cache)
{
    struct hak_held oldest;
    if (HAK_UNLIKELY(!oldest_leaves(cache, cache->hardened, &oldest))) {
        leave_and_sweep(cache, oldest);
    } else if (HAK_UNLIKELY(is_over(cache->hardened))) {
        more_leave(cache);
    }
}

HAK_INLINE void free_used(struct hak_cache *cache, struct hak_held held, size_t bytes)
{
    hak_states_hold(held, bytes);
    quarantine_add(cache->hardened, held, bytes);
    if (HAK_LIKELY(is_over(cache->hardened))) {
        one_leaves(cache);
    }
}

// Apart from the others, which call nothing and so save no registers.
static HAK_NOINLINE void free_wide(struct hak_cache *cache, struct hak_held held, size_t bytes)
{
    free_used(cache, held, bytes);
}

void hak_hardened_free(struct hak_cache *cache, void *block)
{
    struct hak_held held = {.block = block};
    const uint32_t size_class = hak_map_entry(block) - cache->tag;
    const struct hak_slab *slab = size_class < HAK_SMALL_CLASSES ? hak_states_slab_of(block) : NULL;
    if (HAK_UNLIKELY(cache->hardened == NULL || slab == NULL || !slab->is_hardened ||
                     !hak_states_is_used(slab, size_class, &held))) {
        hak_free_direct(block);
        return;
    }
    const size_t bytes = hak_classes[size_class].bytes;
    if (bytes > HAK_CANARY_CLEAR_MAX) {
        free_wide(cache, held, bytes);
    } else {
        free_used(cache, held, bytes);
    }
}

bool hak_hardened_hold(struct hak_cache *cache, struct hak_held held, size_t bytes, bool has_lock)
{
    if (hardened_of(cache) == NULL) {
        hak_states_let_go(held);
        return give_back(has_lock ? cache : NULL, &held.block, 1);
    }
    quarantine_add(cache->hardened, held, bytes);
    return some_leave(cache, has_lock);
}

// Blocks that came out of the slabs, into the stock. Those of slabs that were made before the options
// were known have no states: the first of them is returned, the others go back.
static void *stock_add(struct hak_cache *cache,
                       struct hak_stock *stock,
                       void **blocks,
                       unsigned got) HAK_REQUIRES(&cache->lock)
{
    void *plain = NULL;
    for (unsigned i = 0; i < got; i++) {
        struct hak_slab *slab = hak_slab_of(blocks[i]);
        const size_t offset = (size_t)((char *)blocks[i] - slab->base);
        if (hak_slab_has_states(slab)) {
            const uint32_t index = hak_class_index(&hak_classes[slab->size_class], offset);
            stock->blocks[stock->count++] =
                (struct hak_held){blocks[i], hak_slab_states(slab) + index};
        } else if (plain == NULL) {
            plain = blocks[i];
        } else {
            hak_cache_put(cache, slab, blocks[i]);
        }
    }
    return plain;
}

// Without memory for a stock: one block.
static void *take_one(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->lock)
{
    void *block = hak_cache_take(cache, size_class);
    struct hak_held one;
    struct hak_stock stock = {.blocks = &one, .count = 0, .room = 1};
    if (block != NULL && stock_add(cache, &stock, &block, 1) == NULL) {
        hak_states_take(one, hak_classes[size_class].bytes, bytes);
    }
    return block;
}

void *hak_hardened_refill(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->lock)
{
    struct hak_hardened *hardened = hardened_of(cache);
    if (hardened == NULL || !stock_start(&hardened->stocks[size_class], size_class)) {
        return take_one(cache, size_class, bytes);
    }
    struct hak_stock *stock = &hardened->stocks[size_class];
    if (stock->count == 0) {
        void *blocks[STOCK_MOST / STOCK_PARTS];
        const unsigned got =
            hak_cache_take_many(cache, size_class, blocks, stock->room / STOCK_PARTS);
        void *plain = stock_add(cache, stock, blocks, got);
        if (plain != NULL || got == 0) {
            return plain;
        }
    }
    const struct hak_held picked = stock_pick(hardened, stock);
    hak_states_take(picked, hak_classes[size_class].bytes, bytes);
    return picked.block;
}

void hak_hardened_end(struct hak_cache *cache)
{
    if (cache->hardened != NULL && strangers_leave(cache->hardened)) {
        hak_sweep_wanted(0);
    }
}

void hak_hardened_flush(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    struct hak_hardened *hardened = cache->hardened;
    if (hardened == NULL) {
        return;
    }
    for (; hardened->count > 0; hardened->count--) {
        const struct hak_held oldest = hardened->held[hardened->first];
        hardened->first = (hardened->first + 1) % HAK_QUARANTINE_BLOCKS;
        hak_states_let_go(oldest);
        hak_inbox_route(cache, cache, oldest.block);
    }
    hardened->bytes = 0;
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_stock *stock = &hardened->stocks[size_class];
        while (stock->count > 0) {
            hak_inbox_route(cache, cache, stock->blocks[--stock->count].block);
        }
    }
}

void hak_hardened_forget(struct hak_cache *cache) HAK_REQUIRES(&cache->lock)
{
    struct hak_hardened *hardened = cache->hardened;
    if (hardened == NULL) {
        return;
    }
    hardened->count = 0;
    hardened->bytes = 0;
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        hardened->stocks[size_class].count = 0;
    }
}
