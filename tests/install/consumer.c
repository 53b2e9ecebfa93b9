// A user's program: it runs on hakmem, whichever way it was linked.
#include <dlfcn.h>
#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// argv[1] is part of the name of the file that must contain malloc.
int main(int argc, char **argv)
{
    Dl_info where;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    if (argc != 2 || address == NULL || dladdr(address, &where) == 0) {
        fputs("consumer: cannot tell where malloc is\n", stderr);
        return 1;
    }
    void *volatile block = malloc(100);
    const bool ours = hak_owns(block);
    free(block);
    if (!ours || strstr(where.dli_fname, argv[1]) == NULL) {
        fprintf(stderr, "consumer: malloc is in %s, not in %s\n", where.dli_fname, argv[1]);
        return 1;
    }
    printf("hakmem %s, malloc in %s\n", hak_version(), where.dli_fname);
    return 0;
}
