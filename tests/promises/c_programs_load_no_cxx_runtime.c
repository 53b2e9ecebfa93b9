// The C++ operators are in the library, and yet a C program that uses it loads no
// libstdc++, libc++ or libgcc_s.
#include "../support/promise.h"

#include <link.h>

static int look_at(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    static const char *const runtimes[] = {"libstdc++", "libc++", "libgcc_s", "libcxxabi"};
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
        HT_CHECK(strstr(object->dlpi_name, runtimes[i]) == NULL, "%s is loaded", object->dlpi_name);
    }
    return 0;
}

int main(void)
{
    ht_start();
    free(ht_hide(malloc(100)));
    dl_iterate_phdr(look_at, NULL);
    return 0;
}
