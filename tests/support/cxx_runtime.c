// cxx_runtime.c -- the part of a C++ library that has the new-handler. It is built twice, each with its own user (cxx_user.c).
#include "cxx_runtime.h"

#include <stddef.h>

typedef void (*new_handler)(void);
new_handler get_new_handler(void) __asm__("_ZSt15get_new_handlerv");

static new_handler current;
static int calls;

static void give_up(void)
{
    calls++;
    current = NULL;
}

new_handler get_new_handler(void)
{
    return current;
}

void ht_runtime_arm(void)
{
    calls = 0;
    current = give_up;
}

int ht_runtime_calls(void)
{
    return calls;
}
