// sample.c -- see sample.h.
#include "profile/sample.h"

#include <string.h>

#include "base/check.h"
#include "base/probe.h"
#include "cache/hooks.h"
#include "meta/map.h"
#include "meta/pool.h"
#include "meta/table.h"
#include "os/os.h"
#include "os/tags.h"
#include "owner/owner.h"
#include "profile/sampler.h"
#include "slab/arena.h"
#include "slab/slab.h"

struct hak_samples hak_samples;

static uint64_t hash_of(const uintptr_t *words, unsigned count)
{
    uint64_t hash = count;
    for (unsigned i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

// How many samples have an address with this hash; the highest number stands for any more. If there is
// none, a free of another block of the slab need not look into the large table.
enum { FILTER_LOG2 = 12, FILTER_MANY = UINT8_MAX };
static _Atomic(uint8_t) filter[1 << FILTER_LOG2]; // written with the lock

static _Atomic(uint8_t) *filter_of(uintptr_t address)
{
    return &filter[(address * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - FILTER_LOG2)];
}

static void filter_change_locked(uintptr_t address, int by) HAK_REQUIRES(&hak_samples.lock)
{
    _Atomic(uint8_t) *place = filter_of(address);
    const uint8_t count = hak_load_relaxed(place);
    if (count != FILTER_MANY) {
        hak_store_relaxed(place, (uint8_t)(count + by));
    }
}

static struct hak_sample_bucket *bucket_of(struct hak_sample_tables *tables, uintptr_t address)
{
    return &tables->buckets[hash_of(&address, 1) % HAK_SAMPLE_BUCKETS];
}

// What one sample stands for.
static struct hak_sample_sums sums_of(const struct hak_sample *sample)
{
    const size_t every = sample->every > sample->block_bytes ? sample->every : sample->block_bytes;
    const double times = (double)every / (double)sample->block_bytes;
    return (struct hak_sample_sums){
        .samples = 1,
        .bytes = (uint64_t)((double)sample->bytes * times + 0.5),
        .blocks_256 = (uint64_t)(256 * times + 0.5),
    };
}

static void sums_add(struct hak_sample_sums *sums, struct hak_sample_sums more)
{
    sums->samples += more.samples;
    sums->bytes += more.bytes;
    sums->blocks_256 += more.blocks_256;
}

static void sums_take(struct hak_sample_sums *sums, struct hak_sample_sums less)
{
    sums->samples -= less.samples;
    sums->bytes -= less.bytes;
    sums->blocks_256 -= less.blocks_256;
}

// What a stack had at the latest overall peak is what it has now, unless that has changed since. So it is
// saved just before it changes, and a peak costs nothing for the other stacks.
static void stack_note_peak_locked(struct hak_sample_stack *stack) HAK_REQUIRES(&hak_samples.lock)
{
    if (stack->peak_number != hak_samples.peak_number) {
        stack->peak_number = hak_samples.peak_number;
        stack->peak = stack->live;
    }
}

static struct hak_sample_stack *stack_make_locked(const uintptr_t *frames, unsigned count)
    HAK_REQUIRES(&hak_samples.lock)
{
    const size_t bytes = offsetof(struct hak_sample_stack, frames) + count * sizeof *frames;
    struct hak_sample_stack *stack =
        hak_samples.stack_count < HAK_SAMPLE_STACKS_MAX ? hak_pool_take(bytes) : NULL;
    if (stack != NULL) {
        stack->frame_count = count;
        memcpy(stack->frames, frames, count * sizeof *frames);
        hak_samples.stack_count++;
    }
    return stack;
}

static struct hak_sample_stack *stack_of_locked(struct hak_sample_tables *tables,
                                                const uintptr_t *frames,
                                                unsigned count) HAK_REQUIRES(&hak_samples.lock)
{
    const uint64_t hash = hash_of(frames, count);
    struct hak_sample_stack_bucket *bucket =
        &tables->stack_buckets[hash % HAK_SAMPLE_STACK_BUCKETS];
    struct hak_sample_stack *stack = bucket->first;
    while (stack != NULL && (stack->hash != hash || stack->frame_count != count ||
                             memcmp(stack->frames, frames, count * sizeof *frames) != 0)) {
        stack = stack->next;
    }
    if (stack == NULL) {
        stack = stack_make_locked(frames, count);
        if (stack == NULL) {
            return &hak_samples.other;
        }
        stack->hash = hash;
        stack->next = bucket->first;
        bucket->first = stack;
    }
    return stack;
}

static struct hak_sample_thread *thread_of_locked(struct hak_sample_tables *tables, int thread_id)
    HAK_REQUIRES(&hak_samples.lock)
{
    struct hak_sample_thread_bucket *bucket =
        &tables->thread_buckets[(unsigned)thread_id % HAK_SAMPLE_THREAD_BUCKETS];
    struct hak_sample_thread *thread = bucket->first;
    while (thread != NULL && thread->thread_id != thread_id) {
        thread = thread->next;
    }
    if (thread == NULL) {
        thread = hak_samples.thread_count < HAK_SAMPLE_THREADS_MAX ? hak_pool_take(sizeof *thread)
                                                                   : NULL;
        if (thread == NULL) {
            return &hak_samples.other_thread;
        }
        hak_samples.thread_count++;
        thread->thread_id = thread_id;
        thread->next = bucket->first;
        bucket->first = thread;
    }
    return thread;
}

static void add_locked(struct hak_sample_tables *tables, struct hak_sample *sample)
    HAK_REQUIRES(&hak_samples.lock)
{
    struct hak_sample_stack *stack = sample->stack;
    const struct hak_sample_sums sums = sums_of(sample);
    stack_note_peak_locked(stack);
    sums_add(&stack->allocated, sums);
    sums_add(&thread_of_locked(tables, sample->thread_id)->allocated, sums);
    sums_add(&stack->live, sums);
    sums_add(&hak_samples.live, sums);
    if (hak_samples.live.bytes > hak_samples.peak.bytes) {
        hak_samples.peak = hak_samples.live;
        hak_samples.peak_number++;
    }
    struct hak_sample_bucket *bucket = bucket_of(tables, sample->address);
    sample->next = hak_load_relaxed(&bucket->first);
    hak_store_relaxed(&bucket->first, sample);
    filter_change_locked(sample->address, 1);
    hak_samples.sample_count++;
}

// `before`: the sample that precedes it in its bucket, or NULL.
static void remove_locked(struct hak_sample_bucket *bucket,
                          struct hak_sample *sample,
                          struct hak_sample *before) HAK_REQUIRES(&hak_samples.lock)
{
    if (before != NULL) {
        before->next = sample->next;
    } else {
        hak_store_relaxed(&bucket->first, sample->next);
    }
    struct hak_sample_stack *stack = sample->stack;
    const struct hak_sample_sums sums = sums_of(sample);
    stack_note_peak_locked(stack);
    sums_take(&stack->live, sums);
    sums_take(&hak_samples.live, sums);
    filter_change_locked(sample->address, -1);
    hak_samples.sample_count--;
    HAK_PROBE1("otel_memory", "free", sample->address);
    hak_pool_give(sample, sizeof *sample);
}

// Step record of samples.pml.
static bool record(const struct hak_sample *known, const uintptr_t *frames, unsigned frame_count)
{
    struct hak_sample *sample = NULL;
    hak_lock_take(&hak_samples.lock);
    struct hak_sample_tables *tables = hak_table_take(&hak_samples.tables, sizeof *tables);
    if (tables != NULL && hak_samples.sample_count < HAK_SAMPLES_MAX) {
        sample = hak_pool_take(sizeof *sample);
    }
    if (sample != NULL) {
        *sample = *known;
        sample->stack = stack_of_locked(tables, frames, frame_count);
        add_locked(tables, sample);
    } else {
        hak_samples.dropped_samples++;
    }
    hak_samples.taken++;
    if (hak_samples.taken % HAK_SAMPLES_TIMED == 0) {
        hak_samples.timed_ns += hak_os_now_ns() - known->time_ns;
    }
    hak_lock_drop(&hak_samples.lock);
    return sample != NULL;
}

// Mark the entries of the block's slab, or of the large block, so that each free there looks the block up here.
// Step mark of samples.pml.
static void mark(void *block)
{
    struct hak_owner *owner = hak_owner_lock(block);
    struct hak_run *slab = hak_run_of(block);
    slab->sampled_blocks++;
    if (owner != NULL) {
        hak_lock_is_held(&owner->lock);
        hak_slab_move(slab, owner, owner->tag); // to the same owner: this marks its entries
        hak_lock_drop(&owner->lock);
    } else {
        hak_map_set_one(block, HAK_MAP_LARGE(HAK_LARGE_NO_BIN));
    }
}

// The tool that switched sampling on was killed before it could switch it off. The program may switch it on at this moment: it ends
// the lease first, and sets the option with this lock.
static HAK_COLD void end_lease(uint64_t lease)
{
    hak_lock_take(&hak_arena.lock);
    if (hak_cas_relaxed(&hak_samples.lease_ns, &lease, 0)) {
        hak_store_relaxed(&hak_options.sample_bytes, 0);
    }
    hak_lock_drop(&hak_arena.lock);
    hak_sampler_kick();
}

// Walk the stack and record the sample. False if there was no place for it.
static HAK_NOINLINE bool note(const void *block,
                              struct hak_request request,
                              size_t every,
                              size_t block_bytes)
{
    uintptr_t frames[HAK_SAMPLE_PLACES];
    const struct hak_sample sample = {
        .address = (uintptr_t)block,
        .bytes = request.bytes,
        .every = every,
        .block_bytes = block_bytes,
        .time_ns = hak_os_now_ns(),
        .thread_id = hak_load_relaxed(&hak_cache_self->thread_id),
    };
    const uint64_t lease = hak_load_relaxed(&hak_samples.lease_ns);
    if (HAK_UNLIKELY(lease != 0 && sample.time_ns > lease)) {
        end_lease(lease);
    }
    unsigned frame_count = hak_stack_walk_from(request.site, frames, HAK_SAMPLE_FRAMES, false);
    frame_count += hak_python_add(frames, frame_count, sample.time_ns);
    const bool has_place = record(&sample, frames, frame_count);
    if (has_place) {
        HAK_PROBE3("otel_memory", "alloc", sample.address, sample.bytes, sums_of(&sample).bytes);
    }
    return has_place;
}

HAK_NOINLINE void hak_hook_taken(void *block, struct hak_request request, size_t every)
{
    block = hak_tag_off(block);
    const uint32_t entry = hak_map_entry(block);
    const size_t block_bytes = hak_map_is_small(entry) ? hak_classes[HAK_MAP_CLASS(entry)].bytes
                                                       : hak_run_of(block)->bytes;
    if (note(block, request, every, block_bytes)) {
        mark(block);
    }
}

// Record a large block as a sample. If the cache samples, it counts there.
static HAK_NOINLINE void take_large(struct hak_cache *cache,
                                    void *block,
                                    struct hak_request request,
                                    size_t every)
{
    hak_hook_taken(block, request, every);
    hak_sampler_count(cache);
}

// One in how many bytes is a sample, of blocks that no path counts; 0: none.
static size_t every_drawn(const struct hak_cache *cache)
{
    return cache->is_direct ? hak_load_relaxed(&hak_options.sample_bytes)
                            : hak_sampler_every(cache);
}

void hak_sample_draw_apart(const void *block, struct hak_request request, size_t block_bytes)
{
    const size_t every = every_drawn(hak_cache_self);
    if (HAK_UNLIKELY(every != 0) && hak_sampler_draw(block_bytes, every)) {
        HAK_UNHEEDED(note(block, request, every, block_bytes)); // one without a place is counted
    }
}

void hak_hook_large(void *block, struct hak_request request)
{
    struct hak_cache *cache = hak_cache_self;
    const size_t every = every_drawn(cache);
    if (HAK_UNLIKELY(every != 0) && hak_sampler_draw(hak_run_of(block)->bytes, every)) {
        take_large(cache, block, request, every);
    }
}

HAK_NOINLINE void *hak_hook_counted(struct hak_cache *cache,
                                    void *block,
                                    size_t bytes,
                                    const void *site)
{
    const size_t every = cache->sampling->every;
    hak_sampler_draw_large(cache, hak_size_class_bin(bytes));
    take_large(cache, block, (struct hak_request){bytes, 1, site}, every);
    hak_sampler_follow(cache); // the thread may have no other slow path
    return block;
}

// Forget the sample of that address, if its bucket has one.
static bool forget_locked(struct hak_sample_bucket *bucket, uintptr_t address)
    HAK_REQUIRES(&hak_samples.lock)
{
    struct hak_sample *before = NULL;
    struct hak_sample *sample = hak_load_relaxed(&bucket->first);
    while (sample != NULL && sample->address != address) {
        before = sample;
        sample = sample->next;
    }
    if (sample != NULL) {
        remove_locked(bucket, sample, before);
    }
    return sample != NULL;
}

// Only the thread that has a block adds or removes its sample: if a look without the lock finds none, there
// is none. Step forget of samples.pml.
static bool forget(const void *block)
{
    if (hak_load_relaxed(filter_of((uintptr_t)block)) == 0) {
        return false;
    }
    struct hak_sample_tables *tables = hak_table_find(&hak_samples.tables);
    if (tables == NULL) {
        return false; // another block's first sample is being added
    }
    struct hak_sample_bucket *bucket = bucket_of(tables, (uintptr_t)block);
    if (hak_load_relaxed(&bucket->first) == NULL) {
        return false;
    }
    hak_lock_take(&hak_samples.lock);
    const bool is_known = forget_locked(bucket, (uintptr_t)block);
    hak_lock_drop(&hak_samples.lock);
    return is_known;
}

void hak_sample_forget(const void *block)
{
    forget(block);
}

// Step end of samples.pml.
void hak_sample_end(void *block)
{
    block = hak_tag_off(block);
    if (!forget(block)) {
        return;
    }
    struct hak_owner *owner = hak_owner_lock(block);
    if (owner != NULL) {
        hak_lock_is_held(&owner->lock);
        struct hak_run *slab = hak_run_of(block);
        slab->sampled_blocks--;
        hak_slab_move(slab, owner, owner->tag);
        hak_lock_drop(&owner->lock);
    }
}

void hak_hook_forget_slab(const struct hak_run *slab)
{
    const struct hak_class *info = &hak_classes[slab->size_class];
    unsigned left = slab->sampled_blocks;
    for (unsigned index = 0; index < info->blocks && left > 0; index++) {
        HAK_LOOK();
        left -= forget(slab->base + (size_t)index * info->bytes);
    }
}
