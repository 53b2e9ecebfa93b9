// cxx_library.c -- see cxx_library.h.
#include "front/cxx_library.h"

#ifndef HAK_NO_OVERRIDE

#    include <string.h>

#    include "front/exports.h"

struct object {
    ElfW(Addr) base;
    const ElfW(Dyn) * dynamic;
};

// An object and the objects that it needs, the nearest first. The dynamic linker looks for names there after the program's scope.
enum { SCOPE_MAX = 64 };
struct scope {
    struct object objects[SCOPE_MAX];
    unsigned count;
};

static const ElfW(Phdr) * header_of(const struct dl_phdr_info *info, unsigned type)
{
    const ElfW(Phdr) *header = info->dlpi_phdr;
    while (header != info->dlpi_phdr + info->dlpi_phnum && header->p_type != type) {
        header++;
    }
    return header != info->dlpi_phdr + info->dlpi_phnum ? header : NULL;
}

// Its dynamic section is NULL when it has none.
static struct object object_of(const struct dl_phdr_info *info)
{
    const ElfW(Phdr) *dynamic = header_of(info, PT_DYNAMIC);
    const ElfW(Addr) start = dynamic != NULL ? info->dlpi_addr + dynamic->p_vaddr : 0;
    return (struct object){info->dlpi_addr, (const ElfW(Dyn) *)start};
}

static bool read_exports(struct hak_exports *exports, struct object object)
{
    return object.dynamic != NULL && hak_exports_read(exports, object.base, object.dynamic);
}

static const void *find(const struct hak_exports *exports, const char *name)
{
    const uint32_t index = hak_exports_next(exports, name, 0);
    return index != 0 ? (const void *)(exports->base + exports->symbols[index].st_value) : NULL;
}

static void add(struct scope *scope, struct object object)
{
    for (unsigned i = 0; i < scope->count; i++) {
        if (scope->objects[i].dynamic == object.dynamic) {
            return;
        }
    }
    if (scope->count < SCOPE_MAX) {
        scope->objects[scope->count++] = object;
    }
}

struct caller {
    const void *site;
    struct scope *scope;
};

static int add_caller(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    const struct caller *caller = data;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const ElfW(Addr) offset = (ElfW(Addr))caller->site - info->dlpi_addr - part->p_vaddr;
        if (part->p_type == PT_LOAD && offset < part->p_memsz) {
            add(caller->scope, object_of(info));
            return 1;
        }
    }
    return 0;
}

struct needed {
    const char *name;
    struct scope *scope;
};

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int add_if_needed(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    const struct needed *needed = data;
    const struct object object = object_of(info);
    struct hak_exports exports;
    if (!read_exports(&exports, object)) {
        return 0;
    }
    const char *name = info->dlpi_name;
    for (const ElfW(Dyn) *entry = object.dynamic; entry->d_tag != DT_NULL; entry++) {
        name = entry->d_tag == DT_SONAME ? exports.names + entry->d_un.d_val : name;
    }
    if (strcmp(file_of(name), file_of(needed->name)) != 0) {
        return 0;
    }
    add(needed->scope, object);
    return 1;
}

static const void *find_near(const void *site, const char *name)
{
    struct scope scope = {.count = 0};
    dl_iterate_phdr(add_caller, &(struct caller){site, &scope});
    for (unsigned i = 0; i < scope.count; i++) {
        struct hak_exports exports;
        const ElfW(Dyn) *entry = scope.objects[i].dynamic;
        if (!read_exports(&exports, scope.objects[i])) {
            continue;
        }
        const void *found = find(&exports, name);
        if (found != NULL) {
            return found;
        }
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_NEEDED) {
                dl_iterate_phdr(add_if_needed,
                                &(struct needed){exports.names + entry->d_un.d_val, &scope});
            }
        }
    }
    return NULL;
}

struct search {
    const char *name;
    const void *found;
};

static int look_in(struct dl_phdr_info *info, size_t bytes, void *data)
{
    (void)bytes;
    struct search *search = data;
    struct hak_exports exports;
    if (read_exports(&exports, object_of(info))) {
        search->found = find(&exports, search->name);
    }
    return search->found != NULL;
}

// Looks into all objects, whatever their scope: a library may have been opened with RTLD_LOCAL.
const void *hak_cxx_library_symbol(const void *linked, const char *name, const void *site)
{
    struct search search = {name, linked};
    if (linked == NULL) {
        search.found = find_near(site, name);
    }
    if (search.found == NULL) {
        dl_iterate_phdr(look_in, &search);
    }
    return search.found;
}

#endif
