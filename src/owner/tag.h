// tag.h -- an owner's number, as map entries carry it.
#pragma once

#include "base/compiler.h"

// A thread's own tag has none of these bits; a heap's has the first and not the second: it may end at any time, so its blocks are never
// in parcels. That leaves ids for two million owners: a further one would have another's tag.
#define HAK_TAG_HEAP    0x20000000U
#define HAK_TAG_APART   0x40000000U // a companion's, or of what threads share
#define HAK_OWNERS_MOST ((HAK_TAG_HEAP >> 8) - 1)
HAK_INLINE bool hak_tag_is_heap(uint32_t tag)
{
    return (tag & (HAK_TAG_HEAP | HAK_TAG_APART)) == HAK_TAG_HEAP;
}

// Is an entry's tag a thread's own? It has one, and no mark of samples.
HAK_INLINE bool hak_tag_is_threads(uint32_t entry)
{
    return entry > UINT8_MAX && entry < HAK_TAG_HEAP;
}
