// libc_report.c -- mallinfo, malloc_info and malloc_stats: our figures under the C library's names, so that programs and
// exporters get the truth about the allocator that serves them.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "front/override.h"
#include "hakmem/hakmem.h"
#include "report/figures.h"

#ifndef HAK_NO_OVERRIDE

// The results of mallinfo and mallinfo2, as in malloc.h. The second is much newer, and musl has neither. But a program that was
// built where they exist calls them wherever it runs.
#    define FIELDS(type) \
        type arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost
struct narrow {
    FIELDS(int);
};
struct wide {
    FIELDS(size_t);
};

// The C library's "arena" is all memory without a mapping of its own, in use or free. Its "fast" blocks are those in caches. Of the
// other free memory each block counts, and the free units of a superslab count as one.
static struct wide wide_of(const struct hak_figures *figures)
{
    const struct hak_stats *totals = &figures->totals;
    const size_t arena = totals->mapped_bytes - figures->mapping_bytes;
    const size_t used = totals->live_bytes - figures->mapping_live_bytes;
    struct wide wide = {
        .arena = arena,
        .ordblks = totals->superslab_count,
        .hblks = totals->mapping_count,
        .hblkhd = figures->mapping_bytes,
        .fsmblks = totals->cached_bytes,
        .uordblks = used,
        .fordblks = arena - used,
        .keepcost = totals->dirty_bytes + totals->kept_bytes,
    };
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        wide.smblks += figures->classes[size_class].cached_blocks;
        wide.ordblks += figures->classes[size_class].slab_free_blocks;
    }
    return wide;
}

static struct wide wide_info(void)
{
    struct hak_figures figures;
    hak_figures_read(&figures, 0);
    return wide_of(&figures);
}

static int as_int(size_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

// The old form holds int: figures above 2 GiB read as INT_MAX instead of wrapping.
static struct narrow narrow_info(void)
{
    const struct wide wide = wide_info();
    return (struct narrow){
        .arena = as_int(wide.arena),
        .ordblks = as_int(wide.ordblks),
        .smblks = as_int(wide.smblks),
        .hblks = as_int(wide.hblks),
        .hblkhd = as_int(wide.hblkhd),
        .fsmblks = as_int(wide.fsmblks),
        .uordblks = as_int(wide.uordblks),
        .fordblks = as_int(wide.fordblks),
        .keepcost = as_int(wide.keepcost),
    };
}

static void print_stats(void)
{
    hak_figures_print();
}

static void print_classes(const struct hak_figures *figures, FILE *stream)
{
    fprintf(stream, "<sizes>\n");
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const struct hak_class_figures *of_class = &figures->classes[size_class];
        const size_t count = of_class->cached_blocks + of_class->slab_free_blocks;
        const unsigned bytes = hak_classes[size_class].bytes;
        const unsigned below = size_class > 0 ? hak_classes[size_class - 1].bytes : 0;
        if (count > 0) {
            fprintf(stream,
                    "  <size from=\"%u\" to=\"%u\" total=\"%zu\" count=\"%zu\"/>\n",
                    below + 1,
                    bytes,
                    count * bytes,
                    count);
        }
    }
    fprintf(stream, "</sizes>\n");
    for (unsigned size_class = 0; size_class < HAK_SMALL_CLASSES; size_class++) {
        const struct hak_class_figures *of_class = &figures->classes[size_class];
        if (of_class->slabs_made != 0) {
            fprintf(stream, "<class bytes=\"%u\"", (unsigned)hak_classes[size_class].bytes);
#    define HAK_FIGURE(name) fprintf(stream, " %s=\"%" PRIu64 "\"", #name, of_class->name);
            HAK_CLASS_FIGURES(HAK_FIGURE)
#    undef HAK_FIGURE
            fprintf(stream, "/>\n");
        }
    }
}

static void print_total(FILE *stream, const char *type, size_t count, size_t bytes)
{
    fprintf(stream, "<total type=\"%s\" count=\"%zu\" size=\"%zu\"/>\n", type, count, bytes);
}

static void print_element(FILE *stream, const char *name, const char *type, size_t bytes)
{
    fprintf(stream, "<%s type=\"%s\" size=\"%zu\"/>\n", name, type, bytes);
}

// The elements that the C library's document has for each heap and once more for all of them; we have one heap. The figures are
// mallinfo2's; the maximum is known only with mappings included.
static void print_totals(const struct hak_figures *figures, bool is_all, FILE *stream)
{
    const struct wide wide = wide_of(figures);
    print_total(stream, "fast", wide.smblks, wide.fsmblks);
    print_total(stream, "rest", wide.ordblks, wide.fordblks - wide.fsmblks);
    if (is_all) {
        print_total(stream, "mmap", wide.hblks, wide.hblkhd);
    }
    print_element(stream, "system", "current", wide.arena);
    print_element(stream, "system", "max", figures->peak_mapped_bytes);
    print_element(stream, "aspace", "total", wide.arena);
    print_element(stream, "aspace", "mprotect", wide.arena);
}

// Print the C library's document, which programs and exporters read, with our elements beside its own.
static int print_xml(int options, FILE *stream)
{
    struct hak_figures figures;
    if (options != 0) {
        return EINVAL;
    }
    hak_figures_read(&figures, 0);
    fprintf(stream, "<malloc version=\"1\" allocator=\"hakmem %s\">\n", hak_version());
    fprintf(stream, "<heap nr=\"0\">\n");
    print_classes(&figures, stream);
    print_totals(&figures, false, stream);
    fprintf(stream, "</heap>\n");
#    define HAK_FIGURE(name) fprintf(stream, "<%s>%zu</%s>\n", #name, figures.totals.name, #name);
    HAK_TOTALS(HAK_FIGURE)
#    undef HAK_FIGURE
#    define HAK_FIGURE(name) fprintf(stream, "<%s>%" PRIu64 "</%s>\n", #name, figures.name, #name);
    HAK_COUNTERS(HAK_FIGURE)
#    undef HAK_FIGURE
    print_totals(&figures, true, stream);
    fprintf(stream, "</malloc>\n");
    return ferror(stream) ? -1 : 0;
}

HAK_ALSO(struct wide, mallinfo2, (void), wide_info);
HAK_ALSO(struct narrow, mallinfo, (void), narrow_info);
HAK_ALSO(void, malloc_stats, (void), print_stats);
HAK_ALSO(int, malloc_info, (int, FILE *), print_xml);

#endif
