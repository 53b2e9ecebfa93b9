// deep_binding.c -- libraries that look for malloc in the C library first.
//
// Layer     front; in the shared library only
// Threads   any.
// Fails     by loading a library as if it had not been asked to bind deeply.
//
// dlopen with RTLD_DEEPBIND makes a library look for its names in what it needs itself before it looks
// in the program. That is the C library, so it would get malloc and free from there, and give to its free
// what the program has from ours: PHP, which loads its extensions in this way, would not start.
// Therefore the C library's table of symbols, as it is in memory, is made to lead to us before the first
// such library is loaded. Nobody but the dynamic linker reads it: what was bound before, and the C
// library's own calls, stay as they are.
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "front/exports.h"
#include "os/lock.h"
#include "os/os.h"

// Some more than the names of the family.
enum { REDIRECTED_MAX = 64 };
struct redirect {
    ElfW(Sym) * from[REDIRECTED_MAX];
    ElfW(Addr) to[REDIRECTED_MAX];
    unsigned count;
};

extern ElfW(Dyn) own_dynamic[] __asm__("_DYNAMIC") HAK_INTERNAL;
extern const char own_start[] __asm__("__ehdr_start") HAK_INTERNAL;

// Note every version of a name of the C library's.
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

// Every name that both export, but dlopen and dlmopen: ours have to find theirs.
static void redirect_all(struct redirect *redirect,
                         const struct hak_exports *libc,
                         const struct hak_exports *own)
{
    for (uint32_t bucket = 0; bucket < own->bucket_count; bucket++) {
        uint32_t index = own->buckets[bucket];
        for (; index != 0; index++) {
            const char *name = own->names + own->symbols[index].st_name;
            if (strcmp(name, "dlopen") != 0 && strcmp(name, "dlmopen") != 0) {
                const ElfW(Addr) to = own->base + own->symbols[index].st_value;
                redirect_name(redirect, libc, name, to);
            }
            if (hak_exports_is_last(own, index)) {
                break;
            }
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
    if (redirect->count == 0 || !hak_os_commit((void *)low, high - low)) {
        return false;
    }
    for (unsigned i = 0; i < redirect->count; i++) {
        redirect->from[i]->st_value = redirect->to[i];
    }
    hak_os_seal((void *)low, high - low);
    return true;
}

typedef void *open_function(const char *file, int mode);

static bool lead_to_us(open_function *open)
{
    struct link_map *map = NULL;
    struct hak_exports libc;
    struct hak_exports own;
    struct redirect redirect;
    redirect.count = 0;
    void *handle = open(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 ||
        !hak_exports_read(&libc, map->l_addr, map->l_ld) ||
        !hak_exports_read(&own, (ElfW(Addr))own_start, own_dynamic)) {
        return false;
    }
    redirect_all(&redirect, &libc, &own);
    return redirect_write(&redirect);
}

// The mode to open with. Not inlined: with variables that others have seen, its caller could not end in a jump.
static HAK_NOINLINE int mode_as_led(int mode)
{
    static struct hak_lock lock;
    static bool is_done; // lock
    if ((mode & RTLD_DEEPBIND) == 0) {
        return mode;
    }
    open_function *open;
    *(void **)&open = dlsym(RTLD_NEXT, "dlopen");
    hak_lock_take(&lock);
    is_done = is_done || (open != NULL && lead_to_us(open));
    const bool done = is_done;
    hak_lock_drop(&lock);
    return done ? mode : mode & ~RTLD_DEEPBIND;
}

// Both end in a jump (src/CMakeLists.txt sees to it in every build): the dynamic linker looks at the address
// that it would return to, to know whose search path and $ORIGIN count.
HAK_EXPORT void *dlopen(const char *file, int mode)
{
    open_function *open;
    *(void **)&open = dlsym(RTLD_NEXT, "dlopen");
    mode = mode_as_led(mode);
    return open != NULL ? open(file, mode) : NULL;
}

// Another name space than the program's has a C library of its own.
HAK_EXPORT void *dlmopen(Lmid_t space, const char *file, int mode)
{
    __typeof__(dlmopen) *open;
    *(void **)&open = dlsym(RTLD_NEXT, "dlmopen");
    mode = space == LM_ID_BASE ? mode_as_led(mode) : mode;
    return open != NULL ? open(space, file, mode) : NULL;
}
