// static too
//
// Destructors of thread-specific data allocate and free, round after round,
// also those that run after the allocator's own clean-up of the thread; so
// do C++'s thread_local destructors, which C reaches by the runtime's function.
#include "../support/promise.h"

#include <pthread.h>

enum { THREADS = 400, KEYS = 6, ROUNDS = 3 }; // POSIX promises four rounds of destructors

struct note {
    pthread_key_t key;
    int rounds;
    char text[50];
};

static pthread_key_t keys[KEYS];

// The C library's registry of thread_local destructors; not in musl.
extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library)
    __attribute__((weak));
extern void *__dso_handle;

static void destroy_key(void *argument)
{
    struct note *note = argument;
    HT_CHECK(strcmp(note->text, "still here") == 0, "a block changed before its destructor");
    char *scratch = malloc(3000);
    HT_CHECK(scratch != NULL, "malloc failed in a destructor");
    memset(scratch, 1, 3000);
    if (note->rounds > 0) {
        struct note *next = malloc(sizeof *next);
        HT_CHECK(next != NULL, "malloc failed in a destructor");
        *next = *note;
        next->rounds--;
        pthread_setspecific(note->key, next);
    }
    free(scratch);
    free(note);
}

static void destroy_object(void *object)
{
    free(object);
    free(ht_hide(calloc(3, 333)));
}

static void *run(void *unused)
{
    for (size_t i = 0; i < KEYS; i++) {
        struct note *note = malloc(sizeof *note);
        HT_CHECK(note != NULL, "malloc failed");
        *note = (struct note){keys[i], ROUNDS, "still here"};
        pthread_setspecific(keys[i], note);
    }
    if (__cxa_thread_atexit_impl != NULL) {
        __cxa_thread_atexit_impl(destroy_object, malloc(200), &__dso_handle);
    }
    return unused;
}

int main(void)
{
    ht_start();
    for (size_t i = 0; i < KEYS; i++) {
        HT_CHECK(pthread_key_create(&keys[i], destroy_key) == 0, "no key");
    }
    for (size_t i = 0; i < THREADS; i += 4) {
        pthread_t threads[4];
        for (size_t j = 0; j < 4; j++) {
            HT_CHECK(pthread_create(&threads[j], NULL, run, NULL) == 0, "no thread");
        }
        for (size_t j = 0; j < 4; j++) {
            pthread_join(threads[j], NULL);
        }
    }
    return 0;
}
