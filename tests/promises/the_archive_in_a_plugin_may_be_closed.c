// glibc only: musl opens no library that wants storage in initial-exec
// preload only
// native only
// A plugin that contains the archive may be closed while threads that have allocated from it go on, and blocks of it are in
// use: when they end, our copy is still loaded. If the plugin is opened again, it gets the same copy.
#include "../support/beside.h"

#include <pthread.h>
#include <semaphore.h>

enum { ROUNDS = 20, THREADS = 4, BLOCKS = 1000 };

typedef void *allocate_function(size_t bytes);
typedef void free_function(void *block);

static allocate_function *plugin_allocate;
static free_function *plugin_free;
static sem_t has_allocated;
static sem_t may_end;

static void *use(void *unused)
{
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = plugin_allocate(16 + i);
        HT_CHECK(blocks[i] != NULL, "no block of the plugin's");
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        plugin_free(blocks[i]);
    }
    sem_post(&has_allocated);
    sem_wait(&may_end);
    return unused;
}

static void *open_plugin(void)
{
    char path[HT_BESIDE_PATH];
    void *plugin = dlopen(ht_beside("libarchive_plugin.so", path), RTLD_NOW | RTLD_LOCAL);
    HT_CHECK(plugin != NULL, "%s", dlerror());
    *(void **)&plugin_allocate = dlsym(plugin, "plugin_allocate");
    *(void **)&plugin_free = dlsym(plugin, "plugin_free");
    return plugin;
}

int main(void)
{
    pthread_t threads[THREADS];
    ht_start();
    sem_init(&has_allocated, 0, 0);
    sem_init(&may_end, 0, 0);
    void *const first = open_plugin();
    allocate_function *const function = plugin_allocate;
    unsigned char *kept = plugin_allocate(100000);
    HT_CHECK(malloc_usable_size(kept) == 0, "the plugin has its blocks from somebody else");
    dlclose(first);
    for (int round = 0; round < ROUNDS; round++) {
        void *plugin = open_plugin();
        HT_CHECK(plugin_allocate == function, "round %d: another copy", round);
        for (int i = 0; i < THREADS; i++) {
            HT_CHECK(pthread_create(&threads[i], NULL, use, NULL) == 0, "no thread");
            sem_wait(&has_allocated);
        }
        HT_CHECK(dlclose(plugin) == 0, "%s", dlerror());
        for (int i = 0; i < THREADS; i++) {
            sem_post(&may_end);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    HT_CHECK(kept[99999] == 1, "a block of a closed plugin has gone");
    plugin_free(kept);
    return 0;
}
