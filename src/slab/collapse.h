// collapse.h -- makes huge pages of what a heap took before it was large. docs/decisions/0008-huge-pages.md.
//
// Threads   any; the caller holds no lock of the arena or a shard.
#pragma once

#include "base/compiler.h"

// A new huge page has been touched: the heap is large and dense. What it took before it was large has small pages, and is often
// what the program uses most. One huge page is made of small ones, of the oldest superslabs: if all of it is in use, at least seven
// eighths are written, and nothing in it was purged.
HAK_INTERNAL void hak_collapse_one(void);

// The process is about to fork. A collapse copies pages that two processes share, so from then on both would have their own: what
// is there now is not collapsed any more, in neither. Takes no lock, also in a signal handler.
HAK_INTERNAL void hak_collapse_note_fork(void);
