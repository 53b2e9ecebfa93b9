// options.h -- the option values, and who set them.
//
// Threads   any may read: single words, relaxed. A writer holds the lock that hak_option_choose names.
//
// A value is the default of options.def until the mode or the machine (slab/defaults.c) sets another default, or
// somebody sets the value.
#pragma once

#include "base/atomic.h"
#include "base/compiler.h"

struct hak_options {
#define HAK_OPTION(name, kind, unit, initial, min, max, when, help) _Atomic(uint64_t) name;
#include "base/options.def"
};

HAK_INTERNAL extern struct hak_options hak_options;

enum hak_option_kind {
    HAK_OPTION_SWITCH,
    HAK_OPTION_NUMBER,
    HAK_OPTION_CHOICE,
    HAK_OPTION_FILE,
    HAK_OPTION_TEXT
};
enum hak_option_when { HAK_OPTION_AT_START, HAK_OPTION_AT_ANY_TIME };

// An option's row of the table.
struct hak_option_row {
    const char *name;
    const char *unit; // of a number; the words of a choice, separated by |; what a text looks like
    const char *help;
    uint64_t initial;
    uint64_t least;
    uint64_t most;
    uint32_t kind; // enum hak_option_kind
    uint32_t when; // enum hak_option_when
};

// In the order of hak_options.
enum {
#define HAK_OPTION(name, kind, unit, initial, min, max, when, help) HAK_OPTION_IS_##name,
#include "base/options.def"
    HAK_OPTION_COUNT
};
HAK_INTERNAL extern const struct hak_option_row hak_option_rows[HAK_OPTION_COUNT];

// The values that turn a feature on and off.
struct hak_option_feature {
    uint32_t option; // its number
    uint32_t on;
    uint32_t off;
};
enum {
#define HAK_FEATURE(option, on, off) HAK_FEATURE_IS_##option,
#include "base/options.def"
    HAK_FEATURE_COUNT
};
HAK_INTERNAL extern const struct hak_option_feature hak_option_features[HAK_FEATURE_COUNT];

// The sources of an option's value; a later one overrules an earlier one.
enum hak_option_source {
    HAK_FROM_DEFAULT,
    HAK_FROM_MODE,
    HAK_FROM_MACHINE,  // the machine's memory and processors
    HAK_FROM_LEARNER,  // the learner, or what it wrote (HAKMEM_PROFILE)
    HAK_FROM_FILE,     // HAKMEM_CONFIG
    HAK_FROM_LIST,     // HAKMEM_OPTIONS
    HAK_FROM_VARIABLE, // HAKMEM_<NAME>
    HAK_FROM_PROGRAM,  // hak_option_set
    HAK_OPTION_SOURCES
};

// The source of each option's value, in the order of hak_options.
struct hak_option_sources {
#define HAK_OPTION(name, kind, unit, initial, min, max, when, help) _Atomic(uint8_t) name;
#include "base/options.def"
};
HAK_INTERNAL extern struct hak_option_sources hak_option_sources;

HAK_INTERNAL enum hak_option_source hak_option_source_of(const _Atomic(uint64_t) *option);
// Set one of hak_options. False: its present source overrules this one. The caller holds the arena's lock
// (hak_defaults_choose), also for the next function.
HAK_INTERNAL bool hak_option_choose(_Atomic(uint64_t) *option,
                                    uint64_t value,
                                    enum hak_option_source source);
// Apply the defaults of the mode that option mode names.
HAK_INTERNAL void hak_option_apply_mode(void);
