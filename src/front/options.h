// options.h -- options by name: found, read from text, described.
//
// Threads   any; hak_option_take: only before the program's main.
#pragma once

#include "base/compiler.h"
#include "base/options.h"

// Where a setting comes from, for a line that says what is wrong with it.
struct hak_setting {
    enum hak_option_source source;
    const char *place; // written before the name: "HAKMEM_", or for example "HAKMEM_OPTIONS: "
};

// Set the option `name`, which is `name_length` long and in upper or lower case, to `value`. If one of them
// is wrong, a line on stderr says so, and nothing is set.
HAK_INTERNAL void hak_option_take(const struct hak_setting *setting,
                                  const char *name,
                                  size_t name_length,
                                  const char *value);

// The text without the spaces around it. Those behind it are overwritten.
HAK_INTERNAL char *hak_option_trimmed(char *text);

// The row of that name, which is `length` long and in upper or lower case; or NULL.
HAK_INTERNAL const struct hak_option_row *hak_option_named(const char *name, size_t length);
// Read `text` as a value of the option, but not as a file's name or a text. False: it is no value.
HAK_INTERNAL bool hak_option_parse(const struct hak_option_row *option,
                                   const char *text,
                                   uint64_t *value);

// The file that a FILE option names, or a TEXT option's text; "" when there is none.
HAK_INTERNAL const char *hak_option_file(const _Atomic(uint64_t) *option);
