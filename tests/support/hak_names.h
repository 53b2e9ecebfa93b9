// hak_names.h -- the malloc family under hakmem's own names.
//
// Included before everything else (-include) where the sanitizer owns malloc:
// the programs in tests/stress then call the allocator under test by the names
// that hakmem.h declares, without a change of their source.
#ifndef HAK_TESTS_SUPPORT_HAK_NAMES_H
#define HAK_TESTS_SUPPORT_HAK_NAMES_H

#ifndef _GNU_SOURCE
#    define _GNU_SOURCE 1
#endif
// First: their declarations of the names below must not be renamed.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <hakmem/hakmem.h>

#define malloc             hak_malloc
#define calloc             hak_calloc
#define realloc            hak_realloc
#define reallocarray       hak_reallocarray
#define free               hak_free
#define aligned_alloc      hak_aligned_alloc
#define memalign           hak_aligned_alloc
#define posix_memalign     hak_posix_memalign
#define malloc_usable_size hak_usable_size
static inline int hak_trim_as_malloc_trim(size_t pad)
{
    (void)pad;
    return hak_trim() > 0;
}
#define malloc_trim hak_trim_as_malloc_trim
// Memory that libc allocates itself is the sanitizer's: no strdup and the like here.

#endif
