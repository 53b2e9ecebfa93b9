// not tagged: the dynamic linker clears some by lines (cmake/tests.cmake)
//
// dlsym, dlopen and dlerror allocate, in the thread that calls them and with
// the loader's lock held; the allocator must not call back into the loader.
#include "../support/promise.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300 };

static void *look_up(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        HT_CHECK(dlsym(RTLD_DEFAULT, "no_such_symbol_anywhere") == NULL,
                 "found what does not exist");
        const char *error = dlerror();
        HT_CHECK(error != NULL && strstr(error, "no_such_symbol_anywhere") != NULL,
                 "dlerror lost its text");
        HT_CHECK(dlopen("/no/such/library.so", RTLD_NOW) == NULL, "opened what does not exist");
        void *math = dlopen("libm.so.6", RTLD_NOW);
        if (math != NULL) {
            HT_CHECK(dlsym(math, "cos") != NULL, "libm has no cos");
            dlclose(math);
        }
        free(ht_hide(malloc(100)));
    }
    return unused; // the C library frees its last dlerror text when the thread ends
}

__attribute__((constructor(101))) static void look_up_first(void)
{
    dlsym(RTLD_DEFAULT, "no_such_symbol_before_main");
    HT_CHECK(dlerror() != NULL, "dlerror is silent before main");
}

int main(void)
{
    ht_start();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        HT_CHECK(pthread_create(&threads[i], NULL, look_up, NULL) == 0, "no thread");
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
