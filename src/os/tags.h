// tags.h -- memory tagging, as aarch64 has it (MTE): a pointer is good for memory that has the same tag.
//
// Owns      the instructions for tags, and what of them the kernel is asked for.
// Threads   any. Whether a wrong tag faults is told each thread: the one that calls hak_tags_start, and those that
//           it starts.
// Fails     hak_tags_start and hak_tags_map return false.
//
// A tag has four bits: those from 56 on of a pointer, and of each 16 bytes of memory that was mapped for it. The
// processor compares the two with each load and store. Fresh memory has tag 0, as a pointer of the kernel's has, and memory
// that was given back has it again.
//
// Only builds with HAK_MTE (CMake's HAKMEM_MTE) know of tags. In the others no pointer has one, and what is below leaves no
// instruction. They may be run on processors without tags too: all but hak_tag_of, _off and _on is called once
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

// The address that a pointer of the program's means.
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

// Any tag by chance, but those whose bit is set in `without`; 0 in a thread that hak_tags_start does not count for.
HAK_INLINE unsigned hak_tag_draw(uint64_t without)
{
    uint64_t drawn;
    __asm__ volatile(HAK_TAG_ASM("irg %0, sp, %1") : "=r"(drawn) : "r"(without));
    return hak_tag_of((void *)drawn);
}

// Give memory the tag of its pointer. Both at multiples of HAK_TAG_BYTES.
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

// A pointer to there, with the memory's own tag.
HAK_INLINE void *hak_tag_seen(void *plain)
{
    uint64_t seen = (uintptr_t)plain;
    __asm__ volatile(HAK_TAG_ASM("ldg %0, [%1]") : "+r"(seen) : "r"(plain) : "memory");
    return (void *)seen;
}

// From here on the thread may touch memory whose tag it does not know, or from here on no more.
HAK_INLINE void hak_tags_pass(bool any)
{
    if (any) {
        __asm__ volatile(HAK_TAG_ASM("msr tco, #1") : : : "memory");
    } else {
        __asm__ volatile(HAK_TAG_ASM("msr tco, #0") : : : "memory");
    }
}

// Has the processor tags, and the kernel? Then a wrong one faults from here on.
HAK_INTERNAL bool hak_tags_start(void);
// Let pages of ours have tags.
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
