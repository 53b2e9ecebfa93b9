// stacks.h -- numbers for call stacks.
//
// Owns      a table of this process's stacks, outside of the heap. It has room for 65,536; the others have number 0.
// Threads   any.
// Fails     hak_stacks_start, when there is no memory for the table.
#ifndef HAK_RECORD_STACKS_H
#define HAK_RECORD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

// One more than can be asked for, so that a reader sees that there were more.
#define HAK_STACK_FRAMES_MAX 33

// Keep so many frames of each stack, and one more if there are more.
HAK_INTERNAL bool hak_stacks_start(unsigned frames);
// In a forked child: begin new numbers, as every process does.
HAK_INTERNAL void hak_stacks_reset(void);
// The number of the calling stack, without this library's own frames; 0: the table is full. `frames` are places (stacks/code.h).
// `is_new`: the number is new, and the caller has to write `frames` to the trace.
HAK_INTERNAL uint32_t hak_stack_number(uintptr_t *frames, unsigned *frame_count, bool *is_new);

#endif
