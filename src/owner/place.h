// place.h -- a place for a free block, in a magazine or a parcel.
//
// Threads   written by the thread whose magazine or parcel it is in and, at a fence, by a thief (steal.c). ThreadSanitizer
//           does not know membarrier, so under it loads and stores of a place have the order that the barrier gives.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

typedef _Atomic(void *) hak_place;

#if HAK_TSAN
#    define hak_place_load(place)         hak_load_acquire(place)
#    define hak_place_store(place, block) hak_store_release(place, block)
#else
#    define hak_place_load(place)         hak_peek(place)
#    define hak_place_store(place, block) hak_poke((place), (block))
#endif
