// steal.c -- see steal.h.
#include "cache/steal.h"

#include "cache/remote.h"
#include "os/os.h"

// A magazine whose top did not move for this many looks is not in use.
enum { IDLE_LOOKS = 3 };

// Is the block in `fenced` still the magazine's, whose top is `top`? True unless the thread has passed the
// fence. The fence's place must be read after top: a thread that has come back above the fence has put
// a block into that place before.
static bool fence_stands(const struct hak_magazine *magazine, const hak_place *top)
{
    return top > magazine->base + magazine->fence &&
           hak_place_load(&magazine->base[magazine->fence]) == NULL;
}

// Step fenced of steal.pml.
void *hak_steal_fenced(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    void *block = NULL;
    if (magazine->fence != 0 && fence_stands(magazine, hak_cache_top(cache, size_class))) {
        block = magazine->fenced;
        hak_cache_set_top(cache, size_class, magazine->base + magazine->fence);
    }
    magazine->fence = 0;
    return block;
}

// Step unfence of steal.pml.
void hak_steal_unfence(struct hak_cache *cache, unsigned size_class)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    if (magazine->fence != 0 && fence_stands(magazine, hak_cache_top(cache, size_class))) {
        hak_place_store(&magazine->base[magazine->fence], magazine->fenced);
    }
    magazine->fence = 0;
}

// Does it hold at most the one block that a fence leaves to the thread?
static bool is_too_low(const struct hak_magazine *magazine, const hak_place *top)
{
    return top - magazine->base - 2 <= (ptrdiff_t)magazine->bottom;
}

bool hak_steal_has_taken_all(const struct hak_cache *cache, unsigned size_class)
    HAK_REQUIRES(&cache->owner.lock)
{
    const struct hak_magazine *magazine = &cache->magazines[size_class];
    return magazine->fence == 0 && is_too_low(magazine, hak_cache_top(cache, size_class));
}

void hak_steal_note_tops(struct hak_cache *cache) HAK_REQUIRES(&cache->owner.lock)
{
    HAK_EACH_MAGAZINE (cache, i) {
        cache->magazines[i].seen_place = (uint16_t)hak_cache_place(cache, i);
    }
}

// Put up a fence, if the magazine is not in use or `all` is set. True: there is a fence now. Step fence of steal.pml.
static bool fence_put(struct hak_cache *cache, unsigned size_class, bool all)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    hak_place *top = hak_load_acquire(
        &cache->top[hak_cache_top_number(cache, size_class)]); // pairs with: hak_os_barrier_all
    const uint16_t place_of_top = (uint16_t)(top - magazine->base);
    const bool moved = place_of_top != magazine->seen_place;
    magazine->seen_place = place_of_top;
    if (moved) {
        magazine->idle_looks = 0;
    } else if (magazine->idle_looks < IDLE_LOOKS) {
        magazine->idle_looks++;
    }
    if (magazine->fence != 0) {
        return true;
    }
    if (!all && magazine->idle_looks < IDLE_LOOKS) {
        return false;
    }
    if (is_too_low(magazine, top)) {
        return false;
    }
    const ptrdiff_t place = top - magazine->base - 2;
    magazine->fence = (uint32_t)place;
    magazine->fenced =
        hak_swap_acq_rel(&magazine->base[place], NULL); // pairs with: hak_os_barrier_all
    return true;
}

// Flush the fenced block and those below, if `top`, read after the barrier, proves that it is safe. Step judge of steal.pml.
static void fence_judge(struct hak_cache *self,
                        struct hak_cache *cache,
                        unsigned size_class,
                        const hak_place *top) HAK_REQUIRES(&self->owner.lock, &cache->owner.lock)
{
    struct hak_magazine *magazine = &cache->magazines[size_class];
    if (magazine->fence == 0) {
        return;
    }
    if (hak_place_load(&magazine->base[magazine->fence]) != NULL) {
        magazine->fence = 0;
        return;
    }
    if (top <= magazine->base + magazine->fence + 1) {
        return; // undecided
    }
    for (uint32_t i = magazine->bottom + 1; i < magazine->fence; i++) {
        hak_remote_route(self, &cache->owner, hak_place_load(&magazine->base[i]));
    }
    hak_remote_route(self, &cache->owner, magazine->fenced);
    magazine->bottom = magazine->fence;
    magazine->fence = 0;
}

static bool is_none_in_use(const struct hak_cache *cache)
{
    HAK_EACH_MAGAZINE (cache, i) {
        const struct hak_magazine *magazine = &cache->magazines[i];
        if (magazine->fence != 0 || magazine->idle_looks < IDLE_LOOKS) {
            return false;
        }
    }
    return true;
}

// Steps barrier, look and second_barrier of steal.pml.
bool hak_steal_magazines(struct hak_cache *self, struct hak_cache *cache, bool all)
    HAK_REQUIRES(&self->owner.lock, &cache->owner.lock)
{
    bool any = false;
    HAK_EACH_MAGAZINE (cache, i) {
        any |= fence_put(cache, i, all);
    }
    if (!any) {
        return is_none_in_use(cache);
    }
    if (!hak_os_barrier_all()) { // without a barrier, every fence stays undecided
        return false;
    }
    const hak_place *tops[HAK_SMALL_CLASSES];
    HAK_EACH_MAGAZINE (cache, i) {
        tops[i] = hak_load_acquire(
            &cache->top[hak_cache_top_number(cache, i)]); // pairs with: hak_os_barrier_all
    }
    // If other processors may see two stores in another order than they were made, a second barrier is needed
    // before the places are read.
    if (!HAK_STORES_IN_ORDER && !hak_os_barrier_all()) {
        return false;
    }
    HAK_EACH_MAGAZINE (cache, i) {
        fence_judge(self, cache, i, tops[i]);
    }
    return is_none_in_use(cache);
}
