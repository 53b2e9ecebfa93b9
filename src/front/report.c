// report.c -- the C library's questions about the heap: mallinfo, malloc_info, malloc_stats,
// malloc_trim, mallopt. Answered with our figures under its names, so that programs and
// exporters that ask get the truth about the allocator that serves them.
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#include "base/format.h"
#include "base/options.h"
#include "cache/sweep.h"
#include "front/override.h"
#include "hakmem/hakmem.h"
#include "os/os.h"

size_t hak_trim(void)
{
    return hak_sweep_everything();
}

#ifndef HAK_NO_OVERRIDE

// As in the C library: 1 when something was given back. `pad` bytes may stay; none do.
static int trim(size_t pad)
{
    (void)pad;
    return hak_trim() > 0;
}

static struct mallinfo2 info2(void)
{
    struct hak_stats stats;
    hak_stats_read(&stats);
    return (struct mallinfo2){
        .arena = stats.mapped_bytes,
        .ordblks = stats.superslab_count,
        .hblks = stats.mapping_count,
        .uordblks = stats.live_bytes,
        .fordblks = stats.mapped_bytes - stats.live_bytes,
        .keepcost = stats.dirty_bytes + stats.kept_bytes,
    };
}

static int as_int(size_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

// The old form holds int: figures above 2 GiB read as INT_MAX instead of wrapping.
static struct mallinfo info(void)
{
    const struct mallinfo2 wide = info2();
    return (struct mallinfo){
        .arena = as_int(wide.arena),
        .ordblks = as_int(wide.ordblks),
        .hblks = as_int(wide.hblks),
        .uordblks = as_int(wide.uordblks),
        .fordblks = as_int(wide.fordblks),
        .keepcost = as_int(wide.keepcost),
    };
}

// 1: accepted. What a program asks of the C library's algorithm has no meaning here; the two
// that limit what waits for reuse have.
static int option(int parameter, int value)
{
    if (value >= 0 && parameter == M_TRIM_THRESHOLD) {
        return hak_option_set("purge_start_bytes", (uint64_t)value);
    }
    return parameter == M_MMAP_THRESHOLD || parameter == M_MMAP_MAX || parameter == M_TOP_PAD ||
           parameter == M_ARENA_MAX || parameter == M_ARENA_TEST || parameter == M_MXFAST ||
           parameter == M_CHECK_ACTION || parameter == M_PERTURB || parameter == M_TRIM_THRESHOLD;
}

// clang-format off: it never settles on such a list
#    define STATS_FIELDS(X) \
        X(mapped_bytes) X(live_bytes) X(live_blocks) \
        X(cached_bytes) X(kept_bytes) X(slab_free_bytes) \
        X(unit_free_bytes) X(dirty_bytes) X(metadata_bytes) \
        X(cache_count) X(superslab_count) X(mapping_count)
// clang-format on

static void print_stats(void)
{
    struct hak_stats stats;
    char text[1024];
    hak_stats_read(&stats);
    size_t length = hak_format(text, sizeof text, "hakmem %s\n", hak_version());
#    define PRINT_FIELD(name) \
        length += hak_format(text + length, sizeof text - length, "%s %z\n", #name, stats.name);
    STATS_FIELDS(PRINT_FIELD)
#    undef PRINT_FIELD
    hak_os_print(text, length);
}

// The C library's document with our elements: <total type=… count=… size=…/>.
static int print_xml(int options, FILE *stream)
{
    struct hak_stats stats;
    if (options != 0) {
        return EINVAL;
    }
    hak_stats_read(&stats);
    fprintf(stream, "<malloc version=\"1\" allocator=\"hakmem %s\">\n", hak_version());
#    define PRINT_FIELD(name) fprintf(stream, "<%s>%zu</%s>\n", #name, stats.name, #name);
    STATS_FIELDS(PRINT_FIELD)
#    undef PRINT_FIELD
    fprintf(stream,
            "<system type=\"current\" size=\"%zu\"/>\n</malloc>\n",
            stats.mapped_bytes + stats.metadata_bytes);
    return ferror(stream) ? -1 : 0;
}

HAK_ALSO(int, malloc_trim, (size_t), trim);
HAK_ALSO(struct mallinfo2, mallinfo2, (void), info2);
HAK_ALSO(struct mallinfo, mallinfo, (void), info);
HAK_ALSO(int, mallopt, (int, int), option);
HAK_ALSO(void, malloc_stats, (void), print_stats);
HAK_ALSO(int, malloc_info, (int, FILE *), print_xml);

#endif
