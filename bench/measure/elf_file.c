#include "elf_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// More names than this are never asked for in one scan.
enum { NAMES_MAX = 16 };

static bool range_is_inside(const struct elf_file *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->size && bytes <= file->size - offset;
}

static bool find_sections(struct elf_file *file)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;
    uint64_t bytes = (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
    if (header->e_shnum == 0 || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_shoff % _Alignof(Elf64_Shdr) != 0 ||
        !range_is_inside(file, header->e_shoff, bytes)) {
        return false;
    }
    file->sections = (const Elf64_Shdr *)(file->bytes + header->e_shoff);
    file->section_count = header->e_shnum;
    for (size_t index = 0; index < file->section_count; index++) {
        const Elf64_Shdr *section = &file->sections[index];
        bool is_table = section->sh_type == SHT_DYNSYM || section->sh_type == SHT_SYMTAB;
        if (!is_table || !range_is_inside(file, section->sh_offset, section->sh_size) ||
            section->sh_link >= file->section_count) {
            continue;
        }
        if (section->sh_type == SHT_DYNSYM) {
            file->dynsym = section;
        } else {
            file->symtab = section;
        }
    }
    return true;
}

bool elf_open(struct elf_file *file, const char *path)
{
    memset(file, 0, sizeof(*file));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    struct stat status;
    bool is_usable = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                     (size_t)status.st_size >= sizeof(Elf64_Ehdr);
    void *bytes = MAP_FAILED;
    if (is_usable) {
        file->size = (size_t)status.st_size;
        bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (bytes == MAP_FAILED) {
        return false;
    }
    file->bytes = bytes;
    bool is_elf64 = memcmp(file->bytes, ELFMAG, SELFMAG) == 0 &&
                    file->bytes[EI_CLASS] == ELFCLASS64 && file->bytes[EI_DATA] == ELFDATA2LSB;
    if (!is_elf64 || !find_sections(file)) {
        elf_close(file);
        return false;
    }
    return true;
}

void elf_close(struct elf_file *file)
{
    if (file->bytes != NULL) {
        munmap((void *)(uintptr_t)file->bytes, file->size);
    }
    memset(file, 0, sizeof(*file));
}

static const char *symbol_name(const struct elf_file *file,
                               const Elf64_Shdr *table,
                               const Elf64_Sym *symbol)
{
    const Elf64_Shdr *strings = &file->sections[table->sh_link];
    if (symbol->st_name >= strings->sh_size ||
        !range_is_inside(file, strings->sh_offset, strings->sh_size)) {
        return "";
    }
    return (const char *)file->bytes + strings->sh_offset + symbol->st_name;
}

static const Elf64_Sym *table_symbols(const struct elf_file *file, const Elf64_Shdr *table)
{
    return (const Elf64_Sym *)(const void *)(file->bytes + table->sh_offset);
}

static uint64_t address_in(const struct elf_file *file, const Elf64_Shdr *table, const char *name)
{
    if (table == NULL) {
        return 0;
    }
    const Elf64_Sym *symbols = table_symbols(file, table);
    size_t count = table->sh_size / sizeof(Elf64_Sym);
    for (size_t index = 1; index < count; index++) {
        unsigned type = ELF64_ST_TYPE(symbols[index].st_info);
        bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
        if (is_function && symbols[index].st_shndx != SHN_UNDEF &&
            strcmp(symbol_name(file, table, &symbols[index]), name) == 0) {
            return symbols[index].st_value;
        }
    }
    return 0;
}

uint64_t elf_exported_at(const struct elf_file *file, const char *name)
{
    return address_in(file, file->dynsym, name);
}

bool elf_has_private_function(const struct elf_file *file, const char *name)
{
    return address_in(file, file->symtab, name) != 0 && elf_exported_at(file, name) == 0;
}

// A reference whose slot holds the plain address of a symbol.
static bool holds_address(uint16_t machine, uint64_t type)
{
    if (machine == EM_X86_64) {
        return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
    }
    if (machine == EM_AARCH64) {
        return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
    }
    return false;
}

// For each name its index in the dynamic symbol table, or 0, which is no symbol.
static void find_indices(const struct elf_file *file,
                         const char *const *names,
                         size_t name_count,
                         size_t *indices)
{
    const Elf64_Sym *symbols = table_symbols(file, file->dynsym);
    size_t count = file->dynsym->sh_size / sizeof(Elf64_Sym);
    for (size_t index = 1; index < count; index++) {
        const char *text = symbol_name(file, file->dynsym, &symbols[index]);
        for (size_t name = 0; name < name_count; name++) {
            if (strcmp(text, names[name]) == 0) {
                indices[name] = index;
            }
        }
    }
}

size_t elf_find_slots(const struct elf_file *file,
                      const char *const *names,
                      size_t name_count,
                      struct elf_slot *slots,
                      size_t slot_max)
{
    size_t indices[NAMES_MAX] = {0};
    if (file->dynsym == NULL || name_count > NAMES_MAX) {
        return 0;
    }
    find_indices(file, names, name_count, indices);
    uint16_t machine = ((const Elf64_Ehdr *)file->bytes)->e_machine;
    size_t found = 0;
    for (size_t number = 0; number < file->section_count; number++) {
        const Elf64_Shdr *section = &file->sections[number];
        bool is_dynamic = section->sh_type == SHT_RELA && section->sh_link < file->section_count &&
                          &file->sections[section->sh_link] == file->dynsym;
        if (!is_dynamic || !range_is_inside(file, section->sh_offset, section->sh_size)) {
            continue;
        }
        const void *start = file->bytes + section->sh_offset;
        const Elf64_Rela *references = start;
        for (size_t index = 0; index < section->sh_size / sizeof(Elf64_Rela); index++) {
            uint64_t symbol = ELF64_R_SYM(references[index].r_info);
            if (symbol == 0 || !holds_address(machine, ELF64_R_TYPE(references[index].r_info))) {
                continue;
            }
            for (unsigned name = 0; name < name_count && found < slot_max; name++) {
                if (indices[name] == symbol) {
                    slots[found++] = (struct elf_slot){references[index].r_offset, name};
                }
            }
        }
    }
    return found;
}
