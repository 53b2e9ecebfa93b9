// glibc only: musl has no dlvsym
// preload only
// its names for all
// Tools put functions in front of the C library's, and these allocate: here functions for locks and for thread keys, as profilers
// have. And one is in front of dlsym, and finds us when it looks for dlopen in our name.
#include "../support/promise.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

static __typeof__(dlsym) *real_dlsym;
static __typeof__(pthread_mutex_lock) *real_lock;
static __typeof__(pthread_mutex_unlock) *real_unlock;
static __typeof__(pthread_key_create) *real_key_create;
static __typeof__(pthread_setspecific) *real_setspecific;
static atomic_size_t calls;

static void find(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    for (size_t i = 0; real_dlsym == NULL && i < 3; i++) {
        *(void **)&real_dlsym = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    }
    HT_CHECK(real_dlsym != NULL, "no dlsym");
    *(void **)&real_lock = real_dlsym(RTLD_NEXT, "pthread_mutex_lock");
    *(void **)&real_unlock = real_dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    *(void **)&real_key_create = real_dlsym(RTLD_NEXT, "pthread_key_create");
    *(void **)&real_setspecific = real_dlsym(RTLD_NEXT, "pthread_setspecific");
}

static void note(void)
{
    atomic_fetch_add(&calls, 1);
    free(ht_hide(malloc(100)));
    free(ht_hide(malloc(8 * HT_MIB))); // takes locks
}

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
    if (real_dlsym == NULL) {
        find();
    }
    return real_dlsym(handle, name);
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    note();
    if (real_lock == NULL) {
        find();
    }
    return real_lock(mutex);
}

__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    note();
    if (real_unlock == NULL) {
        find();
    }
    return real_unlock(mutex);
}

__attribute__((visibility("default"))) int pthread_key_create(pthread_key_t *key,
                                                              void (*end)(void *))
{
    note();
    if (real_key_create == NULL) {
        find();
    }
    return real_key_create(key, end);
}

__attribute__((visibility("default"))) int pthread_setspecific(pthread_key_t key, const void *value)
{
    note();
    if (real_setspecific == NULL) {
        find();
    }
    return real_setspecific(key, value);
}

static void *work(void *unused)
{
    free(ht_hide(malloc(100)));
    return unused;
}

int main(void)
{
    ht_start();
    pthread_t thread;
    HT_CHECK(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
    const pid_t child = fork();
    if (child == 0) {
        free(ht_hide(malloc(100)));
        _exit(0);
    }
    int status;
    HT_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "no child");
    void *handle = dlopen("libm.so.6", RTLD_LAZY);
    HT_CHECK(handle != NULL, "no libm: %s", dlerror());
    dlclose(handle);
    HT_CHECK(atomic_load(&calls) > 0, "the functions were not called");
    return 0;
}
