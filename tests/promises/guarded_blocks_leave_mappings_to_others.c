// args in musl: 50000
// with features
// env: HAKMEM_GUARD_LARGE=1
// native only
// timeout: 120
//
// However many guarded blocks there are, none is refused because mappings run out (max_map_count), and the program can still
// map something itself: at most half of the mappings are used for guards, and blocks beyond that have none.
#include "../support/memory.h"
#include "../support/older_kernel.h"

enum { MOST_BLOCKS = 100000, BYTES = 33000 };

static char *blocks[MOST_BLOCKS];
static size_t block_count = MOST_BLOCKS;

static size_t mappings(void)
{
    static char text[65536];
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t lines = 0;
    for (ssize_t got; (got = read(file, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < got; i++) {
            lines += text[i] == '\n';
        }
    }
    close(file);
    return lines;
}

// Is there a guard behind the last page of a block? The kernel cannot read there.
static bool is_guarded(const char *block, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t behind = ((uintptr_t)block + bytes + page - 1) & ~(page - 1);
    int ends[2];
    HT_CHECK(pipe(ends) == 0, "no pipe");
    const ssize_t got = write(ends[1], (const void *)behind, 1);
    close(ends[0]);
    close(ends[1]);
    return got != 1;
}

static void many_blocks(void)
{
    const size_t before = mappings();
    const long most = ht_proc_number("/proc/sys/vm/max_map_count", "");
    for (size_t i = 0; i < block_count; i++) {
        blocks[i] = malloc(BYTES);
        HT_CHECK(blocks[i] != NULL, "refused at %zu", i);
        blocks[i][0] = 1;
    }
    HT_CHECK(is_guarded(blocks[0], BYTES) && is_guarded(blocks[10000], BYTES),
             "a block without a guard");
    HT_CHECK(most < 0 || mappings() - before <= (size_t)most * 5 / 8,
             "%zu mappings more, of %ld",
             mappings() - before,
             most);
    void *own = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HT_CHECK(own != MAP_FAILED, "the program can map nothing: errno %d", errno);
    munmap(own, 4096);
    for (size_t i = 0; i < block_count; i++) {
        HT_CHECK(blocks[i][0] == 1, "block %zu changed", i);
        free(blocks[i]);
    }
    // New blocks have guards again: one of another size, as a thread keeps one of these without guards.
    char *block = malloc(10 * BYTES);
    HT_CHECK(block != NULL && is_guarded(block, 10 * BYTES), "no guard when there is room again");
    free(block);
}

int main(int count, char **arguments)
{
    ht_start();
    if (count > 1) {
        block_count = strtoul(arguments[1], NULL, 10);
    }
    HT_CHECK(block_count <= MOST_BLOCKS, "at most %d", (int)MOST_BLOCKS);
    if (sysconf(_SC_PAGESIZE) > 16384) {
        HT_SKIP("pages as long as a unit");
    }
    ht_on_both_kernels(many_blocks);
    return 0;
}
