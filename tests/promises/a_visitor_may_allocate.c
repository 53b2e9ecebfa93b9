// with features
// its names for all
// The function that hak_visit_blocks calls may allocate and free: blocks that it keeps, and blocks of the program's. What would
// have to wait for the locks that the walk holds does nothing: it returns 0, false or NULL.
#include "../support/api.h"
#include "../support/promise.h"

enum { BLOCKS = 3000, KEPT = 500, BYTES = 200 };

static char *blocks[BLOCKS];
static char *kept[KEPT];
static unsigned kept_count;
static unsigned given_count;
static bool is_asked;
static struct hak_heap *heap;
static __typeof__(hak_heap_malloc) *allocate_from;
static __typeof__(hak_heap_destroy) *destroy;
static __typeof__(hak_visit_blocks) *visit_blocks;
static __typeof__(hak_stats_read) *read_stats;
static __typeof__(hak_trim) *trim;
static __typeof__(hak_option_set) *set_option;
static __typeof__(hak_site_rule) *add_rule;
static __typeof__(hak_profile_start) *profile;

static bool see(void *block, size_t bytes, void *argument);

static void ask_for_all(void)
{
    struct hak_stats stats;
    HT_CHECK(mallinfo2().uordblks == 0, "figures under locks of its own");
    read_stats(&stats);
    HT_CHECK(stats.live_bytes == 0 && stats.mapped_bytes > 0, "figures under locks of its own");
    HT_CHECK(trim() == 0 && malloc_trim(0) == 0, "given back inside");
    HT_CHECK(!visit_blocks(NULL, see, NULL), "a visit inside a visit");
    HT_CHECK(!set_option("decay_ms", 500), "an option set inside");
    HT_CHECK(!add_rule("main", "uncached"), "a rule added inside");
    HT_CHECK(!profile(1 << 20), "a profile begun inside");
    HT_CHECK(allocate_from(heap, 40) == NULL, "a heap's lock taken inside");
    destroy(heap); // is used again below
    is_asked = true;
}

static bool see(void *block, size_t bytes, void *argument)
{
    (void)block;
    (void)bytes;
    (void)argument;
    if (!is_asked) {
        ask_for_all();
    }
    if (kept_count < KEPT) {
        free(blocks[given_count]);
        blocks[given_count++] = NULL;
        free(malloc(BYTES));
        kept[kept_count] = realloc(calloc(1, 10), BYTES);
        HT_CHECK(kept[kept_count] != NULL, "no block inside");
        memset(kept[kept_count++], 0x55, BYTES);
    }
    return true;
}

int main(void)
{
    ht_start();
    HT_API(hak_heap_create);
    HT_API(hak_heap_malloc);
    HT_API(hak_heap_destroy);
    HT_API(hak_visit_blocks);
    HT_API(hak_stats_read);
    HT_API(hak_trim);
    HT_API(hak_option_set);
    HT_API(hak_site_rule);
    HT_API(hak_profile_start);
    allocate_from = api_hak_heap_malloc;
    destroy = api_hak_heap_destroy;
    visit_blocks = api_hak_visit_blocks;
    read_stats = api_hak_stats_read;
    trim = api_hak_trim;
    set_option = api_hak_option_set;
    add_rule = api_hak_site_rule;
    profile = api_hak_profile_start;
    heap = api_hak_heap_create();
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = memset(malloc(BYTES), 0x44, BYTES);
    }
    HT_CHECK(visit_blocks(NULL, see, NULL), "not all were visited");
    HT_CHECK(kept_count == KEPT, "%u calls", kept_count);
    struct hak_stats stats;
    read_stats(&stats);
    HT_CHECK(stats.live_blocks >= BLOCKS - KEPT && stats.live_blocks < BLOCKS - KEPT + 300,
             "%zu blocks live",
             stats.live_blocks);
    for (unsigned i = 0; i < KEPT; i++) {
        HT_CHECK(kept[i][0] == 0x55 && kept[i][BYTES - 1] == 0x55, "a block has changed");
        free(kept[i]);
    }
    for (unsigned i = KEPT; i < BLOCKS; i++) {
        HT_CHECK(blocks[i][BYTES - 1] == 0x44, "a block has changed");
        free(blocks[i]);
    }
    HT_CHECK(set_option("decay_ms", 400) && allocate_from(heap, 40) != NULL, "refused outside");
    destroy(heap);
    return 0;
}
