// cpu.h -- what the processor supports.
#pragma once

#include <stdbool.h>

// May files that define HAK_IS_WIDE (compiler.h) be called? __builtin_cpu_supports is no help: in every program its
// constructor asks the processor a dozen questions, of which each takes 7 microseconds in a virtual machine. Call this once.
#if defined(__x86_64__)
#    include <cpuid.h>

// The processor has AVX2, and the kernel saves its registers: Intel's manual, volume 1, 14.7.1.
__attribute__((target("xsave"))) static inline bool hak_cpu_is_wide(void)
{
    const unsigned saves = 1U << 27; // OSXSAVE
    const unsigned avx2 = 1U << 5;
    const unsigned vectors = 6; // XMM and YMM
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & saves) != 0 &&
           (__builtin_ia32_xgetbv(0) & vectors) == vectors &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & avx2) != 0;
}
#else
static inline bool hak_cpu_is_wide(void)
{
    return true;
}
#endif
