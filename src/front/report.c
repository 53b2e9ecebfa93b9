// report.c -- the C library's questions about the heap: mallinfo, malloc_info, malloc_stats,
// malloc_trim, mallopt. Answered with our figures under its names, so that programs and
// exporters that ask get the truth about the allocator that serves them.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#include "base/options.h"
#include "cache/sweep.h"
#include "front/figures.h"
#include "front/override.h"
#include "hakmem/hakmem.h"

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

static void print_stats(void)
{
    hak_figures_print();
}

// The C library's document with our elements: <total type=… count=… size=…/>.
static int print_xml(int options, FILE *stream)
{
    struct hak_figures figures;
    if (options != 0) {
        return EINVAL;
    }
    hak_figures_read(&figures, 0);
    fprintf(stream, "<malloc version=\"1\" allocator=\"hakmem %s\">\n", hak_version());
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const struct hak_class_figures *of_class = &figures.classes[size_class];
        if (of_class->slabs_made != 0) {
            fprintf(stream, "<class bytes=\"%u\"", (unsigned)hak_classes[size_class].bytes);
#    define HAK_FIGURE(name) fprintf(stream, " %s=\"%" PRIu64 "\"", #name, of_class->name);
            HAK_CLASS_FIGURES(HAK_FIGURE)
#    undef HAK_FIGURE
            fprintf(stream, "/>\n");
        }
    }
#    define HAK_FIGURE(name) fprintf(stream, "<%s>%zu</%s>\n", #name, figures.totals.name, #name);
    HAK_TOTALS(HAK_FIGURE)
#    undef HAK_FIGURE
#    define HAK_FIGURE(name) fprintf(stream, "<%s>%" PRIu64 "</%s>\n", #name, figures.name, #name);
    HAK_COUNTERS(HAK_FIGURE)
#    undef HAK_FIGURE
    fprintf(
        stream,
        "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n</malloc>\n",
        figures.totals.mapped_bytes + figures.totals.metadata_bytes,
        (size_t)figures.peak_mapped_bytes + figures.totals.metadata_bytes);
    return ferror(stream) ? -1 : 0;
}

HAK_ALSO(int, malloc_trim, (size_t), trim);
HAK_ALSO(struct mallinfo2, mallinfo2, (void), info2);
HAK_ALSO(struct mallinfo, mallinfo, (void), info);
HAK_ALSO(int, mallopt, (int, int), option);
HAK_ALSO(void, malloc_stats, (void), print_stats);
HAK_ALSO(int, malloc_info, (int, FILE *), print_xml);

#endif
