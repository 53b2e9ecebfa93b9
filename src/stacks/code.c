// code.c -- see code.h.
#include "stacks/code.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "meta/pool.h"
#include "os/module.h"
#include "os/os.h"
#include "stacks/find_object.h"

struct hak_code hak_code;

// A hash table by the start of the object: the number of the newest entry.
enum { BUCKETS_LOG2 = 8 };
static _Atomic(uint32_t) buckets[1U << BUCKETS_LOG2];

static _Atomic(uint32_t) *bucket_of(uintptr_t start)
{
    return &buckets[(start * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - BUCKETS_LOG2)];
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

// Each fourth word is hashed separately, as otherwise one multiplication would wait for the other.
static uint64_t head_hash(const void *head)
{
    enum { LANES = 4 };
    uint64_t lanes[LANES] = {0};
    for (size_t i = 0; i < HAK_CODE_HEAD_BYTES; i += sizeof lanes) {
        uint64_t words[LANES];
        memcpy(words, (const char *)head + i, sizeof words);
        for (unsigned lane = 0; lane < LANES; lane++) {
            lanes[lane] = mix(lanes[lane], words[lane]);
        }
    }
    return mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
}

// A number in the head; 0 beyond its end.
static uint64_t head_number(const char *head, uint64_t at, unsigned bytes)
{
    uint64_t value = 0;
    if (at <= HAK_CODE_HEAD_BYTES - bytes) {
        memcpy(&value, head + at, bytes);
    }
    return value;
}

// Find the build id among the notes from `note` to `end`, if it lies in the head as a whole. Its length, or 0.
static uint32_t id_among(const char *head, uint64_t note, uint64_t end, uint32_t *offset)
{
    end = end < HAK_CODE_HEAD_BYTES ? end : HAK_CODE_HEAD_BYTES;
    while (note < end && end - note >= 16) {
        const uint64_t name = head_number(head, note, 4);
        const uint64_t bytes = head_number(head, note + 4, 4);
        const uint64_t content = note + 12 + (name + 3) / 4 * 4;
        if (head_number(head, note + 8, 4) == NT_GNU_BUILD_ID && name == 4 &&
            memcmp(head + note + 12, "GNU", 4) == 0 && bytes > 0 && bytes <= HAK_CODE_ID_MAX) {
            *offset = (uint32_t)content;
            return content + bytes <= HAK_CODE_HEAD_BYTES ? (uint32_t)bytes : 0;
        }
        note = content + (bytes + 3) / 4 * 4;
    }
    return 0;
}

// Find the build id as cli/heap/src/code.rs does in the file.
static uint32_t find_id(const char *head, uint32_t *offset)
{
    const uint64_t table = head_number(head, offsetof(Elf64_Ehdr, e_phoff), 8);
    const uint64_t count = head_number(head, offsetof(Elf64_Ehdr, e_phnum), 2);
    if (memcmp(head, ELFMAG "\2\1", 6) != 0 || table > HAK_CODE_HEAD_BYTES ||
        head_number(head, offsetof(Elf64_Ehdr, e_phentsize), 2) != sizeof(Elf64_Phdr)) {
        return 0;
    }
    uint32_t bytes = 0;
    for (uint64_t i = 0; i < count && bytes == 0; i++) {
        const uint64_t at = table + i * sizeof(Elf64_Phdr);
        if (head_number(head, at, 4) == PT_NOTE) {
            const uint64_t note = head_number(head, at + offsetof(Elf64_Phdr, p_offset), 8);
            const uint64_t size = head_number(head, at + offsetof(Elf64_Phdr, p_filesz), 8);
            bytes = id_among(head, note, note + size, offset);
        }
    }
    return bytes;
}

// A linker that is told to write no id may write zeros, and then all of its files have the same.
static bool is_zero(const char *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static void note_identity(struct hak_code_object *object)
{
    const char *head = (const char *)object->start;
    if (object->end - object->start < HAK_CODE_HEAD_BYTES || !hak_os_can_read(head)) {
        return;
    }
    object->id_bytes = find_id(head, &object->id_offset);
    if (is_zero(head + object->id_offset, object->id_bytes)) {
        object->id_bytes = 0;
    }
    object->kind = object->id_bytes > 0 ? HAK_CODE_BUILD_ID : HAK_CODE_HASH;
    if (object->kind == HAK_CODE_BUILD_ID) {
        memcpy(object->id, head + object->id_offset, object->id_bytes);
    } else {
        object->head_hash = head_hash(head);
    }
}

// Is this object loaded, still or again, from `start` to `end`? An object's first page can be read: the
// dynamic linker has read it.
static bool is_loaded(const struct hak_code_object *object, uintptr_t start, uintptr_t end)
{
    if (object->start != start || object->end != end) {
        return false;
    }
    switch (object->kind) {
    case HAK_CODE_BUILD_ID:
        return memcmp((const char *)start + object->id_offset, object->id, object->id_bytes) == 0;
    case HAK_CODE_HASH:
        return head_hash((const void *)start) == object->head_hash;
    default:
        return true;
    }
}

// Make an entry, with the path that the kernel has, else the dynamic linker's. That has none for the program: then the path that
// started it. NULL without memory.
static struct hak_code_object *object_make(uintptr_t start,
                                           uintptr_t end,
                                           const char *name,
                                           bool is_quiet)
{
    char text[256];
    size_t length = is_quiet ? 0 : hak_module_path(start, text, sizeof text);
    if (*name == '\0') {
        const char *started_as = (const char *)getauxval(AT_EXECFN);
        name = started_as != NULL ? started_as : name;
    }
    const bool is_mapped = length > 0;
    length = is_mapped ? length : strlen(name);
    length = length <= HAK_CODE_PATH_MAX ? length : 0;
    struct hak_code_object *object = hak_pool_take(sizeof *object + length);
    if (object == NULL) {
        return NULL;
    }
    object->start = start;
    object->end = end;
    object->path_bytes = (uint32_t)length;
    note_identity(object);
    if (!is_mapped) {
        memcpy(object->path, name, length);
    } else if (length <= sizeof text) {
        memcpy(object->path, text, length);
    } else if (hak_module_path(start, object->path, length) != length) {
        object->path_bytes = 0; // it was renamed between the two looks
    }
    return object;
}

static uint32_t look_for(uint32_t number, uintptr_t start, uintptr_t end)
{
    while (number != 0 && !is_loaded(hak_code_entry(number), start, end)) {
        number = hak_code_entry(number)->next;
    }
    return number;
}

// The number of the object that is loaded from `start` to `end`. Two threads that both see it first may give it two.
static uint32_t number_of(uintptr_t start,
                          uintptr_t end,
                          const char *name,
                          const struct hak_code_hint *hint)
{
    _Atomic(uint32_t) *bucket = bucket_of(start);
    uint32_t first = hak_load_acquire(bucket); // pairs with: number_of
    uint32_t number = look_for(first, start, end);
    if (number != 0) {
        return number;
    }
    if (hak_load_relaxed(&hak_code.count) >= HAK_CODE_OBJECTS - 1) {
        return HAK_CODE_MANY;
    }
    struct hak_code_object *object =
        hint->has_locks ? NULL : object_make(start, end, name, hint->is_quiet);
    if (object == NULL) {
        return HAK_CODE_UNTOLD;
    }
    number = hak_add_relaxed(&hak_code.count, 1) + 1;
    if (number >=
        HAK_CODE_OBJECTS) { // another thread took the last number: the item is left unused
        hak_sub_relaxed(&hak_code.count, 1);
        return HAK_CODE_MANY;
    }
    hak_store_relaxed(&hak_code.entries[number], object);
    do {
        object->next = first;
    } while (!hak_cas_release(bucket, &first, number)); // pairs with: number_of
    return number;
}

static uintptr_t number_at(uintptr_t address, struct hak_code_hint *hint)
{
    struct hak_found_object found;
    if (hak_find_object == NULL) {
        return HAK_CODE_UNTOLD;
    }
    if (hak_find_object((void *)address, &found) != 0) {
        return HAK_CODE_OF_NONE;
    }
    const uintptr_t start = (uintptr_t)found.start;
    const uintptr_t end = (uintptr_t)found.end;
    const unsigned index = hint->next++ % HAK_CODE_HINTS;
    hint->last[index].start = start;
    hint->last[index].end = end;
    hint->last[index].number = number_of(start, end, found.map->l_name, hint);
    return hint->last[index].number;
}

static uintptr_t number_with(uintptr_t address, struct hak_code_hint *hint)
{
    for (unsigned i = 0; i < HAK_CODE_HINTS; i++) {
        const uintptr_t start = hint->last[i].start;
        if (address - start < hint->last[i].end - start) {
            return hint->last[i].number;
        }
    }
    return number_at(address, hint);
}

uintptr_t hak_code_place(uintptr_t return_address, struct hak_code_hint *hint)
{
    // Look up the call itself: it may be the object's last instruction.
    return return_address | number_with(return_address - 1, hint) << HAK_CODE_SHIFT;
}
