// misuse.c -- see misuse.h. The tests in tests/misuse/ hold these texts.
#include "slab/misuse.h"

#include "base/check.h"
#include "slab/slab.h"

void hak_die_double_free(const void *block, size_t bytes)
{
    hak_die("double free: %p (block of %z bytes) is already free; "
            "HAKMEM_CHECK=1 stops at the second free itself",
            block,
            bytes);
}

void hak_die_interior(const void *p, size_t offset, size_t bytes)
{
    if (offset == 0) {
        hak_die("invalid free: %p (block of %z bytes) was never allocated", p, bytes);
    }
    hak_die("invalid free: %p points %z bytes into a block of %z bytes; free what malloc returned",
            p,
            offset,
            bytes);
}

void hak_die_wild_free(const void *p)
{
    hak_die("invalid free: %p was not allocated by hakmem", p);
}

void hak_die_not_live(const void *p)
{
    const size_t bytes = hak_slab_ended_bytes(p);
    if (bytes != 0) {
        hak_die_double_free(p, bytes);
    }
    if (hak_slab_of(p) != NULL) {
        hak_die("double free: %p is already free, and its memory in use again; "
                "HAKMEM_CHECK=1 stops at the second free itself",
                p);
    }
    hak_die_wild_free(p);
}

void hak_die_wild_realloc(const void *p)
{
    hak_die("invalid realloc: %p was not allocated by hakmem", p);
}

void hak_die_freed_realloc(const void *block, size_t bytes)
{
    hak_die("invalid realloc: %p (block of %z bytes) is free", block, bytes);
}

void hak_die_wrong_size(const void *block, size_t said, size_t bytes)
{
    hak_die("wrong size: %p was freed as %z bytes but is a block of %z bytes", block, said, bytes);
}

void hak_die_overflow(const void *block, size_t bytes, size_t offset)
{
    hak_die("overflow: byte %z of %p was written, a block of %z bytes", offset, block, bytes);
}

void hak_die_underflow(const void *block, size_t bytes, size_t before)
{
    hak_die(
        "underflow: the byte %z before %p was written, a block of %z bytes", before, block, bytes);
}

void hak_die_write_after_free(const void *block, size_t bytes, size_t offset)
{
    hak_die("write after free: byte %z of %p (block of %z bytes) was written after it was freed",
            offset,
            block,
            bytes);
}
