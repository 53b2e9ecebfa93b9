// A code place names the loaded object of an address, by range, path and identity, the same one each time; code that was
// generated at run time belongs to none.
#include "stacks/code.h"

#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../unit.h"

static uintptr_t number_of(uintptr_t place)
{
    return place >> HAK_CODE_SHIFT;
}

static void check_object(uintptr_t place, const char *ending)
{
    const struct hak_code_object *object = hak_code_entry((uint32_t)number_of(place));
    const size_t length = strlen(ending);
    UNIT_CHECK(object->start < HAK_PLACE_ADDRESS(place) && HAK_PLACE_ADDRESS(place) < object->end);
    UNIT_CHECK(object->path_bytes > length && object->path[0] == '/');
    UNIT_CHECK(memcmp(object->path + object->path_bytes - length, ending, length) == 0);
    UNIT_CHECK(object->kind == HAK_CODE_BUILD_ID || object->kind == HAK_CODE_HASH);
    UNIT_CHECK((object->kind == HAK_CODE_BUILD_ID) == (object->id_bytes > 0));
    UNIT_CHECK((object->kind == HAK_CODE_HASH) == (object->head_hash != 0));
}

int main(void)
{
    const uintptr_t own = (uintptr_t)&check_object + 1;
    struct hak_code_hint without = {0};
    hak_fake.refuse_asks =
        true; // no memory for an entry: a tool takes what is mapped when it reads the place
    UNIT_EQUAL(hak_code_place(own, &without), own);
    UNIT_EQUAL(hak_load_relaxed(&hak_code.count), 0);
    hak_fake.refuse_asks = false;
    struct hak_code_hint with_locks = {.has_locks = true}; // maybe the pool's
    UNIT_EQUAL(hak_code_place(own, &with_locks), own);
    UNIT_EQUAL(hak_load_relaxed(&hak_code.count), 0);

    struct hak_code_hint hint = {0};
    const uintptr_t place = hak_code_place(own, &hint);
    UNIT_EQUAL(HAK_PLACE_ADDRESS(place), own);
    if (number_of(place) == HAK_CODE_UNTOLD) {
        return 77; // a C library that does not tell
    }
    check_object(place, "code_test");

    struct hak_code_hint other = {0};
    UNIT_EQUAL(hak_code_place(own, &other), place);
    UNIT_EQUAL(hak_code_place(own + 1, &hint), place + 1);
    const uint32_t count = hak_load_relaxed(&hak_code.count);

    // As the dynamic linker calls it, when no file may be read.
    struct hak_code_hint quiet = {.is_quiet = true};
    check_object(hak_code_place((uintptr_t)&gnu_get_libc_version + 1, &quiet), "libc.so.6");
    UNIT_EQUAL(hak_load_relaxed(&hak_code.count), count + 1);

    void *made = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    UNIT_CHECK(made != MAP_FAILED);
    UNIT_EQUAL(number_of(hak_code_place((uintptr_t)made + 16, &hint)), HAK_CODE_OF_NONE);
    UNIT_EQUAL(hak_load_relaxed(&hak_code.count), count + 1);
    return 0;
}
