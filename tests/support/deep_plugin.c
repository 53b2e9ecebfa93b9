// A library that binds another one deeply while it is loaded, for promises/libraries_bind_deeply_at_once.c.
#include <dlfcn.h>
#include <unistd.h>

__attribute__((constructor)) static void start(void)
{
    usleep(3000); // so that others come to wait for the dynamic linker's lock, held here
    dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND);
}
