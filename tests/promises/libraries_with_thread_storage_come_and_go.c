// glibc only: musl never unmaps a library
// preload only
// native only
// Libraries with thread-local storage are loaded and unloaded while threads allocate: the C library
// allocates that storage from us, in the middle of its own work. A library that finds no room (static storage is
// exhausted) is refused, and everything goes on.
#include "../support/beside.h"
#include "../support/crowd.h"

#include <stdatomic.h>

enum { ROUNDS = 150 };

static atomic_bool stop;

static void *churn(void *seed)
{
    while (!atomic_load(&stop)) {
        ht_crowd_work(seed);
    }
    return NULL;
}

static void *touch_in_thread(void *touch)
{
    int *(*storage)(void);
    *(void **)(&storage) = touch;
    for (int i = 0; i < 100; i++) {
        HT_CHECK(storage()[i] == 0, "a new thread's storage is not zero");
        storage()[i] = i;
    }
    return NULL;
}

static void *library_open(const char *name)
{
    char path[HT_BESIDE_PATH];
    return dlopen(ht_beside(name, path), RTLD_NOW | RTLD_LOCAL);
}

static void open_and_close(void)
{
    void *library = library_open("libthread_storage.so");
    HT_CHECK(library != NULL, "dlopen: %s", dlerror());
    void *storage = dlsym(library, "ht_thread_storage");
    HT_CHECK(storage != NULL, "dlsym: %s", dlerror());
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, touch_in_thread, storage) == 0, "no thread");
    pthread_join(thread, NULL);
    touch_in_thread(storage);
    HT_CHECK(dlclose(library) == 0, "dlclose: %s", dlerror());
    HT_CHECK(library_open("libthread_storage_static.so") == NULL,
             "20 KB of static storage were left");
    HT_CHECK(strstr(dlerror(), "static TLS") != NULL, "refused for another reason");
}

int main(void)
{
    ht_start();
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0, "no thread");
    }
    for (int i = 0; i < ROUNDS; i++) {
        open_and_close();
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
