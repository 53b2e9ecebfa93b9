// deep_binding.c -- libraries that look for malloc in the C library first.
//
// Threads   any.
// Fails     by loading a library without RTLD_DEEPBIND.
//
// dlopen with RTLD_DEEPBIND makes a library look for names in the libraries that it needs before it looks
// in the program. So it would get malloc and free from the C library, and pass our blocks to the C
// library's free: PHP, which loads its extensions in this way, would not start.
// Therefore we change the C library's symbol table in memory before the first such library is loaded: the
// names of the malloc family then lead to us. Only the dynamic linker reads the table, so names that are
// bound already, and the C library's own calls, stay as they are.
//
// A program that the archive is linked into has the two functions below, too, but has the dynamic linker's functions only if it
// is linked dynamically. In a static program, dlopen goes on to the C library's __libc_dlopen_mode.
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "front/exports.h"
#include "hakmem/hakmem.h"
#include "os/os.h"

#ifndef HAK_NO_OVERRIDE

extern __typeof__(dlsym) dlsym __attribute__((weak));
extern __typeof__(dlvsym) dlvsym __attribute__((weak));
extern __typeof__(dlinfo) dlinfo __attribute__((weak));
// How the C library opens libraries of its own; in the archive libc.a only.
extern void *__libc_dlopen_mode(const char *file, int mode) __attribute__((weak));
#    define CALLED_BY_DLOPEN ((int)0x80000000) // a flag that it needs

// A few more than the family's names, which may have several versions.
enum { REDIRECTED_MAX = 64 };
struct redirect {
    ElfW(Sym) * from[REDIRECTED_MAX];
    ElfW(Addr) to[REDIRECTED_MAX];
    unsigned count;
};

// The names of the malloc family that the C library may have.
static const char *const names[] = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "malloc_trim",
    "malloc_info",
    "malloc_stats",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    "free_sized",
    "free_aligned_sized",
    "__libc_malloc",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_reallocarray",
    "__libc_free",
    "__libc_cfree",
    "__libc_memalign",
    "__libc_valloc",
    "__libc_pvalloc",
    "__posix_memalign",
};

// Note every version of a name in the C library.
static void redirect_name(struct redirect *redirect,
                          const struct hak_exports *libc,
                          const char *name,
                          ElfW(Addr) to)
{
    uint32_t index = 0;
    while (redirect->count < REDIRECTED_MAX && (index = hak_exports_next(libc, name, index)) != 0) {
        redirect->from[redirect->count] = &libc->symbols[index];
        redirect->to[redirect->count++] = to - libc->base;
    }
}

// To the functions that the program's names are bound to.
static void redirect_all(struct redirect *redirect, const struct hak_exports *libc)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const ElfW(Addr) to = (ElfW(Addr))dlsym(RTLD_DEFAULT, names[i]);
        if (to != 0) {
            redirect_name(redirect, libc, names[i], to);
        }
    }
}

static bool redirect_write(const struct redirect *redirect)
{
    uintptr_t low = UINTPTR_MAX;
    uintptr_t high = 0;
    for (unsigned i = 0; i < redirect->count; i++) {
        const uintptr_t at = (uintptr_t)redirect->from[i];
        low = at < low ? at : low;
        high = at + sizeof *redirect->from[i] > high ? at + sizeof *redirect->from[i] : high;
    }
    low &= ~(uintptr_t)(hak_os_page_bytes() - 1);
    high = hak_align_up(high, hak_os_page_bytes());
    if (redirect->count == 0 || !hak_os_unseal((void *)low, high - low)) {
        return false;
    }
    for (unsigned i = 0; i < redirect->count; i++) {
        redirect->from[i]->st_value = redirect->to[i];
    }
    hak_os_seal((void *)low, high - low);
    return true;
}

// Lets one thread write at a time: one of two would seal the pages that the other still writes to. The dynamic linker is not called
// here: a thread that waits for us may hold its lock, in the constructor of a library that is being loaded.
static bool redirect_write_alone(const struct redirect *redirect)
{
    static _Atomic(uint32_t) writer; // the process of the thread that writes; 0: none
    const uint32_t self = (uint32_t)hak_os_process_id();
    uint32_t before = hak_load_relaxed(&writer);
    // A writer of another process was a thread of the parent when this process was forked: its unfinished work is done again.
    // pairs with: redirect_write_alone
    while (before == self || !hak_cas_acquire(&writer, &before, self)) {
        hak_os_wait(&writer, self, 1);
        before = hak_load_relaxed(&writer);
    }
    const bool is_done = redirect_write(redirect);
    hak_store_release(&writer, 0); // pairs with: redirect_write_alone
    return is_done;
}

typedef void *open_function(const char *file, int mode);

static bool lead_to_us(open_function *open)
{
    struct link_map *map = NULL;
    struct hak_exports libc;
    struct redirect redirect;
    redirect.count = 0;
    void *handle = open(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL || dlinfo == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 ||
        !hak_exports_read(&libc, map->l_addr, map->l_ld)) {
        return false;
    }
    redirect_all(&redirect, &libc);
    return redirect_write_alone(&redirect);
}

// Names that always mean this file's own functions.
static __typeof__(dlopen) own_dlopen __attribute__((alias("dlopen"), nothrow));
static __typeof__(dlmopen) own_dlmopen __attribute__((alias("dlmopen"), nothrow));

// The versions of these two functions: of the C library itself (since 2.34), and of libdl before that, by processor.
static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.3.4"};

// The dynamic linker's function, or NULL. If a library has put a dlsym in front of the C library's, that one looks behind its
// own library, and may find `own`. If so, the function is looked up by version.
static void *next(const char *name, uintptr_t own)
{
    void *found = dlsym != NULL ? dlsym(RTLD_NEXT, name) : NULL;
    for (size_t i = 0; (uintptr_t)found == own && i < sizeof versions / sizeof *versions; i++) {
        void *versioned = dlvsym != NULL ? dlvsym(RTLD_NEXT, name, versions[i]) : NULL;
        found = versioned != NULL ? versioned : found;
    }
    return (uintptr_t)found != own ? found : NULL;
}

// Is the program's malloc ours? Not if a library contains the archive and does not export it.
static bool is_programs_malloc(void)
{
    return dlsym != NULL && (uintptr_t)dlsym(RTLD_DEFAULT, "malloc") == (uintptr_t)hak_malloc;
}

// The mode to open with. Not inlined: a caller that passes on addresses of local variables could not end in a jump.
static HAK_NOINLINE int mode_as_led(int mode)
{
    static _Atomic(bool) is_led;
    if ((mode & RTLD_DEEPBIND) == 0 || !is_programs_malloc()) {
        return mode;
    }
    bool done = hak_load_acquire(&is_led); // pairs with: mode_as_led
    if (!done) {
        open_function *open;
        *(void **)&open = next("dlopen", (uintptr_t)own_dlopen);
        done = open != NULL && lead_to_us(open);
        if (done) {
            hak_store_release(&is_led, true); // pairs with: mode_as_led
        }
    }
    return done ? mode : mode & ~RTLD_DEEPBIND;
}

// For a program without a dynamic linker.
static void *open_alone(const char *file, int mode)
{
    return __libc_dlopen_mode != NULL ? __libc_dlopen_mode(file, mode | CALLED_BY_DLOPEN) : NULL;
}

// dlopen and dlmopen end in a jump (src/CMakeLists.txt makes sure of it in every build): the dynamic linker
// takes the caller's search path and $ORIGIN, and knows the caller by the return address.
HAK_REPLACEABLE void *dlopen(const char *file, int mode)
{
    open_function *open;
    *(void **)&open = next("dlopen", (uintptr_t)own_dlopen);
    mode = mode_as_led(mode);
    return open != NULL ? open(file, mode) : open_alone(file, mode);
}

// Another name space than the program's has a C library of its own.
HAK_REPLACEABLE void *dlmopen(Lmid_t space, const char *file, int mode)
{
    __typeof__(dlmopen) *open;
    *(void **)&open = next("dlmopen", (uintptr_t)own_dlmopen);
    if (space != LM_ID_BASE) {
        return open != NULL ? open(space, file, mode) : NULL;
    }
    mode = mode_as_led(mode);
    return open != NULL ? open(space, file, mode) : open_alone(file, mode);
}

#endif
