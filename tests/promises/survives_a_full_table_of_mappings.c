// native only
// When the process has as many mappings as the kernel allows (max_map_count),
// so that mmap, and even munmap in the middle, fail: malloc gives memory or
// NULL with ENOMEM, free works, and afterwards all is as before.
#include "../support/memory.h"

enum { BLOCKS = 300 };

static void *held[BLOCKS];

static void try_all_sizes(void)
{
    for (size_t size = 16; size < 100 * HT_MIB; size += size / 2) {
        errno = 0;
        char *block = malloc(size);
        if (block == NULL) {
            HT_CHECK(errno == ENOMEM, "malloc(%zu): errno is %d, not ENOMEM", size, errno);
            continue;
        }
        block[0] = 1;
        block[size - 1] = 1;
        char *larger = realloc(block, size * 3);
        free(larger != NULL ? larger : block);
    }
}

int main(void)
{
    ht_start();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    char text[32] = "";
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) {
        HT_SKIP("max_map_count is unknown");
    }
    close(fd);
    size_t most = strtoul(text, NULL, 10);
    if (most > 200000) {
        HT_SKIP("max_map_count is %zu: too many to fill", most);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        held[i] = malloc(i * i * 40);
        HT_CHECK(held[i] != NULL, "malloc failed");
        memset(held[i], 1, i * i * 40);
    }
    // Pages with access and without are never merged into one mapping.
    char *pages = mmap(NULL, 2 * most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(pages != MAP_FAILED, "no address space");
    size_t used = 0;
    while (used < most && mprotect(pages + 2 * used * page, page, PROT_READ) == 0) {
        used++;
    }
    HT_CHECK(used < most, "the table never filled");
    try_all_sizes();
    for (size_t i = 0; i < BLOCKS; i++) {
        free(held[i]);
    }
    try_all_sizes();
    munmap(pages, 2 * most * page);
    for (size_t i = 0; i < BLOCKS; i++) {
        held[i] = calloc(1, i * i * 40);
        HT_CHECK(held[i] != NULL, "calloc failed with room for mappings again");
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t j = 0; j < i * i * 40; j++) {
            HT_CHECK(((char *)held[i])[j] == 0, "calloc of %zu: byte %zu is not 0", i * i * 40, j);
        }
        free(held[i]);
    }
    void *large = malloc(64 * HT_MIB);
    HT_CHECK(large != NULL, "no large block with room for mappings again");
    free(large);
    return 0;
}
