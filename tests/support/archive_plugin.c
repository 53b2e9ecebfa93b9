// archive_plugin.c -- a library that contains the archive, and allocates from it.
#include <stdlib.h>
#include <string.h>

void *plugin_allocate(size_t bytes);
void plugin_free(void *block);

void *plugin_allocate(size_t bytes)
{
    void *block = malloc(bytes);
    return block != NULL ? memset(block, 1, bytes) : NULL;
}

void plugin_free(void *block)
{
    free(block);
}
