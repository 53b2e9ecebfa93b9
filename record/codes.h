// codes.h -- telling the collector which files stacks are of.
//
// Threads   any.
// Fails     never: a file that cannot be told of has no name.
#ifndef HAK_RECORD_CODES_H
#define HAK_RECORD_CODES_H

#include <stdint.h>

#include "base/compiler.h"
#include "channel.h"

// The file of a place that the collector was not told of yet, whom the caller then has to tell; else 0.
HAK_INTERNAL uint32_t hak_code_untold(uintptr_t place);
// The words of the event that tells of it, one by one: put(data, word). How many there will be.
HAK_INTERNAL unsigned hak_code_words(uint32_t number);
HAK_INTERNAL void hak_code_tell(uint32_t number, void (*put)(void *, uint64_t), void *data);

#endif
