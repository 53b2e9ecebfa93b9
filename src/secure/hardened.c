// hardened.c -- see hardened.h.
#include "secure/hardened.h"

#include <string.h>

#include "base/options.h"
#include "cache/hooks.h"
#include "cache/slow.h"
#include "cache/sweep_cache.h"
#include "cache/sweeper.h"
#include "cache/take.h"
#include "meta/pool.h"
#include "owner/owner.h"
#include "owner/slabs.h"
#include "profile/sample.h"
#include "rules/site.h"

// A stock has room for STOCK_BYTES, but at least for 4 and at most for 256 blocks; a quarter of it moves at a time.
enum { STOCK_LEAST = 4, STOCK_MOST = 256, STOCK_BYTES = HAK_KIB(16), STOCK_PARTS = 4 };
// About so many bytes leave the quarantine in one free: several blocks together, but not thousands of them.
enum { LEAVING_BYTES = HAK_KIB(4), FOREIGN_BLOCKS = 32 };

// The stocks and the quarantine of the cache, made now if it has none. NULL without memory, and for hak_cache_shared.
static struct hak_hardened *hardened_of(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_hardened *hardened = hak_load_relaxed(&cache->hardened);
    if (hardened == NULL && cache != &hak_cache_shared) {
        hardened = hak_pool_take(sizeof *hardened);
        if (hardened != NULL) {
            hardened->cache = cache;
            hardened->chance = hak_harden_seed();
            for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
                hardened->stocks[size_class].bytes = hak_classes[size_class].bytes;
                hardened->stocks[HAK_FOREIGN + size_class].bytes = hak_classes[size_class].bytes;
            }
            hak_store_release(&cache->hardened, hardened); // pairs with: hak_hardened_enter
        }
    }
    return hardened;
}

// Enter the stocks and the quarantine of the thread, made now if it has none. NULL as above.
static struct hak_hardened *enter_own(struct hak_cache *cache)
{
    struct hak_hardened *hardened = hak_hardened_enter(cache);
    while (hardened == NULL) {
        hak_hardened_leave(cache);
        hak_lock_take(&cache->owner.lock);
        const bool has_one = hardened_of(cache) != NULL;
        hak_lock_drop(&cache->owner.lock);
        if (!has_one) {
            return NULL;
        }
        hardened = hak_hardened_enter(cache);
    }
    return hardened;
}

// Make the array of the stock if it has none. False without memory.
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

// May another feature have a say: sampling, a site rule, a guard, an injected failure?
HAK_INLINE bool is_unusual(const struct hak_cache *cache)
{
    return (hak_load_relaxed(&hak_options.sample_bytes) | hak_load_relaxed(&hak_sites.count)) !=
               0 ||
           cache->unguarded >= hak_harden.plain_requests;
}

// A step of malloc or free is a separate function if its caller would have to save registers otherwise.
static HAK_NOINLINE void *take_as_asked(size_t bytes,
                                        struct hak_stock *stock,
                                        struct hak_hardened *hardened,
                                        struct hak_cache *cache)
{
    const struct hak_held picked = hak_hardened_pick(hardened, stock, hak_harden.random_order);
    return hak_hardened_hand_out(cache, picked, stock->bytes, bytes, hak_harden.checks);
}

HAK_INLINE void *take_any(size_t bytes,
                          struct hak_stock *stock,
                          struct hak_hardened *hardened,
                          struct hak_cache *cache)
{
    return HAK_LIKELY(hak_harden.is_secure)
               ? hak_hardened_take_secure(bytes, stock, hardened, cache)
               : take_as_asked(bytes, stock, hardened, cache);
}

void *hak_hardened_malloc(size_t bytes,
                          size_t size_class,
                          const void *site,
                          struct hak_cache *cache,
                          struct hak_hardened *hardened,
                          size_t alignment)
{
    const unsigned served = hak_hardened_class((unsigned)size_class, bytes);
    struct hak_stock *stock = &hardened->stocks[served];
    if (HAK_UNLIKELY(stock->count == 0 || is_unusual(cache))) {
        hak_hardened_leave(cache);
        return hak_hardened_malloc_unusual((struct hak_request){bytes, alignment, site},
                                           size_class);
    }
    cache->unguarded++;
    return take_any(bytes, stock, hardened, cache);
}

// Put free blocks into the slabs of any owners. `locked`: the owner of all of them, whose lock the caller holds; or
// NULL. True when a slab has ended with that. Clang cannot follow one lock after the other.
static bool give_back(struct hak_owner *locked, char **blocks, unsigned count) HAK_UNPROVEN
{
    struct hak_owner *owner = locked;
    bool has_ended = false;
    for (unsigned i = 0; i < count; i++) {
        if (owner == NULL || !hak_owner_is(owner, blocks[i])) {
            if (owner != NULL) {
                hak_lock_drop(&owner->lock);
            }
            owner = hak_owner_lock(blocks[i]);
        }
        has_ended |= hak_slabs_put(owner, hak_run_of(blocks[i]), blocks[i]);
    }
    if (owner != NULL && owner != locked) {
        hak_lock_drop(&owner->lock);
    }
    return has_ended;
}

// Make room in a full stock: a quarter goes into the slabs, the oldest blocks, or with random_order random ones.
static HAK_NOINLINE bool stock_flush(struct hak_hardened *hardened,
                                     struct hak_stock *stock,
                                     bool has_lock)
{
    char *blocks[STOCK_MOST / STOCK_PARTS];
    const unsigned count = stock->room / STOCK_PARTS;
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = hak_harden.random_order ? hak_hardened_pick(hardened, stock, true).block
                                            : stock->blocks[i].block;
    }
    if (!hak_harden.random_order) {
        stock->count -= count;
        memmove(stock->blocks, stock->blocks + count, stock->count * sizeof *stock->blocks);
    }
    return give_back(has_lock ? &hardened->cache->owner : NULL, blocks, count);
}

// Blocks of other owners that leave the quarantine in one free, and go into their slabs together.
struct foreign {
    unsigned count;
    char *blocks[FOREIGN_BLOCKS];
};

static HAK_NOINLINE bool foreign_leave(struct foreign *foreign)
{
    const unsigned count = foreign->count;
    foreign->count = 0;
    return give_back(NULL, foreign->blocks, count);
}

// A block leaves the quarantine whose owner is not the cache, or whose stock is full. True when a slab has ended.
static HAK_NOINLINE bool leave_unusually(struct hak_hardened *hardened,
                                         struct hak_held held,
                                         bool has_lock,
                                         struct foreign *foreign)
{
    struct hak_cache *cache = hardened->cache;
    const uint32_t entry = hak_map_entry(held.block);
    if (HAK_MAP_TAG(entry) != cache->owner.tag) {
        foreign->blocks[foreign->count++] = held.block;
        return foreign->count == FOREIGN_BLOCKS && foreign_leave(foreign);
    }
    struct hak_stock *stock = &hardened->stocks[HAK_MAP_CLASS(entry)];
    if (!stock_start(stock, HAK_MAP_CLASS(entry))) {
        return give_back(has_lock ? &cache->owner : NULL, &held.block, 1);
    }
    const bool has_ended = stock->count == stock->room && stock_flush(hardened, stock, has_lock);
    stock->blocks[stock->count++] = held;
    return has_ended;
}

// Put a block that leaves the quarantine into its stock. False when the stock is full.
HAK_INLINE bool stock_put(struct hak_stock *stock, struct hak_held held)
{
    if (HAK_UNLIKELY(stock->count == stock->room)) {
        return false;
    }
    stock->blocks[stock->count++] = held;
    return true;
}

// The oldest blocks leave the quarantine. True when a slab has ended with that. A block may get into a stock although
// its slab has another owner by now: the code that puts it into its slab looks up the owner again.
static bool oldest_leave(struct hak_hardened *hardened, bool has_lock)
{
    const bool is_full = hak_hardened_behind(hak_load_relaxed(&hardened->next)) == hardened->first;
    const size_t least = is_full ? 0 : hak_harden.quarantine_bytes;
    size_t first = hardened->first;
    size_t bytes = hardened->bytes;
    const size_t enough = bytes > least + LEAVING_BYTES ? bytes - LEAVING_BYTES : least;
    bool has_ended = false;
    struct foreign foreign;
    foreign.count = 0;
    hak_store_relaxed(&hardened->was_bare, false);
    while (bytes > enough) {
        const struct hak_held *oldest = &hardened->held[first];
        struct hak_stock *stock = &hardened->stocks[hardened->kinds[first]];
        first = hak_hardened_behind(first);
        bytes -= stock->bytes;
        if (HAK_UNLIKELY(!stock_put(stock, *oldest))) {
            has_ended |= leave_unusually(hardened, *oldest, has_lock, &foreign);
        }
    }
    if (HAK_UNLIKELY(foreign.count != 0)) {
        has_ended |= foreign_leave(&foreign);
    }
    hardened->first = (uint32_t)first;
    hardened->bytes = bytes;
    return has_ended;
}

// The last step of a free that fills the quarantine.
void hak_hardened_leave_late(struct hak_hardened *hardened)
{
    const bool has_ended = oldest_leave(hardened, false);
    hak_hardened_leave(hardened->cache);
    hak_sweep_cache_if_due(hardened->cache);
    if (has_ended) {
        hak_sweeper_wanted(0);
    }
}

void hak_hardened_free_unusual(void *block)
{
    const uint32_t entry = hak_map_entry(block);
    if (HAK_UNLIKELY(hak_map_is_sampled(entry))) {
        hak_sample_end(block);
    }
    hak_slow_free_rest(block, entry & ~HAK_MAP_SAMPLED);
}

// Free a block that is too long for the tuned path, or that has not all checks of mode secure.
static HAK_NOINLINE void give_as_asked(
    char *block, size_t bytes, uint32_t size_class, hak_state *state, struct hak_hardened *hardened)
{
    hak_hardened_give(
        hardened, (struct hak_held){block, state}, bytes, size_class, hak_harden.checks);
}

void hak_hardened_free(void *block, struct hak_cache *cache, struct hak_hardened *hardened)
{
    struct hak_held held = {.block = block};
    const uint32_t size_class = hak_map_entry(block) - cache->owner.tag;
    const struct hak_run *slab = size_class < HAK_SMALL_CLASSES ? hak_slab_owned(block) : NULL;
    if (HAK_UNLIKELY(slab == NULL || !slab->is_hardened ||
                     !hak_states_is_used(slab, size_class, &held))) {
        hak_hardened_leave(cache);
        hak_hardened_free_unusual(block);
        return;
    }
    const size_t bytes = hak_classes[size_class].bytes;
    if (HAK_LIKELY(bytes <= hak_harden.usual_bytes)) {
        hak_hardened_give_secure(held.block, bytes, size_class, held.state, hardened);
    } else {
        give_as_asked(held.block, bytes, size_class, held.state, hardened);
    }
}

// Clang cannot follow a lock that the caller may hold.
bool hak_hardened_hold(struct hak_cache *cache,
                       struct hak_held held,
                       unsigned size_class,
                       bool has_lock) HAK_UNPROVEN
{
    struct hak_hardened *hardened = has_lock ? hardened_of(cache) : enter_own(cache);
    if (hardened == NULL) {
        return give_back(has_lock ? &cache->owner : NULL, &held.block, 1);
    }
    const bool is_own = HAK_MAP_TAG(hak_map_entry(held.block)) == cache->owner.tag;
    const unsigned kind = is_own ? size_class : HAK_FOREIGN + size_class;
    hak_hardened_put(hardened, held, kind);
    const bool has_ended = hak_hardened_add(hardened, hak_classes[size_class].bytes) &&
                           oldest_leave(hardened, has_lock);
    if (!has_lock) {
        hak_hardened_leave(cache);
    }
    return has_ended;
}

// Put blocks that came out of slabs into the stock. Those of slabs that were made before the options
// were known have no states: the first of them is returned, the others go back into their slabs.
static void *stock_add(struct hak_cache *cache,
                       struct hak_stock *stock,
                       void **blocks,
                       unsigned got) HAK_REQUIRES(&cache->owner.lock)
{
    void *plain = NULL;
    for (unsigned i = 0; i < got; i++) {
        struct hak_run *slab = hak_run_of(blocks[i]);
        const size_t offset = (size_t)((char *)blocks[i] - slab->base);
        if (hak_states_exist(slab)) {
            const uint32_t index = hak_size_class_index(&hak_classes[slab->size_class], offset);
            stock->blocks[stock->count++] =
                (struct hak_held){blocks[i], hak_states_of(slab) + index};
        } else if (plain == NULL) {
            plain = blocks[i];
        } else {
            hak_slabs_put(&cache->owner, slab, blocks[i]);
        }
    }
    return plain;
}

// Take one block from a slab when there is no memory for a stock.
static void *take_one(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->owner.lock)
{
    void *block = hak_take_one(cache, size_class);
    struct hak_held one;
    struct hak_stock stock = {.blocks = &one, .count = 0, .room = 1};
    if (block != NULL && stock_add(cache, &stock, &block, 1) == NULL) {
        return hak_states_take(one, hak_classes[size_class].bytes, bytes, hak_harden.checks);
    }
    return block;
}

void *hak_hardened_refill(struct hak_cache *cache, unsigned size_class, size_t bytes)
    HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_hardened *hardened = hardened_of(cache);
    if (hardened == NULL || !stock_start(&hardened->stocks[size_class], size_class)) {
        return take_one(cache, size_class, bytes);
    }
    struct hak_stock *stock = &hardened->stocks[size_class];
    hak_store_relaxed(&hardened->was_bare, false);
    if (stock->count == 0) {
        void *blocks[STOCK_MOST / STOCK_PARTS];
        const unsigned got = hak_take_many(cache, size_class, blocks, stock->room / STOCK_PARTS);
        void *plain = stock_add(cache, stock, blocks, got);
        if (plain != NULL || got == 0) {
            return plain;
        }
    }
    return take_any(bytes, stock, hardened, cache);
}

// Put a free block into its slab. The lock of another owner is only tried, as waiting for it would break the order of the ranks.
// False: the block has to stay where it is. A parcel is no way out: without memory for one, a link would be written into the
// block.
static bool go_home(struct hak_cache *cache, char *block) HAK_REQUIRES(&cache->owner.lock)
{
    if (hak_owner_is(&cache->owner, block)) {
        hak_slabs_put(&cache->owner, hak_run_of(block), block);
        return true;
    }
    struct hak_owner *owner = hak_owner_or_end(block);
    if (!hak_lock_try(&owner->lock)) {
        return false;
    }
    const bool is_owner = hak_owner_is(owner, block);
    if (is_owner) {
        hak_slabs_put(owner, hak_run_of(block), block);
    }
    hak_lock_drop(&owner->lock);
    return is_owner;
}

// The same for all blocks in quarantine. Those that have to stay move to its end.
static void quarantine_go_home(struct hak_cache *cache, struct hak_hardened *hardened)
    HAK_REQUIRES(&cache->owner.lock)
{
    uint32_t place = hak_load_relaxed(&hardened->next);
    uint32_t first = place;
    hardened->bytes = 0;
    while (place != hardened->first) {
        place = (place + HAK_QUARANTINE_BLOCKS - 1) % HAK_QUARANTINE_BLOCKS;
        if (!go_home(cache, hardened->held[place].block)) {
            first = (first + HAK_QUARANTINE_BLOCKS - 1) % HAK_QUARANTINE_BLOCKS;
            hardened->held[first] = hardened->held[place];
            hardened->kinds[first] = hardened->kinds[place];
            hardened->bytes += hardened->stocks[hardened->kinds[first]].bytes;
        }
    }
    hardened->first = first;
}

// Put all blocks of the quarantine and the stocks into their slabs. False when some had to stay.
static bool flush(struct hak_cache *cache, struct hak_hardened *hardened)
    HAK_REQUIRES(&cache->owner.lock)
{
    quarantine_go_home(cache, hardened);
    bool is_empty = hardened->bytes == 0;
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_stock *stock = &hardened->stocks[size_class];
        uint32_t left = 0;
        for (uint32_t i = 0; i < stock->count; i++) {
            if (!go_home(cache, stock->blocks[i].block)) {
                stock->blocks[left++] = stock->blocks[i];
            }
        }
        stock->count = left;
        is_empty &= left == 0;
    }
    return is_empty;
}

static void note_bare(struct hak_hardened *hardened)
{
    hak_store_relaxed(&hardened->bare_next, hak_load_relaxed(&hardened->next));
    hak_store_relaxed(&hardened->was_bare, true);
}

void hak_hook_flush(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_hardened *hardened = hak_load_relaxed(&cache->hardened);
    if (hardened != NULL && flush(cache, hardened)) {
        note_bare(hardened);
    }
}

// Is the cache still as empty as a flush left it, without a refill or a free since? (`next` cannot come around unnoticed: the ring
// is full before that, and then the oldest blocks leave.) Certain with the lock while the thread is not inside; else a hint.
bool hak_hook_is_bare(struct hak_cache *cache)
{
    const struct hak_hardened *hardened =
        hak_load_acquire(&cache->hardened); // pairs with: hak_hook_empty
    return hardened == NULL ||
           (hak_load_relaxed(&hardened->was_bare) &&
            hak_load_relaxed(&hardened->next) == hak_load_relaxed(&hardened->bare_next));
}

// Steps take, look and put_back of quarantine.pml.
bool hak_hook_empty(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_hardened *hardened = hak_load_relaxed(&cache->hardened);
    if (hak_hook_is_bare(cache)) {
        return true;
    }
    hak_store_relaxed(&cache->hardened, NULL);
    const bool is_empty = hak_os_barrier_all() &&
                          !hak_load_acquire(&cache->is_inside) && // pairs with: hak_hardened_leave
                          flush(cache, hardened);
    if (is_empty) {
        note_bare(hardened);
    }
    hak_store_release(&cache->hardened, hardened); // pairs with: hak_hardened_enter
    return is_empty;
}

void hak_hardened_end(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_hardened *hardened = hak_load_relaxed(&cache->hardened);
    if (hardened == NULL) {
        return;
    }
    hak_store_relaxed(&cache->hardened, NULL);
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        struct hak_stock *stock = &hardened->stocks[size_class];
        if (stock->blocks != NULL) {
            hak_pool_give(stock->blocks, stock->room * sizeof *stock->blocks);
        }
    }
    hak_pool_give(hardened, sizeof *hardened);
}

void hak_hook_forget(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    struct hak_hardened *hardened = hak_load_relaxed(&cache->hardened);
    if (hardened == NULL) {
        return;
    }
    hardened->first = hak_load_relaxed(&hardened->next);
    hardened->bytes = 0;
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        hardened->stocks[size_class].count = 0;
    }
}
