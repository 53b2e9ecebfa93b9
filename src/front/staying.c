// staying.c -- see staying.h.
#include "front/staying.h"

#ifdef HAK_NO_OVERRIDE

void hak_staying_start(void)
{
}

#else
#    include <dlfcn.h>
#    include <elf.h>
#    include <link.h>
#    include <stdbool.h>
#    include <stddef.h>
#    include <stdint.h>

#    include "front/modules.h"

// Not in a static program.
extern __typeof__(dlsym) dlsym __attribute__((weak));

// The file that this code is in.
struct own_file {
    const char *path;
    bool is_program;
    bool stays; // it is never unmapped
};

static bool has_this_code(const struct dl_phdr_info *info)
{
    const uintptr_t here = (uintptr_t)hak_staying_start - info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && here - part->p_vaddr < part->p_memsz) {
            return true;
        }
    }
    return false;
}

static bool stays(const struct dl_phdr_info *info)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            const ElfW(Dyn) *entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            while (entry->d_tag != DT_NULL && entry->d_tag != DT_FLAGS_1) {
                entry++;
            }
            return entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE) != 0;
        }
    }
    return false;
}

static int look_at(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct own_file *file = data;
    (void)bytes;
    if (!has_this_code(info)) {
        return 0;
    }
    file->path = info->dlpi_name;
    file->is_program = hak_modules_is_program(info);
    file->stays = stays(info);
    return 1;
}

void hak_staying_start(void)
{
    struct own_file file = {.is_program = true};
    if (dlsym == NULL || dl_iterate_phdr(look_at, &file) == 0 || file.is_program || file.stays) {
        return; // a part of the program, or the shared library
    }
    // By name, as a static program that refers to it is warned.
    __typeof__(dlopen) *open;
    *(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
    if (open != NULL && open(file.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL) {
        dlerror(); // it is unmapped when it is closed
    }
}

#endif
