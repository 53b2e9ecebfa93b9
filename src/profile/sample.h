// sample.h -- the blocks that were sampled, and who asked for them.
//
// Layer     profile
// Owns      a record for each sampled block that is live; for each call stack what was allocated there, what is live, and what was
//           when all of it was most; and for each thread what it has allocated.
// Threads   any; one lock, rank "samples". No cache's lock may be held.
// Fails     without memory, or beyond the bounds below, a sample is dropped and counted.
//
// Which allocations are sampled, sampler.h says: each one alone, with a chance that grows with its
// size. A sample therefore stands for one over that chance of its like, and sums of them estimate the
// sums of all blocks without bias.
//
// A sampled block is a block as all others, where it would be anyway: so the slab that it holds is the slab
// that its like hold, which is what tells who pins memory. It is found when it is freed by its unit's
// entry in the map, which is marked (HAK_MAP_SAMPLED) while the slab has a sampled block: the fast path
// takes such an entry for another owner's, and the slow one looks the block up here. A large block
// that was sampled has the entry of one that is too large to be kept.
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
    HAK_SAMPLE_THREADS_MAX = 1 << 14, // the same; those that have ended count
    HAK_SAMPLES_TIMED = 64,           // the clock is a good part of what a sample costs
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
    struct hak_sample_sums peak; // live when `peak_number` of all was the number of the peak
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

// All that was sampled in one thread, or in several that the kernel has given the same number one after the other. With the lock.
struct hak_sample_thread {
    struct hak_sample_thread *next;   // in its bucket; constant
    struct hak_sample_sums allocated; // since the start
    int thread_id;                    // constant
};

struct hak_samples {
    struct hak_lock lock;
    struct hak_sample_stack other;         // stacks that found no place
    struct hak_sample_thread other_thread; // threads that found none
    struct hak_sample_sums live;
    struct hak_sample_sums peak;
    uint64_t peak_number; // how often `peak` rose
    uint64_t sample_count;
    uint64_t stack_count;
    uint64_t thread_count;
    uint64_t dropped_samples;
    uint64_t taken;    // samples ever, the dropped ones included
    uint64_t timed_ns; // what each HAK_SAMPLES_TIMED-th of them took
    // Until when the tool that has switched sampling on wants samples; it moves that on while it lives. 0: no tool has.
    _Atomic(uint64_t) lease_ns;
};

HAK_INTERNAL extern struct hak_samples hak_samples;

// Three hash tables, by address, by the stack's hash and by the thread's number. Memory that nobody touches before the first sample.
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
HAK_INTERNAL extern struct hak_sample_bucket hak_sample_buckets[HAK_SAMPLE_BUCKETS];
HAK_INTERNAL extern struct hak_sample_stack_bucket
    hak_sample_stack_buckets[HAK_SAMPLE_STACK_BUCKETS];
HAK_INTERNAL extern struct hak_sample_thread_bucket
    hak_sample_thread_buckets[HAK_SAMPLE_THREAD_BUCKETS];

// `block` is being freed and its entry is marked: forget it if it is one. It is the caller's still.
HAK_INTERNAL void hak_sample_end(void *block);
// The same of a large block; the caller forgets the mark itself.
HAK_INTERNAL void hak_sample_forget(const void *block);
// A block of no slab, between guards, was taken: it may be a sample. It has no mark, so hak_sample_forget is called for each.
HAK_INTERNAL void hak_sample_draw_apart(const void *block,
                                        struct hak_request request,
                                        size_t block_bytes);
// A heap's slab ends with all its blocks.
HAK_INTERNAL void hak_sample_forget_slab(const struct hak_run *slab);
