// glibc only: the compiler's unwinder needs it
// linked only
// static too
//
// operator new (nothrow) catches what the new-handler throws, and ends its handling. Here the
// program itself acts as the C++ library, so that the test also runs without a C++ compiler.
#include "../support/promise.h"

#include <unwind.h>

typedef void (*handler)(void);
extern void *new_nothrow(size_t bytes, const void *tag) __asm__("_ZnwmRKSt9nothrow_t")
    __attribute__((weak));
handler get_new_handler(void) __asm__("_ZSt15get_new_handlerv");
void *begin_catch(void *thrown) __asm__("__cxa_begin_catch");
void end_catch(void) __asm__("__cxa_end_catch");

static struct _Unwind_Exception exception;
static int thrown;
static int caught;
static int ended;

static void throw_it(void)
{
    thrown++;
    HT_BREAK("the unwinder came back with %d", (int)_Unwind_RaiseException(&exception));
}

handler get_new_handler(void)
{
    return throw_it;
}

void *begin_catch(void *what)
{
    HT_CHECK(what == &exception, "caught %p, thrown was %p", what, (void *)&exception);
    caught++;
    return what;
}

void end_catch(void)
{
    ended++;
}

int main(void)
{
    ht_start();
    if (new_nothrow == NULL) {
        HT_SKIP("no operator new");
    }
    const char tag = 0;
    for (int i = 1; i <= 3; i++) {
        void *block = new_nothrow(ht_hide_size(SIZE_MAX / 2 - 100), &tag);
        HT_CHECK(block == NULL, "there is a block: %p", block);
        HT_CHECK(thrown == i && caught == i && ended == i,
                 "thrown %d, caught %d, ended %d, not %d each",
                 thrown,
                 caught,
                 ended,
                 i);
    }
    return 0;
}
