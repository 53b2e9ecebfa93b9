// options.c -- see options.h.
#include "base/options.h"

struct hak_options hak_options = {
#define HAK_OPTION(name, kind, unit, initial, min, max, when, help) .name = (initial),
#include "base/options.def"
};

struct hak_option_sources hak_option_sources;

HAK_IN_CORE const struct hak_option_feature hak_option_features[] = {
#define HAK_FEATURE(option, on, off) {HAK_OPTION_IS_##option, (on), (off)},
#include "base/options.def"
};

HAK_IN_CORE const struct hak_option_row hak_option_rows[HAK_OPTION_COUNT] = {
#define HAK_OPTION(name, kind, unit, initial, min, max, when, help) \
    {#name, (unit), (help), (initial), (min), (max), HAK_OPTION_##kind, HAK_OPTION_##when},
#include "base/options.def"
};

static _Atomic(uint8_t) *source_place(const _Atomic(uint64_t) *option)
{
    return (_Atomic(uint8_t) *)&hak_option_sources +
           (option - (const _Atomic(uint64_t) *)&hak_options);
}

enum hak_option_source hak_option_source_of(const _Atomic(uint64_t) *option)
{
    return hak_load_relaxed(source_place(option));
}

bool hak_option_choose(_Atomic(uint64_t) *option, uint64_t value, enum hak_option_source source)
{
    const bool is_chosen = hak_option_source_of(option) <= source;
    if (is_chosen) {
        hak_store_relaxed(source_place(option), (uint8_t)source);
        hak_store_relaxed(option, value);
    }
    return is_chosen;
}

enum {
#define HAK_MODE(name, help) MODE_##name,
#include "base/options.def"
};

void hak_option_apply_mode(void)
{
    const struct {
        unsigned mode;
        _Atomic(uint64_t) *option;
        uint64_t value;
    } rows[] = {
#define HAK_MODE_SETS(mode, option, value) {MODE_##mode, &hak_options.option, (value)},
#include "base/options.def"
    };
    const uint64_t mode = hak_load_relaxed(&hak_options.mode);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].mode == mode) {
            hak_option_choose(rows[i].option, rows[i].value, HAK_FROM_MODE);
        }
    }
}
