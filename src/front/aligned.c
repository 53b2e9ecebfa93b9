// aligned.c -- aligned_alloc, posix_memalign, memalign, valloc, pvalloc.
//
// A block lies at a multiple of its size from a 64 KiB boundary, so a class whose
// size is a multiple of the alignment is aligned by itself: no padding, and free()
// needs to know nothing.
#include <errno.h>

#include "base/bits.h"
#include "cache/fast_path.h"
#include "cache/refuse.h"
#include "cache/seen.h"
#include "front/alloc.h"
#include "front/override.h"
#include "hakmem/hakmem.h"
#include "os/os.h"

unsigned hak_aligned_class(size_t alignment, size_t bytes)
{
    if (alignment > HAK_SMALL_MAX || bytes > HAK_SMALL_MAX) {
        return HAK_SMALL_CLASSES;
    }
    const size_t least = hak_align_up(bytes == 0 ? 1 : bytes + hak_seen_behind_bytes, alignment);
    if (least > HAK_SMALL_MAX) {
        return HAK_SMALL_CLASSES;
    }
    unsigned size_class = (unsigned)(least <= HAK_TINY_MAX ? hak_size_class_of_tiny(least)
                                                           : hak_size_class_of_small(least));
    while (size_class < HAK_SMALL_CLASSES && hak_classes[size_class].bytes % alignment != 0) {
        size_class++;
    }
    return size_class;
}

void *hak_alloc_aligned(size_t alignment, size_t bytes, const void *site)
{
    const unsigned size_class = hak_aligned_class(alignment, bytes);
    return size_class < HAK_SMALL_CLASSES
               ? hak_cache_alloc_for(hak_cache_self, bytes, size_class, alignment, site)
               : hak_alloc_large((struct hak_request){bytes, alignment, site}, 1, NULL);
}

void *hak_aligned_alloc(size_t alignment, size_t bytes)
{
    if (!hak_is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return hak_alloc_aligned(alignment, bytes, HAK_SITE);
}

int hak_posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (!hak_is_power_of_two(alignment) || alignment % sizeof(void *) != 0) {
        return EINVAL;
    }
    const int before = errno; // POSIX: errno is not set
    void *got = hak_alloc_aligned(alignment, bytes, HAK_SITE);
    if (got == NULL) {
        errno = before;
        return ENOMEM;
    }
    *block = got;
    return 0;
}

void *hak_memalign(size_t alignment, size_t bytes)
{
    // As the C library's: rounds an alignment up to a power of two.
    if (alignment > (SIZE_MAX >> 1) + 1) {
        errno = EINVAL;
        return NULL;
    }
    return hak_alloc_aligned(hak_power_of_two_above(alignment), bytes, HAK_SITE);
}

static HAK_MAYBE_UNUSED void *hak_valloc(size_t bytes)
{
    return hak_alloc_aligned(hak_os_page_bytes(), bytes, HAK_SITE);
}

static HAK_MAYBE_UNUSED void *hak_pvalloc(size_t bytes)
{
    const size_t page = hak_os_page_bytes();
    if (bytes > PTRDIFF_MAX) {
        return hak_refuse(HAK_REFUSE_THRESHOLD, (struct hak_request){bytes, page, HAK_SITE});
    }
    return hak_alloc_aligned(page, hak_align_up(bytes, page), HAK_SITE);
}

HAK_ALSO(void *, aligned_alloc, (size_t, size_t), hak_aligned_alloc);
HAK_ALSO(int, posix_memalign, (void **, size_t, size_t), hak_posix_memalign);
HAK_ALSO(int, __posix_memalign, (void **, size_t, size_t), hak_posix_memalign);
HAK_ALSO(void *, memalign, (size_t, size_t), hak_memalign);
HAK_ALSO(void *, valloc, (size_t), hak_valloc);
HAK_ALSO(void *, pvalloc, (size_t), hak_pvalloc);
HAK_ALSO(void *, __libc_valloc, (size_t), hak_valloc);
HAK_ALSO(void *, __libc_pvalloc, (size_t), hak_pvalloc);
