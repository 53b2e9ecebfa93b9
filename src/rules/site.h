// site.h -- rules for the allocations of single call sites.
//
// Owns      the rules, and a cache of the return addresses that were seen.
// Threads   any. Adding a rule takes the registry's lock; looking one up takes none.
// Fails     a rule beyond HAK_SITE_RULES_MAX is refused; without memory a block is served as without a rule.
//
// A site is the return address of malloc, which only slow paths look at. So a site with a rule must take the
// slow path: what it would hit is made to look empty, and nothing else. Once a site with a rule for small
// blocks has asked for a size class, each thread moves its magazine of that class, at its next refill, to
// another cache of that thread, a companion. Here the magazine stays empty and full at once. With a rule for
// large blocks, BigCache moves to the companion. Other classes, and programs without rules, see no change.
//
// A thread has a companion for each role: for sites without a rule (which may share slabs with all others),
// for short-lived and for long-lived blocks (which share slabs with nothing else, so that the memory of a
// peak can be purged after the peak). They belong to the thread as its cache does: it uses their magazines
// without a lock. docs/decisions/0020 has the numbers.
#pragma once

#include "cache/fast_path.h"
#include "cache/request.h"

#define HAK_SITE_ALIGN_MAX HAK_SMALL_MAX
enum { HAK_SITE_RULES_MAX = 256 };

// Calls of malloc that return to [start, end) go these ways.
struct hak_site_rule {
    uintptr_t start;
    uintptr_t end;
    uint32_t ways; // enum hak_way
};

struct hak_sites {
    _Atomic(uint32_t) count; // written with the registry's lock; the rules below it are constant
    struct hak_site_rule rules[HAK_SITE_RULES_MAX];
    _Atomic(bool) any_large;                   // is a rule about large blocks?
    _Atomic(bool) is_ruled[HAK_SMALL_CLASSES]; // did a ruled site ask for the class?
};
HAK_INTERNAL extern struct hak_sites hak_sites;

// Add a rule; the first that fits a site counts. False when there are too many.
HAK_INTERNAL bool hak_site_add(const struct hak_site_rule *rule);

HAK_INLINE bool hak_site_has_rules(void)
{
    return hak_load_relaxed(&hak_sites.count) != 0;
}

// A cache of return addresses. An entry has the address, the number of rules at that time, and the ways, in one word, so that it
// is read and written as a whole. Two addresses with the same place replace each other. The entry leaves out the bits of the
// address that its place tells, and so holds 56 bits of it, the number (less one) and the ways in full.
enum { HAK_SITES_KNOWN_LOG2 = 10, HAK_SITES_KNOWN = 1 << HAK_SITES_KNOWN_LOG2 };
enum { HAK_WAYS_BITS = 10, HAK_SITES_COUNT_BITS = 8 };
_Static_assert(HAK_SITE_RULES_MAX == 1 << HAK_SITES_COUNT_BITS, "as many numbers, from 1 on");
HAK_INTERNAL extern _Atomic(uint64_t) hak_sites_known[HAK_SITES_KNOWN];

HAK_INLINE uint64_t hak_site_key(uintptr_t address, uint32_t count)
{
    return (uint64_t)(address >> HAK_SITES_KNOWN_LOG2) << (HAK_WAYS_BITS + HAK_SITES_COUNT_BITS) |
           (uint64_t)((count - 1) % (1U << HAK_SITES_COUNT_BITS)) << HAK_WAYS_BITS;
}

HAK_INLINE _Atomic(uint64_t) *hak_site_place(uintptr_t address)
{
    return &hak_sites_known[(address ^ address >> HAK_SITES_KNOWN_LOG2) % HAK_SITES_KNOWN];
}

HAK_INTERNAL unsigned hak_site_ways_slow(uintptr_t address);

// The ways of a site; 0: no rule.
HAK_INLINE unsigned hak_site_ways(const void *site)
{
    const uintptr_t address = (uintptr_t)site;
    const uint64_t key = hak_site_key(address, hak_load_relaxed(&hak_sites.count));
    const uint64_t found = hak_load_relaxed(hak_site_place(address));
    return HAK_LIKELY(found >> HAK_WAYS_BITS == key >> HAK_WAYS_BITS)
               ? (unsigned)(found % (1U << HAK_WAYS_BITS))
               : hak_site_ways_slow(address);
}

HAK_INLINE enum hak_owner_role hak_site_role(unsigned ways)
{
    return (ways & HAK_WAY_LONG) != 0    ? HAK_ROLE_LONG
           : (ways & HAK_WAY_SHORT) != 0 ? HAK_ROLE_SHORT
                                         : HAK_ROLE_REST;
}

// Take a block of a class that companions serve, from the magazine of the site's companion. NULL if it is empty
// or the rule asks for more.
HAK_INLINE void *hak_site_pop(struct hak_cache *cache, size_t size_class, const void *site)
{
    const unsigned ways = hak_site_ways(site);
    struct hak_cache *companion = cache->companions[hak_site_role(ways) - HAK_ROLE_REST];
    const bool is_plain = (ways & ~(unsigned)(HAK_WAY_LONG | HAK_WAY_SHORT)) == 0;
    return companion != NULL && is_plain ? hak_cache_pop(companion, size_class) : NULL;
}

// The cache from which the calling thread, whose own is `cache`, takes a small block. May change the class
// to one that is aligned. No lock held.
HAK_INTERNAL struct hak_cache *hak_site_cache(struct hak_cache *cache,
                                              size_t *size_class,
                                              unsigned ways);
// The cache whose BigCache the thread uses. No lock held.
HAK_INTERNAL struct hak_cache *hak_site_keeper(struct hak_cache *cache);

// The calling thread's cache with that tag: its own or a companion; NULL when it is another's.
HAK_INLINE struct hak_cache *hak_site_own(struct hak_cache *cache, uint32_t tag)
{
    if (tag == cache->owner.tag) {
        return cache;
    }
    for (unsigned i = 0; i < HAK_COMPANIONS; i++) {
        struct hak_cache *companion = cache->companions[i];
        if (companion != NULL && companion->owner.tag == tag) {
            return companion;
        }
    }
    return NULL;
}
