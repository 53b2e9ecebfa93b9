// tag.h -- an owner's number, as map entries carry it.
//
// Layer     owner
#pragma once

#include "base/compiler.h"

// A heap may end at any time, so its blocks are never in parcels. Its tag has the first of these bits and not the second; no other
// tag has. That leaves ids for two million owners: a further one would have another's tag.
#define HAK_TAG_HEAP     0x20000000U
#define HAK_TAG_NO_HEAPS 0x40000000U // those of what threads share
#define HAK_OWNERS_MOST  ((HAK_TAG_HEAP >> 8) - 1)
HAK_INLINE bool hak_tag_is_heap(uint32_t tag)
{
    return (tag & (HAK_TAG_HEAP | HAK_TAG_NO_HEAPS)) == HAK_TAG_HEAP;
}
