// Small pages that a heap took before it was large become huge ones, if they are in use and written.
#include <pthread.h>
#include <semaphore.h>

#include "../unit.h"
#include "base/options.h"
#include "meta/map.h"
#include "owner/owner.h"
#include "slab/arena.h"
#include "slab/collapse.h"
#include "slab/huge_pages.h"
#include "slab/purge.h"
#include "slab/runs.h"
#include "slab/slab.h"
#include "slab/superslabs.h"

enum { SUPERS = 8, SLABS = SUPERS * HAK_SUPER_UNITS, TAG = 0x500 };
// What the heap takes before it asks for huge pages: 8 MiB.
enum { SMALL_SLABS = 2 * HAK_SUPER_UNITS };

static struct hak_owner owner; // only its address counts
static struct hak_run *slabs[SLABS];
static unsigned slab_count;

static unsigned class_of(size_t bytes)
{
    unsigned size_class = 0;
    while (hak_classes[size_class].bytes < bytes) {
        size_class++;
    }
    return size_class;
}

// Slabs of which all blocks, or one in `part`, were handed out once.
static void make_slabs(unsigned count, size_t block_bytes, unsigned part)
{
    static void *taken[4096];
    const unsigned size_class = class_of(block_bytes);
    const unsigned blocks = hak_classes[size_class].blocks / part;
    for (unsigned i = 0; i < count; i++) {
        struct hak_run *slab = hak_slab_make(&owner, TAG, size_class);
        UNIT_CHECK(slab != NULL);
        UNIT_EQUAL(hak_slab_take(slab, taken, blocks), blocks);
        for (unsigned k = 0; k < blocks; k++) {
            hak_slab_put(slab, taken[k]);
        }
        slabs[slab_count++] = slab;
    }
}

static void free_and_trim(void)
{
    for (; slab_count > 0; slab_count--) {
        hak_slab_end(slabs[slab_count - 1]);
    }
    hak_superslabs_trim();
}

static void end_slabs(void)
{
    free_and_trim();
    hak_fake.now_ns += UINT64_C(1000000000);
    hak_arena_read_clock();
    hak_fake.collapses = 0;
}

// How many huge pages' places ask for one, of the superslabs that the slabs lie in.
static unsigned asking(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < slab_count; i += HAK_HUGE_UNITS) {
        const struct hak_super *super = hak_map_super(slabs[i]->base);
        count += (super->huge_units >> (slabs[i] - super->slabs) & 1) != 0;
    }
    return count;
}

// One for each new huge page, the oldest first, and each once.
static void what_a_heap_took_while_it_was_small_is_collapsed(void)
{
    make_slabs(SMALL_SLABS, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, 0);
    UNIT_EQUAL(asking(), 0);
    make_slabs(HAK_HUGE_UNITS, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, 1);
    UNIT_EQUAL(asking(), 2);
    make_slabs(SLABS - slab_count, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, SMALL_SLABS / HAK_HUGE_UNITS);
    UNIT_EQUAL(asking(), SLABS / HAK_HUGE_UNITS);
    end_slabs();
}

// What was not written would become resident.
static void what_is_not_written_is_not_collapsed(void)
{
    hak_fake.resident_bytes = 0; // larger blocks have no content
    make_slabs(HAK_SUPER_UNITS, 512, 2);
    make_slabs(HAK_SUPER_UNITS, 5120, 1);
    make_slabs(SLABS - slab_count, 512, 1);
    UNIT_CHECK(asking() >= SLABS / HAK_HUGE_UNITS - 6);
    for (unsigned i = 0; i < SMALL_SLABS; i += HAK_HUGE_UNITS) {
        UNIT_EQUAL(hak_map_super(slabs[i]->base)->huge_units, 0);
    }
    end_slabs();
    hak_fake.resident_bytes = SIZE_MAX;
    make_slabs(SMALL_SLABS, 5120, 1);
    make_slabs(SLABS - slab_count, 512, 1);
    UNIT_CHECK(hak_fake.collapses > 0);
    end_slabs();
}

// What was purged would, too: from then on until the whole huge page is free. The option may have been another one then.
static void what_was_partly_purged_is_not_collapsed(unsigned thp)
{
    hak_options.thp = thp;
    make_slabs(SMALL_SLABS, 512, 1);
    UNIT_CHECK(hak_huge_pages_may_have_holes(slabs[0]));
    hak_options.thp = 0;
    make_slabs(SLABS - slab_count, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, SMALL_SLABS / HAK_HUGE_UNITS - 1);
    UNIT_EQUAL(hak_map_super(slabs[0]->base)->huge_units >>
                       (slabs[0] - hak_map_super(slabs[0]->base)->slabs) &
                   1,
               0);
    end_slabs();
}

// A collapse would copy what parent and child still share.
static void what_a_fork_shares_is_not_collapsed(void)
{
    make_slabs(SMALL_SLABS, 512, 1);
    hak_collapse_note_fork();
    make_slabs(SLABS - slab_count, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, 0);
    end_slabs();
    make_slabs(SLABS, 512, 1); // mapped after the fork
    UNIT_EQUAL(hak_fake.collapses, SMALL_SLABS / HAK_HUGE_UNITS);
    end_slabs();
}

static struct hak_super *oldest(void)
{
    return hak_map_super(slabs[0]->base);
}

static void purge_all(void)
{
    hak_purge((struct hak_purge_age){0, 0}, SIZE_MAX);
}

static void purge_a_slab(void)
{
    hak_fake.on_collapse = NULL;
    UNIT_CHECK(!hak_huge_pages_may_have_holes(slabs[1])); // its free pages stay
    hak_slab_end(slabs[0]);
    purge_all();
    UNIT_EQUAL(oldest()->dirty_units, 0);
    UNIT_EQUAL(oldest()->purged_units, 1);
}

// What another thread purges while it is collapsed is resident again: it is dirty.
static void what_is_purged_meanwhile_is_dirty(void)
{
    make_slabs(SMALL_SLABS, 512, 1);
    UNIT_EQUAL(slabs[0] - oldest()->slabs, 0);
    hak_fake.on_collapse = purge_a_slab;
    make_slabs(1, 512, 1);
    UNIT_EQUAL(oldest()->dirty_units, 1);
    UNIT_EQUAL(oldest()->purged_units, 0);
    UNIT_EQUAL(oldest()->huge_units & 1, 0);
    UNIT_CHECK(hak_huge_pages_may_have_holes(slabs[1]));
    purge_all();
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    slabs[0] = slabs[--slab_count];
    end_slabs();
}

static sem_t purge_began, collapse_ended;
static unsigned purges_of_the_first;

static void wait_in_purge(void *start, size_t bytes)
{
    (void)bytes;
    if (start == slabs[0]->base && ++purges_of_the_first == 1) {
        sem_post(&purge_began);
        sem_wait(&collapse_ended);
    }
}

static void *purge_elsewhere(void *unused)
{
    purge_all();
    return unused;
}

static pthread_t purger;

static void begin_a_purge(void)
{
    hak_fake.on_collapse = NULL;
    hak_fake.on_purge = wait_in_purge;
    hak_slab_end(slabs[0]);
    UNIT_EQUAL(pthread_create(&purger, NULL, purge_elsewhere, NULL), 0);
    sem_wait(&purge_began);
}

// The same if the purge ends later: the kernel may have purged first. It is purged once more.
static void what_is_being_purged_is_purged_again(void)
{
    sem_init(&purge_began, 0, 0);
    sem_init(&collapse_ended, 0, 0);
    make_slabs(SMALL_SLABS, 512, 1);
    hak_fake.on_collapse = begin_a_purge;
    make_slabs(1, 512, 1);
    UNIT_EQUAL(oldest()->huge_units & 1, 0);
    sem_post(&collapse_ended);
    pthread_join(purger, NULL);
    hak_fake.on_purge = NULL;
    UNIT_EQUAL(purges_of_the_first, 2);
    UNIT_EQUAL(oldest()->purged_units, 1);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
    slabs[0] = slabs[--slab_count];
    end_slabs();
}

static void release_all(void)
{
    const char *base = oldest()->base;
    hak_fake.on_collapse = NULL;
    free_and_trim();
    UNIT_CHECK(hak_map_super(base) != NULL);
    // The other one has the slab that is being made.
    UNIT_EQUAL(hak_arena.super_bytes, 2 * HAK_SUPER_BYTES);
}

// The program could map its own memory there, and the collapse would be of that.
static void what_is_being_collapsed_is_not_released(void)
{
    make_slabs(SMALL_SLABS, 512, 1);
    hak_fake.on_collapse = release_all;
    make_slabs(1, 512, 1);
    end_slabs();
    UNIT_EQUAL(hak_arena.super_bytes, 0);
    UNIT_EQUAL(hak_arena.dirty_bytes, 0);
}

// A kernel that cannot is asked once for each.
static void a_refused_collapse_changes_nothing(void)
{
    hak_fake.refuse_collapse = true;
    make_slabs(SLABS, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, SMALL_SLABS / HAK_HUGE_UNITS);
    UNIT_EQUAL(asking(), (SLABS - SMALL_SLABS) / HAK_HUGE_UNITS);
    hak_fake.refuse_collapse = false;
    end_slabs();
}

// The kernel waits for each processor, however long another program keeps it to itself.
static void a_collapse_that_waits_is_the_last(void)
{
    hak_fake.collapse_ns = UINT64_C(700000000);
    make_slabs(SLABS, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, 1);
    hak_fake.collapse_ns = 0;
    end_slabs();
    make_slabs(SLABS, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, 0);
    end_slabs();
}

static void with_thp_always_nothing_is_collapsed(void)
{
    hak_options.thp = 2;
    make_slabs(SLABS, 512, 1);
    UNIT_EQUAL(hak_fake.collapses, 0);
    hak_options.thp = 0;
    end_slabs();
}

int main(void)
{
    UNIT_CHECK(hak_map_start());
    hak_arena_start();
    hak_arena.grants_huge = true;
    hak_options.huge_start_bytes = HAK_MIB(8);
    what_a_heap_took_while_it_was_small_is_collapsed();
    what_was_partly_purged_is_not_collapsed(0);
    what_was_partly_purged_is_not_collapsed(1);
    what_a_fork_shares_is_not_collapsed();
    what_is_purged_meanwhile_is_dirty();
    what_is_being_purged_is_purged_again();
    what_is_being_collapsed_is_not_released();
    a_refused_collapse_changes_nothing();
    what_is_not_written_is_not_collapsed();
    with_thp_always_nothing_is_collapsed();
    hak_options.huge_dear_us = 1000;
    a_collapse_that_waits_is_the_last();
    return 0;
}
