// soak in: tsan
// Stealing from a magazine, with the owner stopped at every point of its fast paths.
//
// The owner's program is a sequence of allocations and frees of two steps each: the loads (and a free's
// store of the block), and the store of top. Its stores wait in a buffer, as a processor's do,
// until the barrier at the latest. Three cuts divide the program:
//
//      steps before the thief's first look      the first of their stores are visible, the rest not yet;
//                                               or, of the first ones, only the stores into places
//      steps before the barrier                 their stores wait, their loads see the thief's NULL
//      steps before the thief judges            after the barrier: stores are visible at once
//      the rest                                 after the thief
//
// After each cut the census finds every block in exactly one place.
#include "cache/steal.h"

#include "../census.h"
#include "base/options.h"
#include "cache/fast_path.h"
#include "cache/magazine.h"
#include "cache/registry.h"

enum { CLASS = 40, SLOTS = 6, MOST_OPERATIONS = 4, MOST_STORES = 2 * MOST_OPERATIONS, HELD = 64 };

struct store {
    bool is_top;
    hak_place *place;
    void *value; // of a place, or of top
};

static struct {
    unsigned program; // a bit for each operation: 1 frees
    unsigned length;  // operations
    unsigned step;    // taken so far, two for each operation
    bool in_order;    // stores do not wait
    bool is_stuck;    // the owner needs the lock
    struct store stores[MOST_STORES];
    unsigned store_count;
    void *held[HELD];
    unsigned held_count;
} owner;

static unsigned before_barrier; // steps
static unsigned before_judging;
static struct hak_cache *thief;
static struct hak_cache *victim;

static void store_now(const struct store *store)
{
    if (store->is_top) {
        victim->top[CLASS] = store->value;
    } else {
        *store->place = store->value;
    }
}

static void stores_flush(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        store_now(&owner.stores[i]);
    }
    owner.store_count -= count;
    memmove(owner.stores, owner.stores + count, owner.store_count * sizeof owner.stores[0]);
}

// Of the first `count` stores, those into places become visible; those of top wait longer. Processors without an order of stores
// may do that; and so it appears to a thief that is stopped between its look at top and its NULL.
static void places_flush(unsigned count)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < owner.store_count; i++) {
        if (i < count && !owner.stores[i].is_top) {
            store_now(&owner.stores[i]);
        } else {
            owner.stores[kept++] = owner.stores[i];
        }
    }
    owner.store_count = kept;
}

static void store(bool is_top, hak_place *place, void *value)
{
    UNIT_CHECK(owner.store_count < MOST_STORES);
    owner.stores[owner.store_count++] = (struct store){is_top, place, value};
    if (owner.in_order) {
        stores_flush(owner.store_count);
    }
}

// The owner sees its own stores before they are visible.
static hak_place *load_top(void)
{
    for (unsigned i = owner.store_count; i > 0; i--) {
        if (owner.stores[i - 1].is_top) {
            return owner.stores[i - 1].value;
        }
    }
    return victim->top[CLASS];
}

static void *load_place(hak_place *place)
{
    for (unsigned i = owner.store_count; i > 0; i--) {
        if (!owner.stores[i - 1].is_top && owner.stores[i - 1].place == place) {
            return owner.stores[i - 1].value;
        }
    }
    return *place;
}

// One step of an allocation or of a free. Both keep their place in `step`.
static void owner_step(void)
{
    static hak_place *new_top; // between the two steps
    const bool frees = (owner.program >> (owner.step / 2) & 1) != 0;
    if (owner.step % 2 == 1) {
        store(true, NULL, new_top);
        owner.step++;
        return;
    }
    hak_place *top = load_top();
    if (frees && (owner.held_count == 0 || load_place(top) == HAK_FULL)) {
        owner.step += 2; // nothing to free, or no room: no fast path
    } else if (frees) {
        store(false, top, owner.held[--owner.held_count]);
        new_top = top + 1;
        owner.step++;
    } else if (load_place(top - 1) == NULL) {
        owner.is_stuck = true;
    } else {
        owner.held[owner.held_count++] = load_place(top - 1);
        new_top = top - 1;
        owner.step++;
    }
}

static void owner_run(unsigned until)
{
    while (owner.step < until && !owner.is_stuck) {
        owner_step();
    }
}

static void owner_at_barrier(void)
{
    owner_run(before_barrier);
    stores_flush(owner.store_count);
    owner.in_order = true;
    owner_run(before_judging);
}

static void steal(void)
{
    hak_lock_take(&thief->owner.lock);
    hak_lock_take(&victim->owner.lock);
    hak_steal_magazines(thief, victim, true);
    hak_lock_drop(&victim->owner.lock);
    hak_lock_drop(&thief->owner.lock);
}

// What the owner could not do without the lock it does now, and then the rest.
static void owner_finish(void)
{
    for (; owner.is_stuck; owner_run(2 * owner.length)) {
        owner.is_stuck = false;
        owner.held[owner.held_count] =
            hak_malloc_slow(hak_classes[CLASS].bytes, CLASS, hak_cache_self);
        UNIT_CHECK(owner.held[owner.held_count] != NULL);
        owner.held_count++;
        owner.step += 2;
    }
    owner_run(2 * owner.length);
    UNIT_EQUAL(owner.store_count, 0);
}

// A magazine with `blocks`, and two blocks in the owner's hands.
static void set_up(unsigned blocks)
{
    become(victim);
    memset(&owner, 0, sizeof owner);
    void *more[SLOTS];
    for (unsigned i = 0; i < blocks; i++) {
        more[i] = alloc(CLASS);
    }
    owner.held[owner.held_count++] = alloc(CLASS);
    owner.held[owner.held_count++] = alloc(CLASS);
    hak_lock_take(&victim->owner.lock);
    hak_magazine_flush_all(victim);
    hak_lock_drop(&victim->owner.lock);
    for (unsigned i = 0; i < blocks; i++) {
        give(more[i]);
    }
    UNIT_EQUAL(victim->top[CLASS] - victim->magazines[CLASS].base - 1, blocks);
}

static void clean_up(void)
{
    while (owner.held_count > 0) {
        give(owner.held[--owner.held_count]);
    }
    hak_lock_take(&victim->owner.lock);
    hak_magazine_flush_all(victim);
    hak_lock_drop(&victim->owner.lock);
    UNIT_EQUAL(census_out(), 0);
}

static unsigned stolen_count;
static unsigned undecided_count;

struct run {
    unsigned blocks; // in the magazine
    unsigned program;
    unsigned cuts[3];
    unsigned visible; // stores visible at the thief's first look
    bool places_only; // only those into places
    bool looks_again;
};

static void one_run(const struct run *run)
{
    set_up(run->blocks);
    owner.program = run->program;
    owner.length = MOST_OPERATIONS;
    owner_run(run->cuts[0]);
    if (run->places_only) {
        places_flush(run->visible);
    } else {
        stores_flush(run->visible < owner.store_count ? run->visible : owner.store_count);
    }
    before_barrier = run->cuts[1];
    before_judging = run->cuts[2];
    hak_fake.on_barrier = owner_at_barrier;
    steal();
    hak_fake.on_barrier = NULL;
    stores_flush(owner.store_count); // without a fence there was no barrier
    owner.in_order = true;
    stolen_count += victim->magazines[CLASS].bottom != 0;
    undecided_count += victim->magazines[CLASS].fence != 0;
    if (owner.step % 2 == 0) { // else a block is being put in or taken out
        census_check(owner.held, owner.held_count);
    }
    owner_finish();
    census_check(owner.held, owner.held_count);
    // What is undecided is judged in the next round, or the owner comes across it.
    if (run->looks_again) {
        steal();
    }
    for (unsigned i = 0; i < SLOTS + 2; i++) {
        owner.held[owner.held_count++] = alloc(CLASS);
        census_check(owner.held, owner.held_count);
    }
    clean_up();
}

// A free stores twice, an allocation once: the most stores that `steps` steps make.
static void every_visibility(struct run run)
{
    for (run.visible = 0; run.visible <= run.cuts[0]; run.visible++) {
        run.looks_again = (run.cuts[2] + run.visible) % 2 == 0;
        run.places_only = false;
        one_run(&run);
        run.places_only = true;
        one_run(&run);
    }
}

static void every_cut(unsigned blocks, unsigned program)
{
    const unsigned steps = 2 * MOST_OPERATIONS;
    for (unsigned a = 0; a <= steps; a++) {
        for (unsigned b = a; b <= steps; b++) {
            for (unsigned c = b; c <= steps; c++) {
                every_visibility(
                    (struct run){.blocks = blocks, .program = program, .cuts = {a, b, c}});
            }
        }
    }
}

static void every_interleaving(void)
{
    for (unsigned program = 0; program < 1U << MOST_OPERATIONS; program++) {
        for (unsigned blocks = 2; blocks <= SLOTS - 1; blocks++) {
            every_cut(blocks, program);
        }
    }
    UNIT_CHECK(stolen_count > 1000 && undecided_count > 100); // both occur
}

static void one_block_stays(void)
{
    set_up(5);
    steal();
    struct hak_magazine *magazine = &victim->magazines[CLASS];
    UNIT_EQUAL(victim->top[CLASS] - magazine->base - 1 - magazine->bottom, 1);
    steal();
    UNIT_EQUAL(victim->top[CLASS] - magazine->base - 1 - magazine->bottom, 1);
    census_check(owner.held, owner.held_count);
    clean_up();
}

static void without_a_barrier_nothing_is_stolen(void)
{
    set_up(5);
    hak_fake.refuse_barrier = true;
    steal();
    hak_fake.refuse_barrier = false;
    UNIT_EQUAL(victim->magazines[CLASS].bottom, 0);
    census_check(owner.held, owner.held_count);
    for (unsigned i = 0; i < 5; i++) {
        owner.held[owner.held_count++] = alloc(CLASS);
        census_check(owner.held, owner.held_count);
    }
    UNIT_EQUAL(victim->magazines[CLASS].fence, 0); // the owner has come across it
    clean_up();
}

static void a_free_into_a_full_magazine_removes_the_fence(void)
{
    set_up(SLOTS);
    hak_fake.refuse_barrier = true;
    steal();
    hak_fake.refuse_barrier = false;
    UNIT_CHECK(victim->magazines[CLASS].fence != 0);
    give(owner.held[--owner.held_count]);
    UNIT_EQUAL(victim->magazines[CLASS].fence, 0);
    census_check(owner.held, owner.held_count);
    clean_up();
}

// Only magazines that did not move for a while; without `all`, the first looks only record that.
static void magazines_in_use_are_left_alone(void)
{
    set_up(5);
    hak_lock_take(&thief->owner.lock);
    hak_lock_take(&victim->owner.lock);
    for (unsigned look = 0; look < 3; look++) {
        hak_steal_magazines(thief, victim, false);
        UNIT_EQUAL(victim->magazines[CLASS].bottom, 0);
    }
    void *block = alloc(CLASS);
    hak_steal_magazines(thief, victim, false);
    UNIT_EQUAL(victim->magazines[CLASS].bottom, 0);
    give(block);
    for (unsigned look = 0; look < 5; look++) {
        hak_steal_magazines(thief, victim, false);
    }
    UNIT_EQUAL(victim->magazines[CLASS].bottom, 4);
    hak_lock_drop(&victim->owner.lock);
    hak_lock_drop(&thief->owner.lock);
    census_check(owner.held, owner.held_count);
    clean_up();
}

int main(void)
{
    hak_options.magazine_bytes = 4096; // so that the magazine does not change
    victim = new_thread();
    thief = hak_registry_get(HAK_ROLE_HEAP, NULL);
    give(alloc(CLASS));
    UNIT_EQUAL(hak_cache_magazine_slots(&victim->magazines[CLASS]), SLOTS);
    one_block_stays();
    without_a_barrier_nothing_is_stolen();
    a_free_into_a_full_magazine_removes_the_fence();
    magazines_in_use_are_left_alone();
    every_interleaving();
    return 0;
}
