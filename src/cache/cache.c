// cache.c -- see cache.h.
#include "cache/cache.h"

// Both: empty, because place 0 is NULL, and full, because place 1 is HAK_FULL.
hak_place hak_nothing[2] = {NULL, HAK_FULL};
#define NOTHING   (&hak_nothing[1])
#define NOTHING_8 NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING
#define NOTHING_72                                                                          \
    NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, NOTHING_8, \
        NOTHING_8
#define ALL_NOTHING {NOTHING_72, NOTHING_72}

#define NO_HOT   {.block = HAK_FULL, .bin = HAK_LARGE_NO_BIN}
#define ALL_FULL {NO_HOT, NO_HOT, NO_HOT, NO_HOT, NO_HOT, NO_HOT, NO_HOT}

// No unit has these owners' tags.
struct hak_cache hak_cache_nobody = {
    .top = ALL_NOTHING, .hot = ALL_FULL, .owner.tag = 0x7FFFFF00U, .hit_tag = 0x7FFFFF00U};
struct hak_cache hak_cache_shared = {
    .top = ALL_NOTHING,
    .owner.tag = 0x7FFFFE00U,
    .hit_tag = 0x7FFFFE00U,
    .is_direct = true,
    .frees_apart = true,
    .owner.spares_all = true,
    .owner.state = HAK_OWNER_DEAD,
    .hot = ALL_FULL,
    .owner.full = {&hak_cache_shared.owner.full, &hak_cache_shared.owner.full},
    .owner.larges = {&hak_cache_shared.owner.larges, &hak_cache_shared.owner.larges},
};

HAK_TLS struct hak_cache *hak_cache_self = &hak_cache_nobody;
HAK_TLS struct hak_cache *hak_cache_operators = &hak_cache_nobody;
static bool operators_are_apart; // written before the program's main

void hak_cache_set_operators_apart(void)
{
    operators_are_apart = true;
    hak_cache_operators = &hak_cache_nobody;
}

void hak_cache_become(struct hak_cache *cache)
{
    hak_cache_self = cache;
    hak_cache_operators = operators_are_apart ? &hak_cache_nobody : cache;
}
