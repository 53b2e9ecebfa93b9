// tag.h -- an owner's tag: its number, as map entries contain it.
#pragma once

#include "base/compiler.h"

// A thread's own tag has neither bit. A heap's has the first only: a heap may end at any time, so its blocks are never in parcels.
// That leaves ids for two million owners; further ones would share tags.
#define HAK_TAG_HEAP    0x20000000U
#define HAK_TAG_APART   0x40000000U // a companion's, or that of the shared owners
#define HAK_OWNERS_MOST ((HAK_TAG_HEAP >> 8) - 1)
HAK_INLINE bool hak_tag_is_heap(uint32_t tag)
{
    return (tag & (HAK_TAG_HEAP | HAK_TAG_APART)) == HAK_TAG_HEAP;
}

// Is an entry's tag a thread's own? It has a tag without these bits, and no mark of samples.
HAK_INLINE bool hak_tag_is_threads(uint32_t entry)
{
    return entry > UINT8_MAX && entry < HAK_TAG_HEAP;
}
