// hakmem.c -- the order things come up in; the only file that sees all layers.
#include "hakmem/hakmem.h"
#include "cache/start.h"
#include "front/environment.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *hak_version(void)
{
    return TEXT(HAKMEM_VERSION_MAJOR) "." TEXT(HAKMEM_VERSION_MINOR) "." TEXT(HAKMEM_VERSION_PATCH);
}

// The tables come up with the first allocation, which is earlier (cache/start.c).
// The library is linked to be initialised first (-z initfirst), before the C library sets
// `environ`: its constructors get the environment as an argument. First, because fork's hooks
// run in the order of registration: ours must be the last to lock and the first to unlock, or other
// libraries' hooks would allocate while everything is locked.
__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    hak_environment_read(environment);
    hak_start_process();
}

// What is wrong with the blocks in the magazines shows when they go back to their slabs: now at
// the latest.
__attribute__((destructor)) static void stop(void)
{
    hak_stop_thread();
}
