// options.h -- options by name: found, read from text, described.
//
// Threads   any, but hak_option_take: once, before the program's main.
#pragma once

#include "base/compiler.h"
#include "base/options.h"

// Where a setting stands, for a line about what is wrong with it.
struct hak_setting {
    enum hak_option_source source;
    const char *place; // what comes before the name: "HAKMEM_", or as "HAKMEM_OPTIONS: "
};

// Set what `name`, which is `name_length` long and in either case, and `value` say. What is wrong with
// them is said in one line on stderr, and nothing set.
HAK_INTERNAL void hak_option_take(const struct hak_setting *setting,
                                  const char *name,
                                  size_t name_length,
                                  const char *value);

// The text without the spaces around it: behind it they are written over.
HAK_INTERNAL char *hak_option_trimmed(char *text);

// The row of that name, which is `length` long and in either case; or NULL.
HAK_INTERNAL const struct hak_option_row *hak_option_named(const char *name, size_t length);
// What `text` means for the option, but for files and texts. False: nothing.
HAK_INTERNAL bool hak_option_parse(const struct hak_option_row *option,
                                   const char *text,
                                   uint64_t *value);

// The file that a FILE option names, or a TEXT option's text; "" when there is none.
HAK_INTERNAL const char *hak_option_file(const _Atomic(uint64_t) *option);
