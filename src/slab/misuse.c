// misuse.c -- see misuse.h. tests/misuse/ checks these texts.
#include "slab/misuse.h"

#include "base/check.h"
#include "base/options.h"

// A magazine accepts a block unchecked: a double free may only be found later, when another free finds the block there twice.
static const char *hint_to_check(void)
{
    return hak_load_relaxed(&hak_options.check) != 0
               ? ""
               : "; HAKMEM_CHECK=1 stops at the second free itself";
}

void hak_misuse_double_free(const void *block, size_t bytes)
{
    hak_die("double free: %p (block of %z bytes) is already free%s", block, bytes, hint_to_check());
}

void hak_misuse_reused(const void *p)
{
    hak_die(
        "double free: %p is already free, and its memory is in use again%s", p, hint_to_check());
}

void hak_misuse_interior(const void *p, size_t offset, size_t bytes)
{
    if (offset == 0) {
        hak_die("invalid free: %p (block of %z bytes) was never allocated", p, bytes);
    }
    hak_die("invalid free: %p points %z bytes into a block of %z bytes; free what malloc returned",
            p,
            offset,
            bytes);
}

void hak_misuse_wild_free(const void *p)
{
    hak_die("invalid free: %p was not allocated by hakmem", p);
}

void hak_misuse_wild_realloc(const void *p)
{
    hak_die("invalid realloc: %p was not allocated by hakmem", p);
}

void hak_misuse_freed_realloc(const void *block, size_t bytes)
{
    hak_die("invalid realloc: %p (block of %z bytes) is free", block, bytes);
}

void hak_misuse_wrong_size(const void *block, size_t said, size_t bytes)
{
    hak_die("wrong size: %p was freed as %z bytes but is a block of %z bytes", block, said, bytes);
}

void hak_misuse_overflow(const void *block, size_t bytes, size_t offset)
{
    hak_die("overflow: byte %z of %p, a block of %z bytes, was written", offset, block, bytes);
}

void hak_misuse_underflow(const void *block, size_t bytes, size_t before)
{
    hak_die("underflow: byte %z before %p, a block of %z bytes, was written", before, block, bytes);
}

void hak_misuse_write_after_free(const void *block, size_t bytes, size_t offset)
{
    hak_die("write after free: byte %z of %p (block of %z bytes) was written after it was freed",
            offset,
            block,
            bytes);
}
