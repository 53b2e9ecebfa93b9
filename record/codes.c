// codes.c -- see codes.h.
#include "codes.h"

#include <stddef.h>
#include <string.h>

#include "recorder.h"
#include "stacks/code.h"

uint32_t hak_code_untold(uintptr_t place)
{
    const uintptr_t number = place >> HAK_CODE_SHIFT;
    if (number == HAK_CODE_UNTOLD || number >= HAK_CODE_OBJECTS) {
        return 0;
    }
    const uint64_t bit = UINT64_C(1) << number % 64;
    _Atomic(uint64_t) *told = &hak_process->told[number / 64];
    const bool is_told =
        (hak_load_relaxed(told) & bit) != 0 || (hak_or_relaxed(told, bit) & bit) != 0;
    return is_told ? 0 : (uint32_t)number;
}

static size_t path_bytes(const struct hak_code_object *object)
{
    return object->path_bytes <= CODE_PATH_BYTES ? object->path_bytes : 0;
}

static unsigned words_of(size_t bytes)
{
    return (unsigned)((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
}

// An even number: events are read in pairs of words.
unsigned hak_code_words(uint32_t number)
{
    const struct hak_code_object *object = hak_code_entry(number);
    const unsigned content = CODE_WORDS + words_of(object->id_bytes) + words_of(path_bytes(object));
    return 2 + (content + 1) / 2 * 2;
}

static void put_bytes(const void *bytes, size_t length, void (*put)(void *, uint64_t), void *data)
{
    for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
        const size_t left = length - done;
        uint64_t word = 0;
        memcpy(&word, (const char *)bytes + done, left < sizeof word ? left : sizeof word);
        put(data, word);
    }
}

void hak_code_tell(uint32_t number, void (*put)(void *, uint64_t), void *data)
{
    const struct hak_code_object *object = hak_code_entry(number);
    const size_t path = path_bytes(object);
    const unsigned words = hak_code_words(number);
    const unsigned content = CODE_WORDS + words_of(object->id_bytes) + words_of(path);
    put(data, (uint64_t)number | (uint64_t)EVENT_CODE << 56);
    put(data, words - 2);
    put(data, object->start);
    put(data, object->end);
    put(data, object->head_hash);
    put(data, object->kind | (uint64_t)object->id_bytes << 16 | (uint64_t)path << 32);
    put_bytes(object->id, object->id_bytes, put, data);
    put_bytes(object->path, path, put, data);
    for (unsigned i = content; i < words - 2; i++) {
        put(data, 0);
    }
}
