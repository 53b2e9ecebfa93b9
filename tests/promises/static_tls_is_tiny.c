// preload only
// The library needs at most 64 bytes of static thread-local storage, so that a
// program with many loaded libraries can still dlopen it.
#include "../support/promise.h"

#include <link.h>

enum { MOST_BYTES = 64 };

static int look_at(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    if (strstr(object->dlpi_name, "libhakmem") == NULL) {
        return 0;
    }
    *(int *)found = 1;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        HT_CHECK(segment->p_type != PT_TLS || segment->p_memsz <= MOST_BYTES,
                 "its thread-local storage is %zu bytes",
                 (size_t)segment->p_memsz);
    }
    return 1;
}

int main(void)
{
    ht_start();
    int found = 0;
    dl_iterate_phdr(look_at, &found);
    HT_CHECK(found || ht_is_any(), "the library is not among the loaded objects");
    return 0;
}
