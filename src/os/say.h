// say.h -- a line for the user, on stderr.
//
// Threads   any. One system call; allocates nothing, takes no lock.
// Fails     never: what does not fit into 512 bytes is cut.
#pragma once

#include <stdarg.h>

#include "base/compiler.h"

// "hakmem: ", the message and a newline. Format: see base/format.h.
HAK_INTERNAL HAK_COLD void hak_say(const char *format, ...);
HAK_INTERNAL HAK_COLD void hak_say_list(const char *format, va_list list);
