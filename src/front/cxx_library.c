// cxx_library.c -- see cxx_library.h.
#include "front/cxx_library.h"

#ifndef HAK_NO_OVERRIDE

#    include <stddef.h>

#    include "front/exports.h"

struct search {
    const char *name;
    const void *found;
};

static int look_in(struct dl_phdr_info *object, size_t bytes, void *data)
{
    (void)bytes;
    struct search *search = data;
    struct hak_exports exports;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Addr) start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC &&
            hak_exports_read(&exports, object->dlpi_addr, (const ElfW(Dyn) *)start)) {
            const uint32_t index = hak_exports_next(&exports, search->name, 0);
            search->found =
                index != 0 ? (const void *)(exports.base + exports.symbols[index].st_value) : NULL;
        }
    }
    return search->found != NULL;
}

// Whatever scope it is in: who opened a library may have kept its names from all others.
const void *hak_cxx_symbol(const void *linked, const char *name)
{
    struct search search = {name, linked};
    if (linked == NULL) {
        dl_iterate_phdr(look_in, &search);
    }
    return search.found;
}

#endif
