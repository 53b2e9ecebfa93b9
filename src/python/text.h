// text.h -- a str of CPython's as UTF-8.
//
// Threads   any; it only reads.
#pragma once

#include "base/compiler.h"
#include "python/pages.h"

// Write the str, or only its end if there is no room: the end of a path or a qualified name says most. Its bytes; 0: it is no str.
HAK_INTERNAL size_t hak_text_read(struct hak_pages *pages, uintptr_t str, char *text, size_t room);
