// misuse.h -- what the program is told when it frees what it must not.
//
// Each writes one line to stderr and aborts. Nothing is allocated, no lock is taken.
#ifndef HAK_SLAB_MISUSE_H
#define HAK_SLAB_MISUSE_H

#include <stddef.h>

#include "base/compiler.h"

HAK_INTERNAL _Noreturn HAK_COLD void hak_die_double_free(const void *block, size_t bytes);
// `p` points `offset` bytes into a block of `bytes`.
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_interior(const void *p, size_t offset, size_t bytes);
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_wild_free(const void *p);
// `p` was freed as a block that it is not: it has ended, and may be a part of another, or never was ours.
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_not_live(const void *p);
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_wild_realloc(const void *p);
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_freed_realloc(const void *block, size_t bytes);
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_wrong_size(const void *block,
                                                        size_t said,
                                                        size_t bytes);
// `bytes` were asked for, and byte `offset`, behind them, was written.
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_overflow(const void *block,
                                                      size_t bytes,
                                                      size_t offset);
// The byte so many before it was.
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_underflow(const void *block,
                                                       size_t bytes,
                                                       size_t before);
HAK_INTERNAL _Noreturn HAK_COLD void hak_die_write_after_free(const void *block,
                                                              size_t bytes,
                                                              size_t offset);

#endif
