// hardened_secure.c -- the steps of hardened.h for mode secure with its own options: the checks are constants here, and
// vectors are as wide as the processor's. On other processors hardened.c does without this file.
#define HAK_IS_WIDE 1
#include "secure/hardened.h"

HAK_WIDEST void *hak_hardened_take_secure(size_t bytes,
                                          struct hak_stock *stock,
                                          struct hak_hardened *hardened,
                                          struct hak_cache *cache)
{
    const struct hak_held picked = hak_hardened_pick(hardened, stock, true);
    return hak_hardened_hand_out(cache, picked, stock->bytes, bytes, HAK_CHECKS_ALL);
}

HAK_WIDEST void hak_hardened_give_secure(
    char *block, size_t bytes, uint32_t size_class, hak_state *state, struct hak_hardened *hardened)
{
    HAK_ASSUME(bytes <= HAK_HARDEN_CLEAR_MAX);
    hak_hardened_give(hardened, (struct hak_held){block, state}, bytes, size_class, HAK_CHECKS_ALL);
}
