// Heaps do not touch what ended threads have left behind.
#include "../census.h"
#include "cache/ended.h"
#include "cache/heap.h"

enum { CLASS = 5 };

// A thread leaves slabs with live blocks behind: a heap that is destroyed may not free those blocks.
static void blocks_of_ended_threads_survive_it(void)
{
    struct hak_cache *main_thread = hak_cache_self;
    struct hak_cache *thread = new_thread();
    void *survivor = alloc(CLASS);
    memset(survivor, 7, hak_classes[CLASS].bytes);
    hak_ended_bury(thread);
    become(main_thread);
    struct hak_cache *heap = hak_heap_make();
    UNIT_CHECK(heap != NULL);
    UNIT_CHECK(hak_heap_take(heap, CLASS, (struct hak_request){1, 1, NULL}) != NULL);
    hak_heap_end(heap);
    UNIT_CHECK(hak_run_of(survivor) != NULL && hak_slab_is_out(hak_run_of(survivor), survivor));
    give(survivor);
}

int main(void)
{
    new_thread();
    blocks_of_ended_threads_survive_it();
    return 0;
}
