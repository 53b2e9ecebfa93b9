// exports.c -- see exports.h.
#include "front/exports.h"

#include <string.h>

// As a rule, the dynamic linker has turned addresses in the file into addresses in memory.
static uintptr_t address_in(ElfW(Addr) base, ElfW(Addr) address)
{
    return address < base ? base + address : address;
}

bool hak_exports_read(struct hak_exports *exports, ElfW(Addr) base, const ElfW(Dyn) * dynamic)
{
    const uint32_t *table = NULL;
    *exports = (struct hak_exports){.base = base};
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const uintptr_t address = address_in(base, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_SYMTAB) {
            exports->symbols = (ElfW(Sym) *)address;
        } else if (dynamic->d_tag == DT_STRTAB) {
            exports->names = (const char *)address;
        } else if (dynamic->d_tag == DT_GNU_HASH) {
            table = (const uint32_t *)address;
        }
    }
    if (exports->symbols == NULL || exports->names == NULL || table == NULL || table[0] == 0) {
        return false;
    }
    const size_t filter_words = table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    exports->bucket_count = table[0];
    exports->first = table[1];
    exports->buckets = table + 4 + filter_words;
    exports->hashes = exports->buckets + exports->bucket_count;
    return true;
}

// Is the symbol the last one of its bucket?
static bool is_last(const struct hak_exports *exports, uint32_t index)
{
    return (exports->hashes[index - exports->first] & 1) != 0;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (const char *c = name; *c != '\0'; c++) {
        hash = hash * 33 + (unsigned char)*c;
    }
    return hash;
}

uint32_t hak_exports_next(const struct hak_exports *exports, const char *name, uint32_t before)
{
    uint32_t index = before + 1;
    if (before == 0) {
        index = exports->buckets[hash_of(name) % exports->bucket_count];
    } else if (is_last(exports, before)) {
        index = 0;
    }
    while (index != 0 && strcmp(exports->names + exports->symbols[index].st_name, name) != 0) {
        index = is_last(exports, index) ? 0 : index + 1;
    }
    return index;
}
