// pools.h -- which pool serves a request, as the options tiny_pool, pool and bigcache say.
//
// Threads   any; an option may change at any time, and counts from then on.
//
// A pool that is off leaves its requests to the next larger one. Magazines of its classes are never
// filled, so the fast paths need not check the options.
#pragma once

#include "base/options.h"
#include "meta/size_class.h"

// Was a request ever served by a larger class than its own, because a pool was off or a rule wanted an alignment? It stays
// true: the block may outlive the option or the rule.
HAK_INTERNAL extern _Atomic(bool) hak_pools_went_above;

HAK_INLINE void hak_pools_go_above(void)
{
    if (!hak_load_relaxed(&hak_pools_went_above)) {
        hak_store_relaxed(&hak_pools_went_above, true);
    }
}

// The pool of `size_class` is off: the next larger class whose pool is on, and whose blocks have the same alignment or more.
// HAK_SMALL_CLASSES: there is none, and a large block serves.
HAK_INTERNAL unsigned hak_pools_larger_class(unsigned size_class);

HAK_INLINE bool hak_pools_have(size_t size_class)
{
    return hak_load_relaxed(hak_classes[size_class].bytes <= HAK_TINY_MAX ? &hak_options.tiny_pool
                                                                          : &hak_options.pool) != 0;
}

// The class that serves requests of `size_class`: itself, or hak_pools_larger_class's.
HAK_INLINE unsigned hak_pools_class(unsigned size_class)
{
    return HAK_LIKELY(hak_pools_have(size_class)) ? size_class : hak_pools_larger_class(size_class);
}
