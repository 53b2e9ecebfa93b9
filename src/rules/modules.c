// modules.c -- see modules.h.
#include "rules/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "os/os.h"

struct visitor {
    void (*visit)(const struct hak_module *, void *);
    void *data;
};

// glibc gives the program no name, and musl the one that it was started with.
static bool is_the_program(const struct dl_phdr_info *info)
{
    return info->dlpi_name[0] == '\0' || (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR);
}

static int visit_one(struct dl_phdr_info *info, size_t bytes, void *data)
{
    const struct visitor *visitor = data;
    // The program has the name that it was started with.
    const bool is_program = is_the_program(info);
    const char *path = is_program ? "/proc/self/exe" : info->dlpi_name;
    const char *started = (const char *)getauxval(AT_EXECFN);
    const char *named = is_program && started != NULL ? started : path;
    const char *slash = strrchr(named, '/');
    const struct hak_module module = {slash != NULL ? slash + 1 : named, path, info->dlpi_addr};
    (void)bytes;
    visitor->visit(&module, visitor->data);
    return 0;
}

void hak_modules_visit(void (*visit)(const struct hak_module *, void *), void *data)
{
    struct visitor visitor = {visit, data};
    dl_iterate_phdr(visit_one, &visitor);
}

// A file in memory. Each offset in it is compared with its length before it is used.
struct image {
    const char *bytes;
    size_t length;
};

static const void *image_at(const struct image *image, uint64_t offset, uint64_t length)
{
    return offset <= image->length && length <= image->length - offset ? image->bytes + offset
                                                                       : NULL;
}

// A table of records; NULL unless it is aligned for them.
static const void *table_at(const struct image *image, uint64_t offset, uint64_t length)
{
    return offset % _Alignof(ElfW(Sym)) == 0 ? image_at(image, offset, length) : NULL;
}

static bool is_part_of(const char *symbol, size_t room, const char *name)
{
    const size_t length = strlen(name);
    return room > length && memcmp(symbol, name, length) == 0 &&
           (symbol[length] == '\0' || symbol[length] == '.');
}

struct wanted {
    const char *name;
    uintptr_t base;
    void (*visit)(uintptr_t, uintptr_t, void *);
    void *data;
};

static void visit_table(const struct image *image,
                        const ElfW(Shdr) * table,
                        const ElfW(Shdr) * text,
                        const struct wanted *wanted)
{
    const ElfW(Sym) *symbols = table_at(image, table->sh_offset, table->sh_size);
    const char *names = image_at(image, text->sh_offset, text->sh_size);
    if (symbols == NULL || names == NULL) {
        return;
    }
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const ElfW(Sym) *symbol = &symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
            symbol->st_name < text->sh_size &&
            is_part_of(names + symbol->st_name, text->sh_size - symbol->st_name, wanted->name)) {
            const uintptr_t start = wanted->base + symbol->st_value;
            wanted->visit(start, start + symbol->st_size, wanted->data);
        }
    }
}

// Visit all symbols if the file still has them, else those that the dynamic linker needs.
static void visit_symbols(const struct image *image, const struct wanted *wanted)
{
    const ElfW(Ehdr) *head = image_at(image, 0, sizeof *head);
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_shentsize != sizeof(ElfW(Shdr))) {
        return;
    }
    const ElfW(Shdr) *sections =
        table_at(image, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections);
    const ElfW(Shdr) *found = NULL;
    for (unsigned i = 0; sections != NULL && i < head->e_shnum; i++) {
        if (sections[i].sh_type == SHT_SYMTAB ||
            (sections[i].sh_type == SHT_DYNSYM && found == NULL)) {
            found = &sections[i];
        }
    }
    if (found != NULL && found->sh_link < head->e_shnum) {
        visit_table(image, found, &sections[found->sh_link], wanted);
    }
}

void hak_module_visit_functions(const struct hak_module *module,
                                const char *name,
                                void (*visit)(uintptr_t, uintptr_t, void *),
                                void *data)
{
    struct image image;
    image.bytes = hak_os_map_file(module->path, &image.length);
    if (image.bytes != NULL) {
        const struct wanted wanted = {name, module->base, visit, data};
        visit_symbols(&image, &wanted);
        hak_os_discard((void *)(uintptr_t)image.bytes, image.length);
    }
}
