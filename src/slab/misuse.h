// misuse.h -- the messages about invalid frees and overwritten memory.
//
// Each function writes one line to stderr and aborts. It allocates nothing and takes no lock.
#pragma once

#include "base/compiler.h"

HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_double_free(const void *block, size_t bytes);
// `p` is no longer the start of a block: other blocks lie there.
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_reused(const void *p);
// `p` points `offset` bytes into a block of `bytes`.
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_interior(const void *p,
                                                         size_t offset,
                                                         size_t bytes);
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_wild_free(const void *p);
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_wild_realloc(const void *p);
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_freed_realloc(const void *block, size_t bytes);
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_wrong_size(const void *block,
                                                           size_t said,
                                                           size_t bytes);
// `bytes` were asked for, and the byte at `offset`, behind them, was written.
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_overflow(const void *block,
                                                         size_t bytes,
                                                         size_t offset);
// The byte `before` bytes before the block was written.
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_underflow(const void *block,
                                                          size_t bytes,
                                                          size_t before);
HAK_INTERNAL _Noreturn HAK_COLD void hak_misuse_write_after_free(const void *block,
                                                                 size_t bytes,
                                                                 size_t offset);
