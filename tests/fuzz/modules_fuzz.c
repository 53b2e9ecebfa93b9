// with features
// modules_fuzz.c -- whatever the file of a module contains, its functions are found inside it, or none are.
//
// The first byte chooses the name to look up; the rest is the file.
//
// faked system
#define HT_ABORT_WHEN_BROKEN
#include <stdint.h>

#include "../unit/unit.h"
#include "rules/modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void note(uintptr_t start, uintptr_t end, void *data)
{
    (void)start;
    (void)end;
    (*(size_t *)data)++;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const char *const names[] = {"main", "", "f", "malloc_hook"};
    const struct hak_module module = {"m", "m", 0x10000};
    if (length < 2) {
        return 0;
    }
    // A copy of exactly that length, page-aligned: a read beyond it is noticed.
    unsigned char *copy = malloc(length - 1);
    UNIT_CHECK(copy != NULL);
    memcpy(copy, bytes + 1, length - 1);
    const struct hak_fake_content contents[] = {{"m", copy, length - 1}, {NULL, NULL, 0}};
    size_t found = 0;
    hak_fake.contents = contents;
    hak_module_visit_functions(&module, names[bytes[0] % 4], note, &found);
    hak_fake.contents = NULL;
    UNIT_CHECK(found <= length);
    free(copy);
    return 0;
}
