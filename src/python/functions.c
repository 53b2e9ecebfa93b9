// functions.c -- see functions.h.
#include "python/functions.h"

#include <stddef.h>
#include <string.h>

#include "meta/pool.h"
#include "python/interpreter.h"
#include "python/line_table.h"
#include "python/text.h"

struct hak_functions hak_functions;

// By hash: the number of the newest entry.
enum { BUCKETS_LOG2 = 12 };
static _Atomic(uint32_t) buckets[1U << BUCKETS_LOG2];

// What was seen lately, in one word each: above, of the hash; below, what was found.
enum { KNOWN_LOG2 = 13, FOUND_BITS = 24 };
static _Atomic(uint64_t) known_numbers[1U << KNOWN_LOG2];
static _Atomic(uint64_t) known_lines[1U << KNOWN_LOG2];
#define FOUND_MAX ((UINT64_C(1) << FOUND_BITS) - 1)

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

static _Atomic(uint64_t) *slot_of(_Atomic(uint64_t) *known, uint64_t hash)
{
    return &known[hash & ((1U << KNOWN_LOG2) - 1)];
}

// What was noted for the hash, or -1.
static int64_t recall(_Atomic(uint64_t) *known, uint64_t hash)
{
    const uint64_t word = hak_load_relaxed(slot_of(known, hash));
    return word != 0 && (word ^ hash) >> FOUND_BITS == 0 ? (int64_t)(word & FOUND_MAX) : -1;
}

static void note(_Atomic(uint64_t) *known, uint64_t hash, uint64_t found)
{
    hak_store_relaxed(slot_of(known, hash), (hash & ~FOUND_MAX) | found);
}

// Products that do not wait for each other.
static uint64_t hash_of_code(const struct hak_function_code *code)
{
    const uint64_t sum = code->address * UINT64_C(0x9E3779B97F4A7C15) +
                         code->file * UINT64_C(0xBF58476D1CE4E5B9) +
                         code->name * UINT64_C(0x94D049BB133111EB) +
                         code->lines * UINT64_C(0xD6E8FEB86659FD93) + code->first_line;
    return mix(sum, sum >> 32);
}

bool hak_function_read(struct hak_pages *pages, uintptr_t address, struct hak_function_code *code)
{
    if (!hak_pages_are_readable(pages, address, hak_interpreter.code_bytes) ||
        hak_interpreter_whole(address, HAK_PYTHON_TYPE) != hak_interpreter.code_type) {
        return false;
    }
    code->address = address;
    code->file = hak_interpreter_whole(address, HAK_PYTHON_FILE);
    code->name = hak_interpreter_whole(address, HAK_PYTHON_NAME);
    code->lines = hak_interpreter_whole(address, HAK_PYTHON_LINES);
    code->first_line = hak_interpreter_half(address, HAK_PYTHON_FIRST_LINE);
    code->hash = hash_of_code(code);
    return true;
}

static uint64_t hash_of(const char *text, size_t bytes, uint64_t hash)
{
    for (size_t i = 0; i < bytes; i++) {
        hash = mix(hash, (unsigned char)text[i]);
    }
    return hash;
}

static bool is_same(const struct hak_function *one, const struct hak_function *other)
{
    return one != NULL && one->hash == other->hash && one->first_line == other->first_line &&
           one->file_bytes == other->file_bytes && one->name_bytes == other->name_bytes &&
           memcmp(one->text, other->text, one->file_bytes + one->name_bytes) == 0;
}

static uint32_t look_for(uint32_t number, const struct hak_function *wanted)
{
    const struct hak_function *entry = NULL;
    for (; number != 0; number = entry->next) {
        entry = hak_load_relaxed(&hak_functions.entries[number]);
        if (is_same(entry, wanted)) {
            break;
        }
    }
    return number;
}

static uint32_t drop(void)
{
    hak_add_relaxed(&hak_functions.dropped, 1);
    return 0;
}

// Two threads that see it for the first time may give it two numbers.
static uint32_t number_of(const struct hak_function *wanted)
{
    _Atomic(uint32_t) *bucket = &buckets[wanted->hash >> (64 - BUCKETS_LOG2)];
    uint32_t first = hak_load_acquire(bucket); // pairs with: number_of
    uint32_t number = look_for(first, wanted);
    if (number != 0) {
        return number;
    }
    if (hak_load_relaxed(&hak_functions.count) >= HAK_FUNCTIONS_MAX - 1) {
        return drop();
    }
    const size_t bytes =
        offsetof(struct hak_function, text) + wanted->file_bytes + wanted->name_bytes;
    struct hak_function *entry = hak_pool_take(bytes);
    if (entry == NULL) {
        return drop();
    }
    number = hak_add_relaxed(&hak_functions.count, 1) + 1;
    if (number >= HAK_FUNCTIONS_MAX) {
        hak_sub_relaxed(&hak_functions.count, 1);
        hak_pool_give(entry, bytes);
        return drop();
    }
    memcpy(entry, wanted, bytes);
    hak_store_relaxed(&hak_functions.entries[number], entry);
    do {
        entry->next = first;
    } while (!hak_cas_release(bucket, &first, number)); // pairs with: number_of
    return number;
}

static HAK_NOINLINE uint32_t meet(struct hak_pages *pages, const struct hak_function_code *code)
{
    struct hak_function entry;
    entry.first_line = code->first_line;
    entry.file_bytes =
        (uint32_t)hak_text_read(pages, code->file, entry.text, HAK_FUNCTION_FILE_BYTES);
    entry.name_bytes = (uint32_t)hak_text_read(
        pages, code->name, entry.text + entry.file_bytes, HAK_FUNCTION_NAME_BYTES);
    if (entry.name_bytes == 0) {
        return drop();
    }
    entry.hash = hash_of(
        entry.text, entry.file_bytes + entry.name_bytes, mix(entry.file_bytes, entry.first_line));
    return number_of(&entry);
}

uint32_t hak_function_number(struct hak_pages *pages, const struct hak_function_code *code)
{
    const int64_t known = recall(known_numbers, code->hash);
    if (HAK_LIKELY(known >= 0)) {
        return (uint32_t)known;
    }
    const uint32_t number = meet(pages, code);
    note(known_numbers, code->hash, number);
    return number;
}

static HAK_NOINLINE uint32_t find_line(struct hak_pages *pages,
                                       const struct hak_function_code *code,
                                       uint64_t unit)
{
    const uint64_t bytes = hak_interpreter_word(pages, code->lines, HAK_PYTHON_BYTES_COUNT);
    const uintptr_t table = code->lines + hak_interpreter.at[HAK_PYTHON_BYTES];
    if (!hak_pages_are_readable(pages, table, bytes)) {
        return 0;
    }
    return hak_line_table_line((const uint8_t *)table, bytes, code->first_line, unit);
}

uint32_t hak_function_line(struct hak_pages *pages,
                           const struct hak_function_code *code,
                           uint64_t unit)
{
    const uint64_t hash = mix(code->hash, unit);
    const int64_t known = recall(known_lines, hash);
    if (HAK_LIKELY(known >= 0)) {
        return (uint32_t)known;
    }
    uint32_t line = find_line(pages, code, unit);
    line = line <= FOUND_MAX ? line : 0;
    note(known_lines, hash, line);
    return line;
}
