// stacks.h -- numbers for call stacks.
//
// Owns      a table of this process's stacks, outside of the heap; 65,536 of them, the rest are 0.
// Threads   any.
// Fails     hak_stacks_start, when there is no memory for the table.
#ifndef HAK_RECORD_STACKS_H
#define HAK_RECORD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// One more than can be asked for: with it a reader sees that there were more.
#define HAK_STACK_FRAMES_MAX 33

// Keeps so many frames of each stack, and one more where there are more.
HAK_INTERNAL bool hak_stacks_start(unsigned frames);
// In a forked child: its numbers begin anew, as those of every process.
HAK_INTERNAL void hak_stacks_reset(void);
// The number of the calling stack, without this library's own frames, which are places (stacks/code.h). `is_new`: it was given just
// now, and `frames` has to be written to the trace. 0: the table is full.
HAK_INTERNAL uint32_t hak_stack_number(uintptr_t *frames, unsigned *frame_count, bool *is_new);

#endif
