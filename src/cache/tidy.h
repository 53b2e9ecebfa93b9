// tidy.h -- by how much slabs grow until magazines are tidied.
//
// Layer     cache
// Threads   none: a pure function.
//
// A block in a magazine holds a whole slab, and its pages. So when a thread needs slabs and these have
// grown, magazines that were not in use meanwhile give their blocks back: what they hold may be all that keeps
// the last phase's slabs. (In use is also one whose top has moved: its slab would only end, and be made again where
// no pages are.) And so does BigCache, whose blocks serve one size only. Growth of all slabs together: where as
// many end as are made nothing is pinned, and what is given back only comes back elsewhere; large blocks that come
// and go pin nothing either. By much: a thirty-second, at least half of a small heap.
#ifndef HAK_CACHE_TIDY_H
#define HAK_CACHE_TIDY_H

#include <stddef.h>

#include "base/bits.h"
#include "base/compiler.h"

#define HAK_TIDY_LEAST HAK_KIB(768)
#define HAK_TIDY_MOST  HAK_MIB(2) // unless the thirty-second is more

HAK_INLINE size_t hak_tidy_step(size_t used)
{
    const size_t half = used / 2 > HAK_TIDY_LEAST ? used / 2 : HAK_TIDY_LEAST;
    const size_t small = half < HAK_TIDY_MOST ? half : HAK_TIDY_MOST;
    return used / 32 > small ? used / 32 : small;
}

#endif
