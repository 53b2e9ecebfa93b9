// tags.h -- memory tagging, as aarch64 has it (MTE): a pointer may access only memory that has the same tag.
//
// Owns      the instructions for tags, and the system calls for them.
// Threads   any. A wrong tag faults in the thread that calls hak_tags_start, and in those that it starts.
// Fails     hak_tags_start and hak_tags_map return false.
//
// A tag has four bits. A pointer has its tag in the bits from 56 on; each 16 bytes of memory that was mapped for tags have one,
// too. The processor compares the two in each load and store. Fresh memory has tag 0, as have pointers that the kernel returns;
// purged memory has tag 0 again.
//
// Only builds with HAK_MTE (CMake's HAKMEM_MTE) use tags. In other builds no pointer has one, and the functions below compile to
// nothing. A build with HAK_MTE also runs on processors without tags: only hak_tag_of, _off and _on may be called unless
// hak_tags_start has returned true.
#pragma once

#include "base/compiler.h"

enum { HAK_TAG_BYTES = 16, HAK_TAG_SHIFT = 56 };
enum { HAK_TAG_FAULT = 9 }; // si_code of a SIGSEGV: SEGV_MTESERR
#define HAK_TAG_MASK (UINT64_C(0xF) << HAK_TAG_SHIFT)

HAK_INLINE unsigned hak_tag_of(const void *p)
{
    return HAK_MTE ? (uintptr_t)p >> HAK_TAG_SHIFT & 0xF : 0;
}

// The address in a pointer of the program, without its tag.
HAK_INLINE void *hak_tag_off(const void *p)
{
    return HAK_MTE ? (void *)((uintptr_t)p & ~HAK_TAG_MASK) : (void *)(uintptr_t)p;
}

HAK_INLINE void *hak_tag_on(void *plain, unsigned tag)
{
    return (void *)((uintptr_t)plain | (uint64_t)tag << HAK_TAG_SHIFT);
}

#if HAK_MTE
#    define HAK_TAG_ASM(text) ".arch armv8.5-a+memtag\n\t" text

// A random tag, but none whose bit is set in `without`; 0 in a thread for which hak_tags_start has no effect.
HAK_INLINE unsigned hak_tag_draw(uint64_t without)
{
    uint64_t drawn;
    __asm__ volatile(HAK_TAG_ASM("irg %0, sp, %1") : "=r"(drawn) : "r"(without));
    return hak_tag_of((void *)drawn);
}

// Give memory the tag of its pointer. `start` and `bytes` are multiples of HAK_TAG_BYTES.
HAK_INLINE void hak_tag_put(void *start, size_t bytes)
{
    char *to = start;
    const char *end = to + bytes / (2 * HAK_TAG_BYTES) * (2 * HAK_TAG_BYTES);
    while (to != end) {
        __asm__ volatile(HAK_TAG_ASM("st2g %1, [%0], #32") : "+r"(to) : "r"(start) : "memory");
    }
    if (bytes % (2 * HAK_TAG_BYTES) != 0) {
        __asm__ volatile(HAK_TAG_ASM("stg %1, [%0]") : : "r"(to), "r"(start) : "memory");
    }
}

// The pointer with the tag of the memory that it points to.
HAK_INLINE void *hak_tag_seen(void *plain)
{
    uint64_t seen = (uintptr_t)plain;
    __asm__ volatile(HAK_TAG_ASM("ldg %0, [%1]") : "+r"(seen) : "r"(plain) : "memory");
    return (void *)seen;
}

// Let the thread access memory whatever its tag is, or check tags again.
HAK_INLINE void hak_tags_pass(bool any)
{
    if (any) {
        __asm__ volatile(HAK_TAG_ASM("msr tco, #1") : : : "memory");
    } else {
        __asm__ volatile(HAK_TAG_ASM("msr tco, #0") : : : "memory");
    }
}

// Do processor and kernel have tags? Then a wrong tag faults from here on.
HAK_INTERNAL bool hak_tags_start(void);
// Let pages have tags.
HAK_INTERNAL bool hak_tags_map(void *start, size_t bytes);
#else
HAK_INLINE unsigned hak_tag_draw(uint64_t without)
{
    (void)without;
    return 0;
}

HAK_INLINE void hak_tag_put(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
}

HAK_INLINE void *hak_tag_seen(void *plain)
{
    return plain;
}

HAK_INLINE void hak_tags_pass(bool any)
{
    (void)any;
}

HAK_INLINE bool hak_tags_start(void)
{
    return false;
}

HAK_INLINE bool hak_tags_map(void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
    return false;
}
#endif
