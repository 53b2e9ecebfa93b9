// pages.h -- pages inside slabs that go on: which are given back to the system, and when again.
//
// Threads   any that holds the owner's lock.
#pragma once

#include "owner/owner.h"

enum hak_pages_which {
    HAK_PAGES_ALL,      // of all slabs
    HAK_PAGES_WORTH_IT, // of those of which a quarter came back since the last time
    HAK_PAGES_LAST,     // likewise, of a class that is in use: not of those that serve next
};

// What became of them.
struct hak_pages_given {
    size_t bytes;    // that the kernel took
    bool is_refused; // it refused some
    uint32_t looks;  // at slabs
};

// Give back pages inside some of the class's slabs, and put these to those that were swept. False when there are no more to do.
// `*given` adds up over some calls.
HAK_INTERNAL bool hak_pages_sweep(struct hak_owner *owner,
                                  unsigned size_class,
                                  enum hak_pages_which which,
                                  struct hak_pages_given *given) HAK_REQUIRES(&owner->lock);
// Those whose pages the kernel did not take lie in front of the swept ones: they are to be swept again. Others may have the lock
// in between.
HAK_INTERNAL void hak_pages_try_again(struct hak_owner *owner, unsigned size_class)
    HAK_REQUIRES(&owner->lock);
