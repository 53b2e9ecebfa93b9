// format.h -- text without malloc, without locale, without stdio.
//
// Threads   any; no state.
// Fails     never: text that does not fit is cut.
//
// Understands %s (string), %u (unsigned), %z (size_t), %d (int), %p (pointer, as
// 0x…) and %%. Nothing else, on purpose: messages are written from inside malloc.
#pragma once

#include <stdarg.h>

#include "base/compiler.h"

// Write at most `bytes` - 1 characters and a final 0. Returns the length written.
HAK_INTERNAL size_t hak_format(char *text, size_t bytes, const char *format, ...);
HAK_INTERNAL size_t hak_format_list(char *text, size_t bytes, const char *format, va_list list);
