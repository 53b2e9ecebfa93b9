// env: HAKMEM_NAME_MAPPINGS=1
//
// With name_mappings, /proc/PID/smaps names each mapping of ours, and no other, as hakmem's.
#include "../support/promise.h"

#include <sys/mman.h>
#include <sys/prctl.h>

enum { VMA = 0x53564d41, ANON_NAME = 0 };

// Does the line of the mapping that contains `address` end with our name?
static bool is_named(const void *address)
{
    char line[512];
    bool found = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    HT_CHECK(file != NULL, "no /proc/self/smaps");
    while (!found && fgets(line, sizeof line, file) != NULL) {
        unsigned long start = 0;
        unsigned long end = 0;
        found = sscanf(line, "%lx-%lx ", &start, &end) == 2 && (uintptr_t)address >= start &&
                (uintptr_t)address < end;
    }
    fclose(file);
    HT_CHECK(found, "%p is in no mapping", address);
    return strstr(line, " [anon:hakmem]\n") != NULL;
}

int main(void)
{
    ht_start();
    char *other = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(other != MAP_FAILED, "no memory");
    HT_CHECK(!is_named(other), "memory of others has our name");
    if (prctl(VMA, ANON_NAME, other, 65536, "other") != 0) {
        HT_SKIP("the kernel knows no names of mappings (CONFIG_ANON_VMA_NAME): errno %d", errno);
    }
    for (size_t bytes = 16; bytes < 1024 * HT_MIB; bytes *= 2) {
        char *block = ht_hide(malloc(bytes));
        HT_CHECK(block != NULL, "malloc(%zu) failed", bytes);
        *block = 1;
        HT_CHECK(is_named(block), "a block of %zu bytes has no name", bytes);
        block = ht_hide(realloc(block, bytes * 3));
        HT_CHECK(block != NULL && is_named(block), "what realloc returned has no name");
        free(block);
    }
    return 0;
}
