// staying.c -- see staying.h.
#include "front/staying.h"

#include <stdint.h> // says which C library it is

// musl unmaps no library.
#if defined HAK_NO_OVERRIDE || !defined __GLIBC__

void hak_staying_start(void)
{
}

#else
#    include <dlfcn.h>
#    include <elf.h>
#    include <link.h>

// NULL in a static program.
extern __typeof__(dladdr1) dladdr1 __attribute__((weak));
extern __typeof__(dlsym) dlsym __attribute__((weak));

static bool stays(const struct link_map *object)
{
    const ElfW(Dyn) *entry = object->l_ld;
    while (entry->d_tag != DT_NULL && entry->d_tag != DT_FLAGS_1) {
        entry++;
    }
    return entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE) != 0;
}

void hak_staying_start(void)
{
    Dl_info info;
    struct link_map *object = NULL;
    if (dladdr1 == NULL || dlsym == NULL ||
        dladdr1((void *)(uintptr_t)hak_staying_start, &info, (void **)&object, RTLD_DL_LINKMAP) ==
            0 ||
        object == NULL || object->l_name[0] == '\0' || stays(object)) {
        return; // we are a part of the program, or the shared library
    }
    // Looked up by name: the linker warns if a static program refers to dlopen.
    __typeof__(dlopen) *open;
    *(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
    if (open != NULL && open(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL) {
        dlerror(); // the library will be unmapped when it is closed
    }
}

#endif
