// archive_plugin.c -- a library that has the archive in it, and allocates from that.
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
