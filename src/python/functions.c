// functions.c -- see functions.h.
#include "python/functions.h"

#include <string.h>

#include "meta/pool.h"
#include "meta/table.h"
#include "python/interpreter.h"
#include "python/line_table.h"
#include "python/text.h"
#include "stacks/code.h"

struct hak_functions hak_functions;

static struct hak_function_set *set_of(struct hak_function_table *table, uint64_t hash)
{
    return &table->sets[(hash >> (64 - HAK_FUNCTION_KNOWN_LOG2)) / HAK_FUNCTION_WAYS];
}

static unsigned way_of(uint64_t hash)
{
    return hash >> (64 - HAK_FUNCTION_KNOWN_LOG2) & (HAK_FUNCTION_WAYS - 1);
}

// The place with this hash; 0: it is not noted there.
static uintptr_t recall_at(const struct hak_function_set *set, unsigned way, uint64_t hash)
{
    const uint64_t place = hak_load_relaxed(&set->place[way]);
    return (hak_load_relaxed(&set->check[way]) ^ place) == hash ? place : 0;
}

static uintptr_t recall(struct hak_function_table *table, uint64_t hash)
{
    uintptr_t place = 0;
    for (unsigned way = 0; way < HAK_FUNCTION_WAYS && place == 0; way++) {
        place = recall_at(set_of(table, hash), way, hash);
    }
    return place;
}

static void note(struct hak_function_table *table, uint64_t hash, uintptr_t place)
{
    struct hak_function_set *set = set_of(table, hash);
    const unsigned way = way_of(hash);
    const unsigned beside = (way + 1) % HAK_FUNCTION_WAYS;
    hak_store_relaxed(&set->place[beside], hak_load_relaxed(&set->place[way]));
    hak_store_relaxed(&set->check[beside], hak_load_relaxed(&set->check[way]));
    hak_store_relaxed(&set->place[way], place);
    hak_store_relaxed(&set->check[way], place ^ hash);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

// A hash of what tells a code object from others, also from a later one at its address. Its products do not wait for each other;
// the upper bits depend on all of them.
static uint64_t hash_of_code(uintptr_t address)
{
    return address * UINT64_C(0x9E3779B97F4A7C15) +
           hak_interpreter_whole(address, HAK_PYTHON_FILE) * UINT64_C(0xBF58476D1CE4E5B9) +
           hak_interpreter_whole(address, HAK_PYTHON_NAME) * UINT64_C(0x94D049BB133111EB) +
           hak_interpreter_whole(address, HAK_PYTHON_LINES) * UINT64_C(0xD6E8FEB86659FD93) +
           hak_interpreter_half(address, HAK_PYTHON_FIRST_LINE) * UINT64_C(0xA0761D6478BD642F);
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

static uint32_t look_for(const struct hak_function_table *table,
                         uint32_t number,
                         const struct hak_function *wanted)
{
    const struct hak_function *entry = NULL;
    for (; number != 0; number = entry->next) {
        entry = hak_load_relaxed(&table->entries[number]);
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

// Two threads that both see a function first may give it two numbers.
static uint32_t number_of(struct hak_function_table *table, const struct hak_function *wanted)
{
    _Atomic(uint32_t) *bucket = &table->buckets[wanted->hash >> (64 - HAK_FUNCTION_BUCKETS_LOG2)];
    uint32_t first = hak_load_acquire(bucket); // pairs with: number_of
    uint32_t number = look_for(table, first, wanted);
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
    hak_store_relaxed(&table->entries[number], entry);
    do {
        entry->next = first;
    } while (!hak_cas_release(bucket, &first, number)); // pairs with: number_of
    return number;
}

static uint32_t number_of_code(struct hak_function_table *table,
                               struct hak_pages *pages,
                               uintptr_t address)
{
    struct hak_function entry;
    entry.first_line = hak_interpreter_half(address, HAK_PYTHON_FIRST_LINE);
    entry.file_bytes = (uint32_t)hak_text_read(pages,
                                               hak_interpreter_whole(address, HAK_PYTHON_FILE),
                                               entry.text,
                                               HAK_FUNCTION_FILE_BYTES);
    entry.name_bytes = (uint32_t)hak_text_read(pages,
                                               hak_interpreter_whole(address, HAK_PYTHON_NAME),
                                               entry.text + entry.file_bytes,
                                               HAK_FUNCTION_NAME_BYTES);
    if (entry.name_bytes == 0) {
        return drop();
    }
    entry.hash = hash_of(
        entry.text, entry.file_bytes + entry.name_bytes, mix(entry.file_bytes, entry.first_line));
    return number_of(table, &entry);
}

static uint64_t line_of(struct hak_pages *pages, uintptr_t address, uint64_t unit)
{
    const uint32_t first_line = hak_interpreter_half(address, HAK_PYTHON_FIRST_LINE);
    const uintptr_t lines = hak_interpreter_whole(address, HAK_PYTHON_LINES);
    const uint64_t bytes = hak_interpreter_word(pages, lines, HAK_PYTHON_BYTES_COUNT);
    const uintptr_t table = lines + hak_interpreter.at[HAK_PYTHON_BYTES];
    if (unit >= HAK_FUNCTION_NOT_BEGUN) {
        return first_line;
    }
    if (!hak_pages_are_readable(pages, table, bytes)) {
        return 0;
    }
    return hak_line_table_line((const uint8_t *)table, bytes, first_line, unit);
}

static uint64_t hash_of_unit(uint64_t hash, uint64_t unit)
{
    return hash + (unit + 1) * UINT64_C(0xE7037ED1A0B428DB);
}

static uintptr_t place_of(uint32_t number)
{
    const uintptr_t kind = HAK_CODE_OF_FUNCTION;
    return kind << HAK_CODE_SHIFT | (uintptr_t)number << HAK_FUNCTION_LINE_BITS;
}

// A function's names take longer to read than a line, so they are noted under the hash of the code object alone.
static uintptr_t meet(struct hak_function_table *table,
                      struct hak_pages *pages,
                      uintptr_t address,
                      uint64_t hash,
                      uint64_t unit)
{
    uintptr_t place = recall(table, hash);
    if (place == 0) {
        place = place_of(number_of_code(table, pages, address));
        note(table, hash, place);
    }
    const uint64_t line = line_of(pages, address, unit);
    place |= line < UINT64_C(1) << HAK_FUNCTION_LINE_BITS ? line : 0;
    hash = hash_of_unit(hash, unit);
    note(table, hash, place);
    return place;
}

static HAK_NOINLINE uintptr_t place_slow(struct hak_pages *pages, uintptr_t address, uint64_t unit)
{
    if (!hak_pages_are_readable(pages, address, hak_interpreter.code_bytes)) {
        return 0;
    }
    struct hak_function_table *table =
        hak_table_take(&hak_functions.table, sizeof(struct hak_function_table));
    const uint64_t hash = hash_of_code(address);
    const uintptr_t place = table != NULL ? recall(table, hash_of_unit(hash, unit)) : 0;
    if (place != 0) {
        return place;
    }
    if (hak_interpreter_whole(address, HAK_PYTHON_TYPE) != hak_interpreter.code_type) {
        return 0;
    }
    return table != NULL ? meet(table, pages, address, hash, unit) : place_of(drop());
}

// A deep stack calls this for each of its frames. It saves no register, as its only call comes last.
uintptr_t hak_function_place(struct hak_pages *pages, uintptr_t address, uint64_t unit)
{
    struct hak_function_table *table = hak_table_find(&hak_functions.table);
    if (HAK_LIKELY(table != NULL &&
                   hak_pages_are_known(pages, address, hak_interpreter.code_bytes))) {
        const uint64_t hash = hash_of_unit(hash_of_code(address), unit);
        const uintptr_t place = recall_at(set_of(table, hash), way_of(hash), hash);
        if (HAK_LIKELY(place != 0)) {
            return place;
        }
    }
    return place_slow(pages, address, unit);
}
