// probe.h -- places that tracers can watch: USDT probes, one nop each.
//
// Threads   any.
//
// A probe is a nop in the code and a note in section .note.stapsdt of the file. The note tells where the
// nop is, the probe's name, and which registers or memory hold its arguments. A tracer (bpftrace, perf,
// SystemTap, gdb) puts a breakpoint on the nop; without a tracer nothing happens. The format is that of
// SystemTap's "User Space Probe Implementation", version 3, without a semaphore.
//
// Every argument is passed as an unsigned 64-bit value.
#pragma once

#include <stdint.h>

#define HAK_PROBE_TEXT_(provider, name, arguments)                           \
    "990: nop\n"                                                             \
    ".pushsection .note.stapsdt,\"\",\"note\"\n"                             \
    ".balign 4\n"                                                            \
    ".4byte 992f - 991f, 994f - 993f, 3\n"                                   \
    "991: .asciz \"stapsdt\"\n"                                              \
    "992: .balign 4\n"                                                       \
    "993: .8byte 990b\n"                                                     \
    ".8byte _.stapsdt.base\n"                                                \
    ".8byte 0\n"                                                             \
    ".asciz \"" provider "\"\n"                                              \
    ".asciz \"" name "\"\n"                                                  \
    ".asciz \"" arguments "\"\n"                                             \
    "994: .balign 4\n"                                                       \
    ".popsection\n"                                                          \
    ".ifndef _.stapsdt.base\n" /* tells tracers where a prelinked file is */ \
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"  \
    ".weak _.stapsdt.base\n"                                                 \
    ".hidden _.stapsdt.base\n"                                               \
    "_.stapsdt.base: .space 1\n"                                             \
    ".size _.stapsdt.base, 1\n"                                              \
    ".popsection\n"                                                          \
    ".endif\n"

// An argument may stay where it is: a constant, in memory, or in a register.
#define HAK_PROBE_VALUE_(value) "nor"((uint64_t)(value))

#define HAK_PROBE1(provider, name, a) \
    __asm__ volatile(HAK_PROBE_TEXT_(provider, name, "8@%0") : : HAK_PROBE_VALUE_(a))
#define HAK_PROBE2(provider, name, a, b)                          \
    __asm__ volatile(HAK_PROBE_TEXT_(provider, name, "8@%0 8@%1") \
                     :                                            \
                     : HAK_PROBE_VALUE_(a), HAK_PROBE_VALUE_(b))
#define HAK_PROBE3(provider, name, a, b, c)                            \
    __asm__ volatile(HAK_PROBE_TEXT_(provider, name, "8@%0 8@%1 8@%2") \
                     :                                                 \
                     : HAK_PROBE_VALUE_(a), HAK_PROBE_VALUE_(b), HAK_PROBE_VALUE_(c))
