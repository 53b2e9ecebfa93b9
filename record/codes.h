// codes.h -- telling the collector to which files the code in stacks belongs.
//
// Threads   any.
// Fails     never: a file that cannot be told has no name.
#ifndef HAK_RECORD_CODES_H
#define HAK_RECORD_CODES_H

#include <stdint.h>

#include "base/compiler.h"
#include "channel.h"

// The number of a place's file if the collector was not told of it yet, which the caller has to do now; else 0.
HAK_INTERNAL uint32_t hak_code_untold(uintptr_t place);
// Write the event that tells of the file, word by word: put(data, word). hak_code_words says how many words it has.
HAK_INTERNAL unsigned hak_code_words(uint32_t number);
HAK_INTERNAL void hak_code_tell(uint32_t number, void (*put)(void *, uint64_t), void *data);

#endif
