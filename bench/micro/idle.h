// idle.h -- calls in place of malloc and free that do nothing.
//
// Owns      one static block that idle_take returns each time.
// Threads   any.
// Fails     never.
//
// They are in a file of their own, so that the compiler knows as little about them as about malloc
// and free, and makes the same loop around them: what remains of its cost is that of the loop.
#ifndef MICRO_IDLE_H
#define MICRO_IDLE_H

#include <stddef.h>

void *idle_take(size_t bytes);
void *idle_take_zeroed(size_t count, size_t bytes);
void idle_give(void *block);

#endif
