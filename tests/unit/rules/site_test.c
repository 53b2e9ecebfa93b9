// Allocations of a site with a rule follow it, whoever frees them, and nothing is lost between a thread's caches.
#include "../census.h"
#include "cache/bigcache.h"
#include "cache/ended.h"
#include "cache/fast_path.h"
#include "cache/large.h"
#include "cache/prewarm.h"
#include "cache/sweep.h"
#include "rules/site.h"

enum { CLASS = 5, OTHER = 9, COUNT = 4000 };

// Their addresses stand for call sites of a program.
static char code[64];
static const void *const plain = &code[1];
static const void *const lasting = &code[17];
static const void *const passing = &code[33];

static void *held[2 * COUNT];

static void rule(const char *start, size_t bytes, unsigned ways)
{
    const struct hak_site_rule site = {(uintptr_t)start, (uintptr_t)start + bytes, ways};
    UNIT_CHECK(hak_site_add(&site));
}

static void *take_at(unsigned size_class, const void *site)
{
    void *block = hak_cache_alloc_for(
        hak_cache_self, hak_classes[size_class].bytes, size_class, HAK_MALLOC_ALIGNMENT, site);
    UNIT_CHECK(block != NULL);
    return block;
}

static unsigned role_of(const void *block)
{
    const struct hak_owner *owner = hak_run_of(block)->owner;
    return owner->role;
}

static void a_site_has_the_ways_of_its_first_rule(void)
{
    UNIT_EQUAL(hak_site_ways(lasting), 0);
    rule(&code[16], 16, HAK_WAY_LONG);
    rule(&code[16], 48, HAK_WAY_SHORT);
    for (unsigned again = 0; again < 2; again++) {
        UNIT_EQUAL(hak_site_ways(plain), 0);
        UNIT_EQUAL(hak_site_ways(lasting), HAK_WAY_LONG);
        UNIT_EQUAL(hak_site_ways(passing), HAK_WAY_SHORT);
    }
}

static void lifetimes_share_no_slab(void)
{
    static const void *const sites[] = {plain, lasting, plain, passing};
    static const unsigned roles[] = {HAK_ROLE_REST, HAK_ROLE_LONG, HAK_ROLE_REST, HAK_ROLE_SHORT};
    become(new_thread());
    void *before = alloc(CLASS); // from a magazine that knows no rule
    void *first = take_at(CLASS, lasting);
    for (unsigned i = 0; i < COUNT; i++) {
        held[i] = take_at(CLASS, sites[i % 4]);
    }
    // The magazine's earlier blocks may still be handed out without the rule: they are used up first.
    UNIT_EQUAL(hak_cache_self->magazines[CLASS].is_ruled, true);
    for (unsigned i = COUNT / 4; i < COUNT; i++) {
        UNIT_EQUAL(role_of(held[i]), roles[i % 4]);
    }
    UNIT_EQUAL(role_of(before), HAK_ROLE_REST); // its slab has moved with the class
    held[COUNT] = before;
    held[COUNT + 1] = first;
    census_check(held, COUNT + 2);
    for (unsigned i = 0; i < COUNT + 2; i++) {
        give(held[i]);
    }
    census_check(NULL, 0);
    // Nothing may be prepared for the class here that the next thread could find.
    hak_lock_take(&hak_cache_self->owner.lock);
    hak_prewarm_cache(hak_cache_self);
    hak_lock_drop(&hak_cache_self->owner.lock);
    UNIT_CHECK(hak_cache_self->magazines[CLASS].base == NULL);
    UNIT_CHECK(hak_cache_self->magazines[OTHER].base != NULL);
    census_check(NULL, 0);
    // Another class stays fast.
    void *other = alloc(OTHER);
    UNIT_EQUAL(role_of(other), HAK_ROLE_THREAD);
    UNIT_CHECK(!hak_cache_self->magazines[OTHER].is_ruled);
    give(other);
}

static void blocks_are_freed_elsewhere_and_come_back(void)
{
    struct hak_cache *first = hak_cache_self;
    struct hak_cache *second = new_thread();
    for (unsigned round = 0; round < 5; round++) {
        become(first);
        for (unsigned i = 0; i < COUNT; i++) {
            held[i] = take_at(CLASS, i % 2 == 0 ? lasting : plain);
        }
        become(second);
        for (unsigned i = 0; i < COUNT; i++) {
            held[COUNT + i] = take_at(CLASS, i % 2 == 0 ? plain : passing);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            give(held[i]);
        }
        census_check(held + COUNT, COUNT);
        become(first);
        for (unsigned i = 0; i < COUNT; i++) {
            give(held[COUNT + i]);
        }
        census_check(NULL, 0);
    }
    hak_sweep_everything();
    hak_sweep_everything();
    census_check(NULL, 0);
    become(first);
}

static void what_lasts_is_apart_also_when_its_thread_has_ended(void)
{
    struct hak_cache *thread = hak_cache_self;
    held[0] = take_at(CLASS, lasting);
    struct hak_cache *last = hak_cache_of(hak_run_of(held[0])->owner);
    for (unsigned i = 0; i < HAK_COMPANIONS; i++) {
        hak_ended_bury(thread->companions[i]);
        thread->companions[i] = NULL;
    }
    hak_ended_bury(thread);
    hak_sweep_everything(); // breaks up dead caches
    UNIT_CHECK(hak_run_of(held[0])->owner == &last->owner);
    become(new_thread());
    UNIT_CHECK(hak_cache_self == thread || hak_cache_self->owner.role == HAK_ROLE_THREAD);
    give(held[0]); // dead owner: by parcel
    for (unsigned i = 0; i < COUNT; i++) {
        held[i] = take_at(CLASS, lasting);
        UNIT_EQUAL(role_of(held[i]), HAK_ROLE_LONG);
    }
    UNIT_CHECK(hak_cache_self->companions[HAK_ROLE_LONG - HAK_ROLE_REST] == last);
    for (unsigned i = 0; i < COUNT; i++) {
        give(held[i]);
    }
    hak_sweep_everything();
    census_check(NULL, 0);
}

static void large_blocks_go_their_ways(void)
{
    bool zeroed;
    char *block = hak_large_alloc(HAK_KIB(100), 1, HAK_WAY_UNMAP, &zeroed);
    UNIT_CHECK(block != NULL && hak_run_of(block)->units == 0);
    give(block);
    UNIT_CHECK(hak_run_of(block) == NULL);
    block = hak_large_alloc(HAK_KIB(100), 1, HAK_WAY_UNKEPT, &zeroed);
    give(block);
    UNIT_CHECK(hak_bigcache_reuse(hak_site_keeper(hak_cache_self),
                                  hak_size_class_bin(HAK_KIB(100))) == NULL);
    // Sites with a rule do not look into the thread's BigCache.
    rule(&code[0], 1, HAK_WAY_UNKEPT);
    UNIT_CHECK(hak_site_keeper(hak_cache_self) != hak_cache_self);
    block = hak_large_alloc(HAK_KIB(100), 1, 0, &zeroed);
    give(block);
    UNIT_CHECK(hak_bigcache_reuse(hak_cache_self, hak_size_class_bin(HAK_KIB(100))) == NULL);
    void *again =
        hak_bigcache_reuse(hak_site_keeper(hak_cache_self), hak_size_class_bin(HAK_KIB(100)));
    UNIT_CHECK(again == block);
    give(again);
}

// However many rules were added since its site was last looked up.
static void a_new_rule_is_seen_at_once(void)
{
    enum { MORE = 128 };
    static char more_code[MORE];
    for (unsigned count = 1; count <= MORE; count *= 2) {
        for (unsigned i = count / 2; i < count; i++) {
            UNIT_EQUAL(hak_site_ways(&more_code[i]), 0);
        }
        for (unsigned i = count / 2; i < count; i++) {
            rule(&more_code[i], 1, HAK_WAY_LONG);
        }
        for (unsigned i = count / 2; i < count; i++) {
            UNIT_EQUAL(hak_site_ways(&more_code[i]), HAK_WAY_LONG);
        }
    }
}

// Two addresses that share an entry of the table of known sites.
static void no_address_is_taken_for_another(void)
{
    const uintptr_t ruled = hak_sites.rules[0].start + 1;
    for (unsigned bit = HAK_SITES_KNOWN_LOG2; bit < 47; bit++) {
        const uintptr_t other = ruled ^ (uintptr_t)1 << bit ^
                                (bit < 2 * HAK_SITES_KNOWN_LOG2 ? (uintptr_t)1 << (bit - 10) : 0);
        UNIT_EQUAL(hak_site_ways((const void *)ruled), HAK_WAY_LONG);
        UNIT_EQUAL(hak_site_ways((const void *)other), 0);
    }
}

static void rules_are_bounded(void)
{
    while (hak_sites.count < HAK_SITE_RULES_MAX) {
        rule(&code[0], 1, HAK_WAY_ZERO);
    }
    const struct hak_site_rule more = {0, 1, HAK_WAY_ZERO};
    UNIT_CHECK(!hak_site_add(&more));
    UNIT_EQUAL(hak_site_ways(lasting), HAK_WAY_LONG);
}

int main(void)
{
    become(new_thread());
    a_site_has_the_ways_of_its_first_rule();
    lifetimes_share_no_slab();
    blocks_are_freed_elsewhere_and_come_back();
    what_lasts_is_apart_also_when_its_thread_has_ended();
    large_blocks_go_their_ways();
    no_address_is_taken_for_another();
    a_new_rule_is_seen_at_once();
    rules_are_bounded();
    return 0;
}
