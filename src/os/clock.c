// clock.c -- the clocks of os.h, on Linux, without a system call if the kernel offers that.
//
// The kernel maps a small library into each process, the vDSO. Its functions read the clock from a page that the kernel
// updates (vdso(7)). The C library calls the vDSO, too, but writes errno, which we must not change, and cannot be called before
// it is relocated. So the vDSO's function is looked up here, once, before the program's main.
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/syscall.h"

#if defined(__x86_64__)
#    define CLOCK_NAME "__vdso_clock_gettime"
#else
#    define CLOCK_NAME "__kernel_clock_gettime"
#endif

typedef int (*clock_function)(clockid_t clock, struct timespec *now);

static _Atomic(clock_function) kernel_clock; // NULL: there is none, or it was not looked up yet

// The tables that the vDSO's dynamic section points to. The gABI's chapter 5 describes them.
struct vdso {
    const char *bias; // added to its addresses
    const Elf64_Sym *symbols;
    const char *names;
    const Elf64_Word *hash;
};

static bool vdso_find_tables(struct vdso *vdso, const Elf64_Dyn *entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *place = vdso->bias + entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB) {
            vdso->symbols = place;
        } else if (entry->d_tag == DT_STRTAB) {
            vdso->names = place;
        } else if (entry->d_tag == DT_HASH) {
            vdso->hash = place;
        }
    }
    return vdso->symbols != NULL && vdso->names != NULL;
}

static bool vdso_find(struct vdso *vdso, const char *image)
{
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Phdr *segment = (const void *)(image + header->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    *vdso = (struct vdso){NULL, NULL, NULL, NULL};
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type == PT_LOAD && vdso->bias == NULL) {
            vdso->bias = image + segment[i].p_offset - segment[i].p_vaddr;
        } else if (segment[i].p_type == PT_DYNAMIC) {
            dynamic = (const void *)(image + segment[i].p_offset);
        }
    }
    return vdso->bias != NULL && dynamic != NULL && vdso_find_tables(vdso, dynamic);
}

// The old hash table has the number of symbols. Kernels that leave it out put the names right behind the symbols.
static size_t vdso_symbol_count(const struct vdso *vdso)
{
    const char *symbols = (const char *)vdso->symbols;
    if (vdso->hash != NULL) {
        return vdso->hash[1];
    }
    return vdso->names > symbols ? (size_t)(vdso->names - symbols) / sizeof *vdso->symbols : 0;
}

void hak_os_find_clock(void)
{
    struct vdso vdso;
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (image == NULL || !vdso_find(&vdso, image)) {
        return;
    }
    const size_t count = vdso_symbol_count(&vdso);
    for (size_t i = 0; i < count; i++) {
        const Elf64_Sym *symbol = &vdso.symbols[i];
        if (symbol->st_shndx != SHN_UNDEF &&
            strcmp(vdso.names + symbol->st_name, CLOCK_NAME) == 0) {
            const uintptr_t address = (uintptr_t)(vdso.bias + symbol->st_value);
            hak_store_relaxed(&kernel_clock, (clock_function)address);
        }
    }
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    const clock_function read = hak_load_relaxed(&kernel_clock);
    if ((read == NULL || read(clock, &now) != 0) &&
        hak_syscall(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0) != 0) {
        return 0; // the clock of a thread that has ended; or a sandbox
    }
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t hak_os_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t hak_os_about_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC_COARSE);
}

uint64_t hak_os_date_ns(void)
{
    return clock_ns(CLOCK_REALTIME_COARSE);
}

uint64_t hak_os_processor_ns(int thread)
{
    // The kernel has a clock for each thread. The clock's number is the thread's, inverted, above three bits. They say that the
    // clock is a thread's, and that it shows the scheduler's count.
    enum { OF_A_THREAD = 4, BY_THE_SCHEDULER = 2 };
    return clock_ns((clockid_t)(~(unsigned)thread << 3) | OF_A_THREAD | BY_THE_SCHEDULER);
}
