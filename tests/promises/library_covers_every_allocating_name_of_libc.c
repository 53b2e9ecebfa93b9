// glibc only: its names
// preload only
// with features
// The library defines every name by which this machine's libc allocates or frees:
// if one were missing, a block of one heap would reach the other's free.
#include "../support/promise.h"

#include <elf.h>
#include <link.h>

// Names that match the patterns below but do not concern the heap.
static const char *const others[] = {
    "__libc_freeres", // frees libc's own buffers, by calling free
    "__libc_alloca_cutoff",
    "__libc_allocate_rtsig",
    "__libc_allocate_once_slow", // calls malloc
    "__libc_alloc_buffer_",      // calls malloc
    "__libc_reallocarray",       // calls realloc by its public name
    "__libc_mallinfo",           // this and the three below only read
    "__libc_mallopt",
    "malloc_get_state", // of an older glibc, for an Emacs that was dumped with a heap of its own
    "malloc_set_state",
    "memalignment", // of C23: how a pointer is aligned
};

static bool is_other(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_allocating(const char *name)
{
    static const char *const exact[] = {
        "free", "cfree", "malloc", "calloc", "realloc", "valloc", "pvalloc"};
    static const char *const starts[] = {
        "__libc_free",     "__libc_malloc",
        "__libc_calloc",   "__libc_realloc",
        "__libc_valloc",   "__libc_pvalloc",
        "__libc_memalign", "__posix_memalign",
        "__libc_alloc",    "malloc_",
        "malli",           "mallopt",
        "memalign",        "aligned_alloc",
        "posix_memalign",  "reallocarray",
        "free_sized",      "free_aligned_sized",
        "__libc_mall",
    };
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        if (strcmp(name, exact[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return !is_other(name);
        }
    }
    return false;
}

// The number of dynamic symbols: the last hashed one ends its chain with an odd hash.
static uint32_t count_symbols(const uint32_t *gnu_hash)
{
    uint32_t buckets = gnu_hash[0];
    uint32_t first = gnu_hash[1];
    const uint32_t *bucket = gnu_hash + 4 + gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++) {
        last = bucket[i] > last ? bucket[i] : last;
    }
    while (last >= first && (chain[last - first] & 1) == 0) {
        last++;
    }
    return last + 1;
}

static void check_name(const char *name)
{
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL) {
        // A name that libc keeps only for old programs has no default version.
        address = dlvsym(RTLD_DEFAULT, name, "GLIBC_2.2.5");
    }
    HT_CHECK(address != NULL && dladdr(address, &info) != 0, "%s: not found", name);
    HT_CHECK(ht_is_any() || strcmp(info.dli_fname, ht_malloc_file()) == 0,
             "%s is still answered by %s",
             name,
             info.dli_fname);
}

static int look_at(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    if (strstr(object->dlpi_name, "/libc.so") == NULL) {
        return 0;
    }
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
    }
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const uint32_t *gnu_hash = NULL;
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        symbols = dynamic->d_tag == DT_SYMTAB ? (const void *)dynamic->d_un.d_ptr : symbols;
        strings = dynamic->d_tag == DT_STRTAB ? (const void *)dynamic->d_un.d_ptr : strings;
        gnu_hash = dynamic->d_tag == DT_GNU_HASH ? (const void *)dynamic->d_un.d_ptr : gnu_hash;
    }
    if (symbols == NULL || strings == NULL || gnu_hash == NULL) {
        return 0;
    }
    uint32_t count = count_symbols(gnu_hash);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = strings + symbols[i].st_name;
        if (symbols[i].st_shndx != SHN_UNDEF && is_allocating(name)) {
            check_name(name);
            *(int *)found += 1;
        }
    }
    return 1;
}

int main(void)
{
    ht_start();
    int found = 0;
    dl_iterate_phdr(look_at, &found);
    if (found == 0) {
        HT_SKIP("no libc with a GNU hash table");
    }
    // glibc 2.36 has 24; fewer than 15 would mean that the search is broken.
    HT_CHECK(found >= 15, "only %d names found in libc", found);
    return 0;
}
