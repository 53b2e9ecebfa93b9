// machine.c -- memory and processors of the machine, and limits of the process, as os.h has them, on Linux.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "os/os.h"
#include "os/syscall.h"

// All 0, `mem_unit` too, when the kernel does not tell.
static struct sysinfo machine_now(void)
{
    struct sysinfo now = {.mem_unit = 0};
    const bool is_told = hak_syscall(SYS_sysinfo, (long)&now, 0, 0, 0, 0, 0) == 0;
    return is_told ? now : (struct sysinfo){.mem_unit = 0};
}

// Asked once, before the program's main: later the program may have forbidden the call.
static _Atomic(size_t) memory_bytes;
static _Atomic(size_t) swap_bytes;

size_t hak_os_memory_bytes(void)
{
    if (hak_load_relaxed(&memory_bytes) == 0) {
        const struct sysinfo now = machine_now();
        hak_store_relaxed(&swap_bytes, now.totalswap * now.mem_unit);
        hak_store_relaxed(&memory_bytes,
                          now.mem_unit != 0 ? now.totalram * now.mem_unit : SIZE_MAX);
    }
    return hak_load_relaxed(&memory_bytes);
}

size_t hak_os_memory_and_swap_bytes(void)
{
    const size_t memory = hak_os_memory_bytes();
    return memory != SIZE_MAX ? memory + hak_load_relaxed(&swap_bytes) : SIZE_MAX;
}

size_t hak_os_free_swap_bytes(void)
{
    const struct sysinfo now = machine_now();
    return now.freeswap * now.mem_unit;
}

static unsigned processors_now(void)
{
    uint64_t mask[128]; // the kernel refuses a shorter one than its own: 8,192 processors
    const long bytes = hak_syscall(SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
    unsigned count = 0;
    for (long i = 0; i < bytes / (long)sizeof mask[0]; i++) {
        count += hak_count_bits(mask[i]);
    }
    return count > 0 ? count : 1;
}

// Asked once, as memory_bytes.
unsigned hak_os_processors(void)
{
    static _Atomic(unsigned) known;
    unsigned count = hak_load_relaxed(&known);
    if (count == 0) {
        count = processors_now();
        hak_store_relaxed(&known, count);
    }
    return count;
}

static size_t limit_of(int resource)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    const bool is_told = hak_syscall(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0) == 0;
    return !is_told || limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
}

size_t hak_os_address_limit(void)
{
    return limit_of(RLIMIT_AS);
}

size_t hak_os_data_limit(void)
{
    return limit_of(RLIMIT_DATA);
}
