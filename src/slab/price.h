// price.h -- what huge pages take the kernel, and whether that is too much. docs/decisions/0008-huge-pages.md.
//
// Owns      what the latest expensive huge page has cost.
// Threads   any, without a lock.
#pragma once

#include "base/compiler.h"

enum hak_thp { HAK_THP_AUTO, HAK_THP_NEVER, HAK_THP_ALWAYS }; // option thp

// Did huge pages lately take the kernel longer than small ones?
HAK_INTERNAL bool hak_price_is_high(void);

// How long one may take. 0: they have no price, as the user decides, or as there must be no clock.
HAK_INTERNAL uint64_t hak_price_limit_ns(void);

// Add what one took since `begin`, by hak_os_about_now_ns. Is that too much?
HAK_INTERNAL bool hak_price_note(uint64_t begin, uint64_t limit_ns);
