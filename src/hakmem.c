// hakmem.c -- the order things come up in.
#include <stddef.h>

#include "cache/dying.h"
#include "cache/hooks.h"
#include "cache/nested.h"
#include "cache/start.h"
#include "front/environment.h"
#include "front/replaced.h"
#include "front/staying.h"
#include "hakmem/hakmem.h"
#include "os/heard.h"

const char *hak_version(void)
{
    return HAKMEM_VERSION;
}

// All else comes up with the first allocation, which is earlier (cache/start.c). The options should
// stand before anybody uses the heap: the library is linked to be initialised first (-z initfirst),
// before the C library sets `environ`, so its constructors get the environment as an argument; and
// in a program that the archive is linked into, this constructor has the first priority. musl sets `environ` early, and passes
// no arguments.
extern char **environ;

__attribute__((constructor(101))) static void start(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    hak_dying_start();
    hak_environment_read(environ != NULL ? environ : environment);
    hak_heard_start(hak_nested_begin, hak_nested_end);
    hak_start_process();
    hak_staying_start();
    hak_replaced_start();
    hak_hook_started();
}

// What is wrong with the blocks in the magazines shows when they go back to their slabs: now at
// the latest.
__attribute__((destructor(101))) static void stop(void)
{
    hak_hook_stopping();
    hak_stop_process();
}
