// native only
// When the process has as many mappings as the kernel allows (max_map_count),
// so that mmap, mremap to another place, and even munmap in the middle, fail:
// malloc returns memory or NULL with ENOMEM, earlier blocks stay as they were,
// free works, and afterwards everything is as before.
#include "../support/memory.h"

enum { BLOCKS = 300 };

// Above 512 MiB a block has a mapping of its own. Untouched, it costs addresses only.
#define MAPPING_BYTES (600 * HT_MIB)

static unsigned char *held[BLOCKS];

static size_t held_bytes(size_t i)
{
    return i * i * 40;
}

static void check_held(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t j = 0; j < held_bytes(i); j++) {
            HT_CHECK(held[i][j] == (unsigned char)i, "byte %zu of %zu changed", j, held_bytes(i));
        }
    }
}

// It grows, in place or elsewhere, or is refused and stays.
static void *try_to_grow(unsigned char *lone)
{
    errno = 0;
    unsigned char *larger = realloc(lone, 2 * MAPPING_BYTES);
    HT_CHECK(larger != NULL || errno == ENOMEM, "realloc: errno is %d, not ENOMEM", errno);
    lone = larger != NULL ? larger : lone;
    HT_CHECK(lone[0] == 1 && lone[MAPPING_BYTES - 1] == 2, "a large block changed");
    return lone;
}

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
    if (most > 2000000) {
        HT_SKIP("max_map_count is %zu: too many to fill", most);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        held[i] = malloc(held_bytes(i));
        HT_CHECK(held[i] != NULL, "malloc failed");
        memset(held[i], (int)i, held_bytes(i));
    }
    unsigned char *lone = malloc(MAPPING_BYTES);
    unsigned char *other = malloc(MAPPING_BYTES);
    HT_CHECK(lone != NULL && other != NULL, "no block of %zu", MAPPING_BYTES);
    lone[0] = 1;
    lone[MAPPING_BYTES - 1] = 2;
    // Accessible and inaccessible pages are never merged into one mapping.
    char *pages = mmap(NULL, 2 * most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(pages != MAP_FAILED, "no address space");
    size_t used = 0;
    while (used < most && mprotect(pages + 2 * used * page, page, PROT_READ) == 0) {
        used++;
    }
    HT_CHECK(used < most, "the table never filled");
    try_all_sizes();
    lone = try_to_grow(lone);
    check_held();
    for (size_t i = 0; i < BLOCKS; i++) {
        free(held[i]);
    }
    free(other);
    malloc_trim(0);
    try_all_sizes();
    lone = try_to_grow(lone);
    munmap(pages, 2 * most * page);
    for (size_t i = 0; i < BLOCKS; i++) {
        held[i] = calloc(1, held_bytes(i));
        HT_CHECK(held[i] != NULL, "calloc failed with room for mappings again");
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t j = 0; j < held_bytes(i); j++) {
            HT_CHECK(held[i][j] == 0, "calloc of %zu: byte %zu is not 0", held_bytes(i), j);
        }
        free(held[i]);
    }
    free(lone);
    void *large = malloc(64 * HT_MIB);
    HT_CHECK(large != NULL, "no large block with room for mappings again");
    free(large);
    return 0;
}
