// env: HAKMEM_HUGE_DEAR_US=0
// serial
// native only
// not secure: nothing is collapsed
// What a heap took while it was small, on small pages, is on huge ones once the heap is large and dense: programs use it most.
// Huge pages are on here, whatever they cost on this machine.
#include "../support/memory.h"

// Does the kernel make huge pages of small ones (Linux 6.1), for memory that asks for huge pages?
static bool kernel_collapses(void)
{
    enum { COLLAPSE = 25, BYTES = 4 << 20 };
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(memory != MAP_FAILED, "no memory");
    madvise(memory, BYTES, MADV_NOHUGEPAGE);
    memset(memory, 1, BYTES);
    madvise(memory, BYTES, MADV_HUGEPAGE);
    const bool done = madvise(memory, BYTES, COLLAPSE) == 0;
    munmap(memory, BYTES);
    return done;
}

// How much of the mapping that `address` lies in is on huge pages.
static long huge_kib_around(const void *address)
{
    static char line[4096];
    const uintptr_t wanted = (uintptr_t)address;
    bool is_in = false;
    FILE *file = fopen("/proc/self/smaps", "re");
    HT_CHECK(file != NULL, "cannot read /proc/self/smaps");
    long kib = -1;
    while (kib < 0 && fgets(line, sizeof line, file) != NULL) {
        unsigned long start;
        unsigned long end;
        if (sscanf(line, "%lx-%lx", &start, &end) == 2) {
            is_in = wanted >= start && wanted < end;
        } else if (is_in) {
            sscanf(line, "AnonHugePages: %ld", &kib);
        }
    }
    fclose(file);
    return kib;
}

int main(void)
{
    enum { BYTES = 100, BLOCKS = (64 << 20) / BYTES, EARLY = (6 << 20) / BYTES, STEP = 1000 };
    ht_need_memory(HT_GIB);
    if (!kernel_collapses()) {
        HT_SKIP("the kernel does not collapse small pages");
    }
    void **blocks = ht_map(BLOCKS * sizeof *blocks);
    ht_fill(blocks, EARLY, BYTES);
    const long before = ht_proc_number(HT_SMAPS, "AnonHugePages");
    ht_fill(blocks + EARLY, BLOCKS - EARLY, BYTES);
    if (ht_proc_number(HT_SMAPS, "AnonHugePages") == before) {
        HT_SKIP("the kernel gives no huge pages");
    }
    long huge = 0;
    for (size_t i = 0; i < EARLY && huge <= 0; i += STEP) {
        huge = huge_kib_around(blocks[i]);
    }
    HT_CHECK(huge > 0, "of a heap of 64 MiB, none of the first 6 is on huge pages");
    return 0;
}
