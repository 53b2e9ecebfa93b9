// args in musl: 128
// env: HAKMEM_HUGE_DEAR_US=0
// serial
// native only
// A heap that grows dense, or in large blocks, uses huge pages if the kernel has them, also when it
// grows again; a small heap, and a sparse one, does not pay for them. Huge pages are on here, whatever they cost on this machine.
#include "../support/memory.h"

static bool kernel_gives_huge_pages(void)
{
    char text[64] = "";
    int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || strstr(text, "[never]") != NULL) {
        return false;
    }
    close(fd);
    // The setting is no promise either: check that the kernel has any.
    size_t bytes = 64 * HT_MIB;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(memory != MAP_FAILED, "no memory");
    madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 1, bytes);
    long huge = ht_proc_number(HT_SMAPS, "AnonHugePages");
    munmap(memory, bytes);
    return huge >= (long)(bytes / 2 / HT_KIB);
}

// Are page tables freed with the pages (Linux 6.14)? While they exist, memory that once had small pages gets no huge ones.
static bool kernel_frees_page_tables(void)
{
    const size_t bytes = 16 * HT_MIB;
    const size_t part = 64 * HT_KIB;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(memory != MAP_FAILED, "no memory");
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    memset(memory, 1, bytes);
    for (size_t i = 0; i < bytes; i += part) {
        madvise(memory + i, part, MADV_DONTNEED);
    }
    madvise(memory, bytes, MADV_DONTNEED);
    madvise(memory, bytes, MADV_HUGEPAGE);
    const long before = ht_proc_number(HT_SMAPS, "AnonHugePages");
    memset(memory, 1, bytes);
    const long huge = ht_proc_number(HT_SMAPS, "AnonHugePages") - before;
    munmap(memory, bytes);
    return huge >= (long)(bytes / 2 / HT_KIB);
}

// Blocks of several sizes, freed in the order of allocation: pages go back in parts. The blocks that caches keep are in some
// superslabs, which then have no huge pages.
static void check_comes_again(size_t bytes)
{
    enum { SMALLEST = 32, LARGEST = 256 };
    const size_t most = bytes / ((SMALLEST + LARGEST) / 2);
    void **blocks = ht_map(most * sizeof *blocks);
    long huge = 0;
    for (unsigned turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < most; i++) {
            const size_t size = SMALLEST + i * 7919 % (LARGEST - SMALLEST);
            blocks[i] = malloc(size);
            HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", size);
            memset(blocks[i], 1, size);
        }
        huge = ht_proc_number(HT_SMAPS, "AnonHugePages");
        ht_free_all(blocks, most);
    }
    munmap(blocks, most * sizeof *blocks);
    HT_CHECK(huge >= (long)(bytes / 4 / HT_KIB),
             "%zu bytes of blocks, taken for the third time: %ld KiB are on huge pages, promised "
             "is a quarter",
             bytes,
             huge);
}

// The first `written` bytes of each block are written.
static void check_dense(size_t size, size_t written, size_t bytes)
{
    size_t count = bytes / size;
    void **blocks = ht_map(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        HT_CHECK(blocks[i] != NULL, "malloc(%zu) failed", size);
        memset(blocks[i], 1, written);
    }
    // Of the whole process: pages left by earlier blocks may serve these.
    long huge = ht_proc_number(HT_SMAPS, "AnonHugePages");
    HT_CHECK(huge >= (long)(bytes / 2 / HT_KIB),
             "%zu bytes of blocks of %zu, %zu of each written: %ld KiB are on huge pages, promised "
             "is the half",
             bytes,
             size,
             written,
             huge);
    ht_free_all(blocks, count);
    munmap(blocks, count * sizeof *blocks);
}

// Large blocks that are first allocated and then written, as a program does that knows how much it needs.
static void check_taken_at_once(void)
{
    enum { BLOCKS = 4, BYTES = 16 << 20 };
    void *large[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        large[i] = malloc(BYTES);
        HT_CHECK(large[i] != NULL, "malloc(%d) failed", BYTES);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        memset(large[i], 1, BYTES);
    }
    const long huge = ht_proc_number(HT_SMAPS, "AnonHugePages");
    HT_CHECK(huge >= (long)(BLOCKS * BYTES / 2 / HT_KIB),
             "%d blocks of %d bytes: %ld KiB are on huge pages, promised is the half",
             BLOCKS,
             BYTES,
             huge);
    ht_free_all(large, BLOCKS);
    malloc_trim(0);
}

int main(int count, char **arguments)
{
    ht_start();
    const size_t bytes = (count > 1 ? strtoul(arguments[1], NULL, 10) : 512) * HT_MIB;
    ht_need_memory(HT_GIB);
    if (!kernel_gives_huge_pages()) {
        HT_SKIP("the kernel gives no huge pages");
    }
    const char *mode = getenv("HAKMEM_MODE");
    const bool is_secure = mode != NULL && strcmp(mode, "secure") == 0;
    if (!is_secure) { // where guards follow large blocks
        check_taken_at_once();
    }
    long before = ht_proc_number(HT_SMAPS, "AnonHugePages");
    long rss = ht_rss_kib();
    static void *blocks[4000];
    ht_fill(blocks, 4000, 250);
    // One MiB of blocks: a huge page under them would double it.
    HT_CHECK(ht_proc_number(HT_SMAPS, "AnonHugePages") == before,
             "1 MiB of blocks took a huge page");
    HT_CHECK(
        ht_rss_kib() - rss < 2048, "1 MiB of blocks made %ld KiB resident", ht_rss_kib() - rss);
    ht_free_all(blocks, 4000);
    // Sparse: one page of each block is touched.
    rss = ht_rss_kib();
    for (size_t i = 0; i < 500; i++) {
        blocks[i] = malloc(HT_MIB);
        HT_CHECK(blocks[i] != NULL, "malloc(1 MiB) failed");
        memset(blocks[i], 1, 100);
    }
    HT_CHECK(ht_rss_kib() - rss < 32 * 1024,
             "500 touched pages made %ld KiB resident",
             ht_rss_kib() - rss);
    ht_free_all(blocks, 500);
    // What was used sparsely goes back first, as resident pages stay as they are.
    malloc_trim(0);
    check_dense(64, 64, bytes);
    check_dense(1000, 1000, bytes);
    check_dense(20000, 20000, bytes);
    malloc_trim(0);
    check_dense(1000, 125, bytes); // records of mostly zeros
    check_dense(200, 8, bytes);
    if (!is_secure &&
        kernel_frees_page_tables()) { // in mode secure, blocks wait for their end wherever they are
        malloc_trim(0);
        check_comes_again(128 * HT_MIB);
    }
    return 0;
}
