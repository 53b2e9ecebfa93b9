// pages.h -- purges free pages inside slabs in use, and tells when to try again.
//
// Threads   any that holds the owner's lock.
#pragma once

#include "owner/owner.h"

enum hak_pages_which {
    HAK_PAGES_ALL,      // in all slabs
    HAK_PAGES_WORTH_IT, // in slabs that got a quarter of their blocks back since the last time
    HAK_PAGES_LAST,     // the same for a class in use: not in the slabs that serve next
};

// The result of some sweeps.
struct hak_pages_given {
    size_t bytes;    // bytes that the kernel took
    bool is_refused; // the kernel refused some
    uint32_t looks;  // number of slabs looked at
};

// Purge free pages in some of the class's slabs, and move these to the swept ones. False when none is left to do. `*given` sums
// up over several calls.
HAK_INTERNAL bool hak_pages_sweep(struct hak_owner *owner,
                                  unsigned size_class,
                                  enum hak_pages_which which,
                                  struct hak_pages_given *given) HAK_REQUIRES(&owner->lock);
// The slabs whose purge was put off lie in front of the swept ones: make them unswept, to be tried again. Drops the lock
// now and then.
HAK_INTERNAL void hak_pages_try_again(struct hak_owner *owner, unsigned size_class)
    HAK_REQUIRES(&owner->lock);
