// sleeps
// not tagged: it compares addresses, which have tags there
// A library that exchanges the addresses of munmap, madvise and mremap in the tables of all loaded objects, as UCX does where
// code cannot be written to, hears of all memory that goes back.
#include "../support/listener.h"

#include <link.h>

static const struct {
    const char *name;
    uintptr_t to;
} exchanges[] = {{"munmap", (uintptr_t)lt_munmap},
                 {"madvise", (uintptr_t)lt_madvise},
                 {"mremap", (uintptr_t)lt_mremap}};

#if defined(__x86_64__)
enum { BY_JUMP = R_X86_64_JUMP_SLOT, BY_LOAD = R_X86_64_GLOB_DAT };
#else
enum { BY_JUMP = R_AARCH64_JUMP_SLOT, BY_LOAD = R_AARCH64_GLOB_DAT };
#endif

static void exchange(uintptr_t *entry, uintptr_t to)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)entry & ~(page_bytes - 1));
    HT_CHECK(mprotect(page, page_bytes, PROT_READ | PROT_WRITE) == 0, "the table stays as it is");
    *entry = to;
}

struct tables {
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *names;
};

static void exchange_in(const struct tables *tables, const ElfW(Rela) * entry, size_t bytes)
{
    for (const ElfW(Rela) *end = entry + bytes / sizeof *entry; entry != end; entry++) {
        const size_t type = ELF64_R_TYPE(entry->r_info);
        if (type != BY_JUMP && type != BY_LOAD) {
            continue;
        }
        const char *name = tables->names + tables->symbols[ELF64_R_SYM(entry->r_info)].st_name;
        for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++) {
            if (strcmp(name, exchanges[i].name) == 0) {
                exchange((uintptr_t *)(tables->base + entry->r_offset), exchanges[i].to);
            }
        }
    }
}

static int visit(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    struct tables tables = {.base = object->dlpi_addr};
    const ElfW(Dyn) *dynamic = NULL;
    const ElfW(Rela) *by_jump = NULL, *by_load = NULL;
    size_t jump_bytes = 0, load_bytes = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
    }
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        // The dynamic linker has turned these values into addresses, but the kernel's object has none.
        const ElfW(Addr) value = dynamic->d_un.d_ptr;
        const ElfW(Addr) address = value < tables.base ? tables.base + value : value;
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            tables.symbols = (const void *)address;
            break;
        case DT_STRTAB:
            tables.names = (const void *)address;
            break;
        case DT_JMPREL:
            by_jump = (const void *)address;
            break;
        case DT_PLTRELSZ:
            jump_bytes = value;
            break;
        case DT_RELA:
            by_load = (const void *)address;
            break;
        case DT_RELASZ:
            load_bytes = value;
            break;
        default:
            break;
        }
    }
    if (by_jump != NULL) {
        exchange_in(&tables, by_jump, jump_bytes);
    }
    if (by_load != NULL) {
        exchange_in(&tables, by_load, load_bytes);
    }
    return 0;
}

int main(void)
{
    ht_start();
    dl_iterate_phdr(visit, NULL);
    lt_check();
    return 0;
}
