// options.c -- the values, and whose they are.
#include "base/options.h"

struct hak_options hak_options = {
#define HAK_OPTION(name, initial, min, max, help) .name = (initial),
#include "base/options.def"
#undef HAK_OPTION
};

static _Atomic(uint64_t) chosen; // a bit for each option

static uint64_t option_bit(const _Atomic(uint64_t) *option)
{
    return UINT64_C(1) << (option - (const _Atomic(uint64_t) *)&hak_options);
}

void hak_option_choose(_Atomic(uint64_t) *option, uint64_t value)
{
    hak_or_relaxed(&chosen, option_bit(option));
    hak_store_relaxed(option, value);
}

void hak_option_fit(_Atomic(uint64_t) *option, uint64_t value)
{
    uint64_t before = hak_load_relaxed(option);
    if ((hak_load_relaxed(&chosen) & option_bit(option)) == 0) {
        hak_cas_relaxed(option, &before, value); // not if it is being chosen at this moment
    }
}
