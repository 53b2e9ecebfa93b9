// sample.h -- the live sampled blocks, with the call stacks and the threads that allocated them.
//
// Owns      a record for each sampled block that is live; for each call stack what was allocated there, what is live, and what was
//           live at the peak of the whole program; and for each thread what it has allocated.
// Threads   any; one lock, rank "samples". No cache's lock may be held.
// Fails     without memory, or beyond the bounds below, a sample is dropped and counted.
//
// sampler.h decides which allocations are sampled: each one independently, with a probability that grows
// with its size. A sample stands for 1 / probability blocks of its kind, and sums of samples are unbiased
// estimates of the sums of all blocks.
//
// A sampled block is an ordinary block in an ordinary place. So it pins the same slabs as the blocks it
// stands for, which shows who pins memory. Its free is found by the map: the entry of a unit is marked
// (HAK_MAP_SAMPLED) while the slab has a sampled block. The fast path takes such an entry for another
// owner's, and the slow path looks the block up here. A large block that was sampled has the entry of one
// that is too large for BigCache.
#pragma once

#include "base/atomic.h"
#include "cache/cache.h"
#include "cache/request.h"
#include "os/lock.h"
#include "python/python.h"
#include "stacks/stack.h"

enum {
    HAK_SAMPLE_FRAMES = HAK_STACK_MOST, // of a native stack, the innermost
    HAK_SAMPLE_PLACES = HAK_SAMPLE_FRAMES + HAK_PYTHON_FRAMES,
    HAK_SAMPLES_MAX = 1 << 18,        // live at a time: 128 GiB of heap, one in 512 KiB
    HAK_SAMPLE_STACKS_MAX = 1 << 16,  // beyond that they all count as one
    HAK_SAMPLE_THREADS_MAX = 1 << 14, // the same; threads that have ended count, too
    HAK_SAMPLES_TIMED = 64,           // one in so many, as reading the clock costs much
};

// Estimates.
struct hak_sample_sums {
    uint64_t samples;
    uint64_t bytes;      // as asked for
    uint64_t blocks_256; // 256 for each block: a sample may stand for a fraction
};

// All that was sampled at one call stack. With the lock.
struct hak_sample_stack {
    struct hak_sample_stack *next; // in its bucket; constant
    uint64_t hash;
    struct hak_sample_sums allocated; // since the start
    struct hak_sample_sums live;
    struct hak_sample_sums peak; // what was live at the peak with the number `peak_number`
    uint64_t peak_number;
    uint32_t frame_count;
    // Places (stacks/code.h) where the calls return to, innermost first, and behind them those of a Python program's frames.
    uintptr_t frames[HAK_SAMPLE_PLACES];
};

// A sampled block that is live. With the lock.
struct hak_sample {
    struct hak_sample *next; // in its bucket
    uintptr_t address;
    size_t bytes; // as asked for
    size_t
        every; // one of so many bytes is sampled: the sample stands for every / block_bytes blocks
    size_t block_bytes;
    uint64_t time_ns;
    struct hak_sample_stack *stack;
    int thread_id;
};

// All that was sampled in one thread, or in several to which the kernel has given the same number in turn. With the lock.
struct hak_sample_thread {
    struct hak_sample_thread *next;   // in its bucket; constant
    struct hak_sample_sums allocated; // since the start
    int thread_id;                    // constant
};

// Three hash tables, by address, by the stack's hash and by the thread's number.
enum {
    HAK_SAMPLE_BUCKETS = 1 << 16,
    HAK_SAMPLE_STACK_BUCKETS = 1 << 13,
    HAK_SAMPLE_THREAD_BUCKETS = 1 << 8,
};
struct hak_sample_bucket {
    _Atomic(struct hak_sample *) first; // written with the lock
};
struct hak_sample_stack_bucket {
    struct hak_sample_stack *first; // lock
};
struct hak_sample_thread_bucket {
    struct hak_sample_thread *first; // lock
};
struct hak_sample_tables {
    struct hak_sample_bucket buckets[HAK_SAMPLE_BUCKETS];
    struct hak_sample_stack_bucket stack_buckets[HAK_SAMPLE_STACK_BUCKETS];
    struct hak_sample_thread_bucket thread_buckets[HAK_SAMPLE_THREAD_BUCKETS];
};

struct hak_samples {
    struct hak_lock lock;
    struct hak_sample_stack other;         // stacks for which there is no place
    struct hak_sample_thread other_thread; // threads for which there is none
    struct hak_sample_sums live;
    struct hak_sample_sums peak;
    uint64_t peak_number; // how often `peak` rose
    uint64_t sample_count;
    uint64_t stack_count;
    uint64_t thread_count;
    uint64_t dropped_samples;
    uint64_t taken;    // samples ever, the dropped ones included
    uint64_t timed_ns; // what each HAK_SAMPLES_TIMED-th of them took, summed up
    // When the lease of the tool that has switched sampling on ends; the tool renews it while it lives. 0: no tool has.
    _Atomic(uint64_t) lease_ns;
    _Atomic(void *) tables; // struct hak_sample_tables; NULL until the first sample
};

HAK_INTERNAL extern struct hak_samples hak_samples;

// `block` is being freed and its entry is marked: forget its sample if it has one. The caller still has the block.
HAK_INTERNAL void hak_sample_end(void *block);
// The same for a large block; the caller removes the mark itself.
HAK_INTERNAL void hak_sample_forget(const void *block);
// Draw whether a guarded block, which lies in no slab, is a sample. It has no mark, so each of its frees calls hak_sample_forget.
HAK_INTERNAL void hak_sample_draw_apart(const void *block,
                                        struct hak_request request,
                                        size_t block_bytes);
