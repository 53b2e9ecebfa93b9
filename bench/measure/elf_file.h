// elf_file.h -- reads which symbols an ELF file defines, and where it keeps its references.
//
// Reads the file on disk, not the process: only the values of slots have to come
// from the running process. 64-bit little-endian files only (x86-64, aarch64).
#ifndef MEASURE_ELF_FILE_H
#define MEASURE_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
    const unsigned char *bytes; // the mapped file; NULL when closed
    size_t size;
    const Elf64_Shdr *sections;
    size_t section_count;
    const Elf64_Shdr *dynsym; // NULL when the file has no dynamic symbols
    const Elf64_Shdr *symtab; // NULL when stripped
};

// A slot of the file that the dynamic linker fills with a symbol's address.
struct elf_slot {
    uint64_t offset; // of the slot, from the object's load address
    unsigned name;   // index into the names asked for
};

// Map `path`. False when it is not a readable ELF file with sections.
bool elf_open(struct elf_file *file, const char *path);
void elf_close(struct elf_file *file);

// The address, from the load address, of the function `name` that the file offers to
// others; 0 when it offers none.
uint64_t elf_exported_at(const struct elf_file *file, const char *name);

// Whether `name` is a function of this file that others cannot see. Such a
// program calls its own malloc, whatever is preloaded.
bool elf_has_private_function(const struct elf_file *file, const char *name);

// Collect the slots that refer to one of `names`. Returns how many were stored.
size_t elf_find_slots(const struct elf_file *file,
                      const char *const *names,
                      size_t name_count,
                      struct elf_slot *slots,
                      size_t slot_max);

#endif
