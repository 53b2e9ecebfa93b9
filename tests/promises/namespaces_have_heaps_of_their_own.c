// glibc only: musl has no namespaces for libraries
// preload only
// native only
// A plugin in a namespace of its own (dlmopen) contains the archive. Its threads belong to the namespace's C library, which counts
// its thread keys from zero, as the program's does, and both keep the values in one table. When such a thread has allocated from
// both copies, each copy ends its own cache.
#include "../support/beside.h"

#include <dlfcn.h>
#include <pthread.h>

enum { THREADS = 200, BLOCKS = 200 };

typedef void *allocate_function(size_t bytes);
typedef void free_function(void *block);
typedef int create_function(pthread_t *thread,
                            const pthread_attr_t *attributes,
                            void *(*start)(void *),
                            void *argument);
typedef int join_function(pthread_t thread, void **result);

static allocate_function *plugin_allocate;
static free_function *plugin_free;

static void fill(allocate_function *allocate, void **blocks)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(16 + 8 * i);
        HT_CHECK(blocks[i] != NULL, "no block");
        memset(blocks[i], 1, 16 + 8 * i);
    }
}

// A block of each copy stays.
static void *use_both(void *unused)
{
    void *theirs[BLOCKS];
    void *ours[BLOCKS];
    fill(plugin_allocate, theirs);
    fill(malloc, ours);
    for (size_t i = 1; i < BLOCKS; i++) {
        plugin_free(theirs[i]);
        free(ours[i]);
    }
    return unused;
}

static void *open_plugin(void)
{
    char path[HT_BESIDE_PATH];
    void *plugin =
        dlmopen(LM_ID_NEWLM, ht_beside("libarchive_plugin.so", path), RTLD_NOW | RTLD_LOCAL);
    HT_CHECK(plugin != NULL, "%s", dlerror());
    return plugin;
}

int main(void)
{
    ht_start();
    void *plugin = open_plugin();
    create_function *create;
    join_function *join;
    *(void **)&plugin_allocate = dlsym(plugin, "plugin_allocate");
    *(void **)&plugin_free = dlsym(plugin, "plugin_free");
    *(void **)&create = dlsym(plugin, "pthread_create");
    *(void **)&join = dlsym(plugin, "pthread_join");
    HT_CHECK(create != NULL && create != pthread_create, "no C library of its own");
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        HT_CHECK(create(&thread, NULL, use_both, NULL) == 0, "no thread");
        HT_CHECK(join(thread, NULL) == 0, "the thread did not end");
        use_both(NULL);
    }
    return 0;
}
