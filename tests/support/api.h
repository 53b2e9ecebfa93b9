// api.h -- looks up the functions of hakmem.h: a program that runs with the
// library preloaded has nothing to link with. Under a sanitizer the library is linked in.
#ifndef HAK_TESTS_SUPPORT_API_H
#define HAK_TESTS_SUPPORT_API_H

#include "promise.h" // first: it asks for all that libc has

#include <hakmem/hakmem.h>

static inline void *ht_api(const char *name)
{
    void *function = dlsym(RTLD_DEFAULT, name);
    HT_CHECK(function != NULL, "%s is not exported", name);
    return function;
}

// Declares a local pointer api_<name> to the function of that name; HT_API_FIND sets a declared one.
#define HT_API(name)              \
    __typeof__(name) *api_##name; \
    HT_API_FIND(name)
#ifdef HAK_TESTS_SUPPORT_HAK_NAMES_H
#    define HT_API_FIND(name) api_##name = (name)
#else
#    define HT_API_FIND(name) *(void **)(&api_##name) = ht_api(#name)
#endif

#endif
