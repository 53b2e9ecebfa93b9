// hakmem.c -- starts everything, in order.
#include <stdint.h> // says which C library it is

#include "base/compiler.h"
#include "cache/dying.h"
#include "cache/ended.h"
#include "cache/fork.h"
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

// The first allocation comes before this constructor, and starts the heap (cache/start.c). The options should be set before
// anything uses the heap. So the library is linked to be initialised first (-z initfirst), and in a program that the archive is
// linked into, this constructor has the first priority. glibc sets `environ` later, but passes the environment to constructors;
// if an earlier constructor (of a compiler's runtime) calls setenv, `environ` has nothing else in it. musl sets `environ` early,
// and passes no arguments.
#if defined __GLIBC__
#    define ENVIRONMENT environment
#else
extern char **environ;
#    define ENVIRONMENT environ
#endif

// Register our fork handlers early. A program's libraries are initialised before the program. So if the archive is linked into the
// program, the libraries' fork handlers would be registered before ours, and run with our locks held (cache/fork.h). But the
// program is relocated earlier still, and the resolver of an IFUNC runs then. Not in a static program, whose resolvers run before
// there is thread-local storage; it has no other libraries either. The shared library asks to be initialised first, but before
// glibc 2.34 so does libpthread, which comes first.
#if defined __GLIBC__ && !defined HAK_NO_OVERRIDE
#    include <elf.h>
#    include <link.h>

extern const ElfW(Dyn) own_dynamic[] __asm__("_DYNAMIC")
    __attribute__((weak, visibility("hidden")));

static const ElfW(Dyn) * entry_of(ElfW(Sxword) tag)
{
    const ElfW(Dyn) *entry = own_dynamic;
    while (entry != NULL && entry->d_tag != DT_NULL && entry->d_tag != tag) {
        entry++;
    }
    return entry != NULL && entry->d_tag == tag ? entry : NULL;
}

static bool asks_to_be_first(void)
{
    const ElfW(Dyn) *flags = entry_of(DT_FLAGS_1);
    return flags != NULL && (flags->d_un.d_val & DF_1_INITFIRST) != 0;
}

static void nothing(void)
{
}

static void (*choose(void))(void)
{
    // DT_DEBUG: a program, which is relocated after all libraries. The shared library is relocated after the C library, because it
    // stands before it in the search order.
    if (!HAK_IS_SANITIZED && (entry_of(DT_DEBUG) != NULL || asks_to_be_first()) &&
        entry_of(DT_NEEDED) != NULL) {
        hak_fork_start_early();
    }
    return nothing;
}

// Not static: clang exports a static one.
HAK_INTERNAL void hak_start_early(void) __attribute__((ifunc("choose")));
#else
static void hak_start_early(void)
{
}
#endif

__attribute__((constructor(101))) static void start(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    (void)environment;
    hak_start_early();
    hak_dying_start();
    hak_environment_read(ENVIRONMENT);
    hak_heard_start(hak_nested_begin, hak_nested_end);
    hak_start_process();
    hak_staying_start();
    hak_replaced_start();
    hak_hook_started();
}

// Misuse of blocks that are in magazines shows when they go back to their slabs, which is now at the
// latest.
__attribute__((destructor(101))) static void stop(void)
{
    hak_hook_stopping();
    hak_ended_process();
}
