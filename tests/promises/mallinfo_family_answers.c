// with features
// The functions by which programs inspect glibc's heap answer for this one:
// mallinfo2, mallinfo, malloc_info, malloc_stats, mallopt, malloc_trim.
#include "../support/promise.h"

#include <fcntl.h>

enum { BLOCKS = 1000, BLOCK_BYTES = 10000 };

static void check_mallinfo(void)
{
    static void *blocks[BLOCKS];
    struct mallinfo2 before = mallinfo2();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_BYTES);
        HT_CHECK(blocks[i] != NULL, "malloc failed");
        memset(blocks[i], 1, BLOCK_BYTES);
    }
    struct mallinfo2 full = mallinfo2();
    size_t least = (size_t)BLOCKS * BLOCK_BYTES;
    size_t more = full.uordblks + full.hblkhd - before.uordblks - before.hblkhd;
    HT_CHECK(more >= least && more < least + least / 4,
             "mallinfo2: %zu bytes allocated, uordblks + hblkhd grew by %zu",
             least,
             more);
    HT_CHECK(full.arena + full.hblkhd >= least, "mallinfo2: arena is less than what is in it");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
    HT_CHECK((size_t)(narrow.uordblks + narrow.hblkhd) >= least,
             "mallinfo does not see the blocks");
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    struct mallinfo2 after = mallinfo2();
    size_t held = full.uordblks + full.hblkhd - after.uordblks - after.hblkhd;
    HT_CHECK(held >= least - least / 4, "mallinfo2 fell by %zu after %zu were freed", held, least);
}

// A block with a mapping of its own counts in these fields, and nowhere else.
static void check_mapping(void)
{
    size_t bytes = (size_t)1 << 30;
    struct mallinfo2 before = mallinfo2();
    char *volatile block = malloc(bytes);
    HT_CHECK(block != NULL, "malloc of 1 GiB failed");
    struct mallinfo2 full = mallinfo2();
    free(block);
    struct mallinfo2 after = mallinfo2();
    HT_CHECK(full.hblks == before.hblks + 1 && after.hblks == before.hblks, "hblks is wrong");
    // In mode secure it has guards around it.
    HT_CHECK(full.hblkhd - before.hblkhd >= bytes &&
                 full.hblkhd - before.hblkhd < bytes + bytes / 8,
             "of 1 GiB in a mapping hblkhd has %zu",
             full.hblkhd - before.hblkhd);
    HT_CHECK(after.hblkhd == before.hblkhd, "hblkhd keeps what has gone");
    HT_CHECK(full.uordblks - before.uordblks < bytes / 8, "uordblks has the mapping, too");
    HT_CHECK(full.arena - before.arena < bytes / 8, "arena has the mapping, too");
}

static size_t number_behind(const char *text, const char *what)
{
    const char *found = strstr(text, what);
    HT_CHECK(found != NULL, "no %s", what);
    return strtoull(found + strlen(what), NULL, 10);
}

// A heap at rest gives the same figures under each name. The buffer of the document is allocated before.
static void check_agreement(void)
{
    static char text[65536];
    char *volatile block = malloc((size_t)1 << 30);
    FILE *stream = fmemopen(text, sizeof text, "w");
    HT_CHECK(block != NULL && stream != NULL, "no memory");
    setvbuf(stream, NULL, _IONBF, 0);
    HT_CHECK(malloc_info(0, stream) == 0, "malloc_info failed");
    struct mallinfo2 info = mallinfo2();
    HT_CHECK(malloc_info(0, stream) == 0, "malloc_info failed");
    const char *all = strstr(text, "</heap>");
    size_t fast_bytes = number_behind(strstr(all, "type=\"fast\""), "size=\"");
    size_t rest_bytes = number_behind(strstr(all, "type=\"rest\""), "size=\"");
    HT_CHECK(number_behind(all, "type=\"fast\" count=\"") == info.smblks, "smblks is not fast's");
    HT_CHECK(number_behind(all, "type=\"rest\" count=\"") == info.ordblks, "ordblks is not rest's");
    HT_CHECK(number_behind(all, "type=\"mmap\" count=\"") == info.hblks, "hblks is not mmap's");
    HT_CHECK(number_behind(strstr(all, "type=\"mmap\""), "size=\"") == info.hblkhd,
             "hblkhd is not mmap's");
    HT_CHECK(fast_bytes == info.fsmblks, "fsmblks is not fast's");
    HT_CHECK(fast_bytes + rest_bytes == info.fordblks, "fordblks is not fast and rest");
    HT_CHECK(number_behind(all, "<system type=\"current\" size=\"") == info.arena,
             "arena is not the system's");
    HT_CHECK(info.uordblks + info.fordblks == info.arena, "arena is not what is in it");
    HT_CHECK(number_behind(all, "<mapped_bytes>") == info.arena + info.hblkhd,
             "arena and hblkhd are not what is mapped");
    fclose(stream);
    free(block);
}

static void check_malloc_info(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    HT_CHECK(stream != NULL, "open_memstream failed");
    HT_CHECK(malloc_info(1, stream) != 0, "malloc_info accepts options that do not exist");
    HT_CHECK(malloc_info(0, stream) == 0, "malloc_info failed");
    fclose(stream);
    HT_CHECK(strncmp(text, "<malloc version=", 16) == 0, "malloc_info starts '%.40s'", text);
    HT_CHECK(strstr(text, "</malloc>") != NULL, "malloc_info's XML is not closed");
    static const char *const elements[] = {"<heap nr=\"0\">",
                                           "<size from=",
                                           "<total type=\"fast\" count=",
                                           "<total type=\"rest\" count=",
                                           "<system type=\"current\" size=",
                                           "<system type=\"max\" size=",
                                           "<aspace type=\"total\" size="};
    const char *behind = strstr(text, "</heap>");
    HT_CHECK(behind != NULL, "malloc_info has no heap");
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        const char *first = strstr(text, elements[i]);
        HT_CHECK(first != NULL && first < behind, "the heap of malloc_info has no %s", elements[i]);
        HT_CHECK(i < 2 || strstr(behind, elements[i]) != NULL,
                 "malloc_info has no %s for all",
                 elements[i]);
    }
    free(text);
}

// malloc_stats prints to stderr only.
static void check_malloc_stats(void)
{
    int pipe_ends[2];
    HT_CHECK(pipe(pipe_ends) == 0, "pipe failed");
    int saved = dup(STDERR_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    malloc_stats();
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(pipe_ends[1]);
    char text[65536];
    ssize_t length = read(pipe_ends[0], text, sizeof text);
    HT_CHECK(length > 0, "malloc_stats printed nothing");
    text[length < (ssize_t)sizeof text ? length : length - 1] = '\0';
    HT_CHECK(strstr(text, "  counted_allocations  counted_misses\n") != NULL,
             "malloc_stats has columns without a gap");
    close(pipe_ends[0]);
    close(saved);
}

int main(void)
{
    ht_start();
    check_mallinfo();
    check_mapping();
    check_agreement();
    check_malloc_info();
    check_malloc_stats();
    HT_CHECK(mallopt(M_MMAP_THRESHOLD, 1024 * 1024) == 1, "mallopt(M_MMAP_THRESHOLD) refused");
    HT_CHECK(mallopt(M_TRIM_THRESHOLD, 1024 * 1024) == 1, "mallopt(M_TRIM_THRESHOLD) refused");
    HT_CHECK(mallopt(M_ARENA_MAX, 1) == 1, "mallopt(M_ARENA_MAX) refused");
    int trimmed = malloc_trim(0);
    HT_CHECK(trimmed == 0 || trimmed == 1, "malloc_trim returned %d", trimmed);
    return 0;
}
