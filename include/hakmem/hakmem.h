// hakmem.h -- the C API of hakmem, a memory allocator for Linux.
//
// Programs need nothing of this: LD_PRELOAD=libhakmem.so or linking the library
// replaces malloc and its family. What is here goes beyond them. C++ has
// hakmem.hpp: heaps that end with their scope, and allocators for containers.
//
// All functions may be called from any thread at any time, except in a signal
// handler that has interrupted one of them. None throws. Sizes are bytes.
//
// The documents that are named here are installed in share/doc/hakmem.
#ifndef HAKMEM_HAKMEM_H
#define HAKMEM_HAKMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HAKMEM_VERSION_MAJOR 1
#define HAKMEM_VERSION_MINOR 0
#define HAKMEM_VERSION_PATCH 0
#define HAKMEM_VERSION                \
    HAKMEM_TEXT(HAKMEM_VERSION_MAJOR) \
    "." HAKMEM_TEXT(HAKMEM_VERSION_MINOR) "." HAKMEM_TEXT(HAKMEM_VERSION_PATCH)
#define HAKMEM_TEXT(number)  HAKMEM_TEXT_(number)
#define HAKMEM_TEXT_(number) #number

#define HAKMEM_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// "1.0.0". Also the proof that hakmem is in the process: weak references to it are NULL without.
HAKMEM_API const char *hak_version(void);

// ---- the malloc family under names of its own ----
// As the C library's functions of these names (hak_usable_size: malloc_usable_size).

HAKMEM_API void *hak_malloc(size_t bytes) __attribute__((malloc, alloc_size(1)));
HAKMEM_API void *hak_calloc(size_t count, size_t bytes) __attribute__((malloc, alloc_size(1, 2)));
HAKMEM_API void *hak_realloc(void *block, size_t bytes) __attribute__((alloc_size(2)));
HAKMEM_API void *hak_reallocarray(void *block, size_t count, size_t bytes)
    __attribute__((alloc_size(2, 3)));
HAKMEM_API void hak_free(void *block);
// `bytes` must be the size asked for; a wrong one is reported with HAKMEM_CHECK=1.
HAKMEM_API void hak_free_sized(void *block, size_t bytes);
HAKMEM_API void hak_free_aligned_sized(void *block, size_t alignment, size_t bytes);
// `alignment` is any power of two; `bytes` need not be a multiple of it.
HAKMEM_API void *hak_aligned_alloc(size_t alignment, size_t bytes)
    __attribute__((malloc, alloc_align(1), alloc_size(2)));
HAKMEM_API int hak_posix_memalign(void **block, size_t alignment, size_t bytes);
// Bytes that may be used of a live block: at least as many as were asked for. 0 for NULL and
// for an address that is not a block of ours.
HAKMEM_API size_t hak_usable_size(const void *block);

// ---- what is this address? ----

enum hak_block_kind {
    HAK_BLOCK_FOREIGN, // no memory of ours
    HAK_BLOCK_SMALL,   // in a slab
    HAK_BLOCK_LARGE,   // a run of pages, or a mapping of its own
};

struct hak_block_info {
    enum hak_block_kind kind;
    void *start;  // of the block that the address lies in
    size_t bytes; // usable
    bool is_free; // known to be free; a block in a thread's magazine does not count
};

// Is this an address of memory that hakmem manages?
HAKMEM_API bool hak_owns(const void *address);
// Fill in `info` and return true when the address lies in memory of ours.
HAKMEM_API bool hak_describe(const void *address, struct hak_block_info *info);

// ---- heaps ----
// A heap's blocks are freed one by one with free(), from any thread, or all at once. What realloc moves
// elsewhere is no longer the heap's.

struct hak_heap;

// NULL with errno ENOMEM when there is no memory, or when there are two million heaps and threads.
HAKMEM_API struct hak_heap *hak_heap_create(void);
// Any thread may allocate from any heap; NULL with ENOMEM as malloc.
HAKMEM_API void *hak_heap_malloc(struct hak_heap *heap, size_t bytes)
    __attribute__((malloc, alloc_size(2)));
HAKMEM_API void *hak_heap_calloc(struct hak_heap *heap, size_t count, size_t bytes)
    __attribute__((malloc, alloc_size(2, 3)));
HAKMEM_API void *hak_heap_aligned_alloc(struct hak_heap *heap, size_t alignment, size_t bytes)
    __attribute__((malloc, alloc_align(2), alloc_size(3)));
// Free every block of the heap that is still live, and the heap. No thread may be using it or
// freeing its blocks at this moment.
HAKMEM_API void hak_heap_destroy(struct hak_heap *heap);

// ---- every live block ----

// Call `visit` with each live block of `heap`, or of the whole process when that is NULL, until it returns
// false. `bytes` are usable: at least those asked for. True when all were visited; false also when there
// was no memory for the few pages that this takes, and then none was.
//
// Every block that is live when the walk begins, and that no thread frees before it ends, is visited once.
// One that is allocated or freed meanwhile may be visited or not.
//
// All locks of the allocator are held: other threads wait as soon as a magazine of theirs is empty or full,
// some ns a block. So `visit` must not allocate or free, nor wait for a thread that may: for the C library's
// streams, say. It may write into memory that was allocated before.
HAKMEM_API bool hak_visit_blocks(struct hak_heap *heap,
                                 bool (*visit)(void *start, size_t bytes, void *argument),
                                 void *argument);

// ---- giving back, looking in ----

// Give back to the system, now, whatever can be given back, of all threads. Returns the bytes of pages that
// went; where there were none, those of addresses.
HAKMEM_API size_t hak_trim(void);

struct hak_stats {
    size_t mapped_bytes; // of address space for blocks
    size_t live_bytes;   // in blocks that the program holds, sizes rounded up to their classes
    size_t live_blocks;
    size_t cached_bytes;    // in free blocks in magazines and parcels
    size_t kept_bytes;      // in freed large blocks kept for reuse
    size_t slab_free_bytes; // in free blocks of slabs, once used
    size_t unit_free_bytes; // in free units of superslabs
    size_t dirty_bytes;     // those of them that may still be resident
    size_t metadata_bytes;  // mapped for descriptors and tables, touched or not
    size_t cache_count;     // caches of threads and heaps, live or ended
    size_t superslab_count;
    size_t mapping_count; // large blocks with a mapping of their own
};

// Exact for a program that stands still. Holds all locks while it walks the slabs: about
// 10 ns a slab (64 KiB to 256 KiB of heap each).
HAKMEM_API void hak_stats_read(struct hak_stats *stats);

// The same, each size class and the counters as one line of JSON with a final 0, in `text`, which has
// room for `bytes`. Returns the length of the whole: one that is not less than `bytes` has been cut.
// 32 KiB are always enough. Allocates nothing, and may be called from a signal handler: what needs a
// lock that is not to be had then is 0, and `"walked"` is false. The names stay, new ones may come;
// docs/statistics.md explains them.
HAKMEM_API size_t hak_stats_json(char *text, size_t bytes);

// ---- profile ----

// Sample one in so many bytes of what is allocated from now on (at least 1): docs/profiling.md. Where the
// samples were allocated, and which of them live, `hakmem profile` shows. False when that is out of range.
HAKMEM_API bool hak_profile_start(size_t sample_bytes);
// Take no more samples. Those that live are still followed until they are freed.
HAKMEM_API void hak_profile_stop(void);

// ---- site rules ----

// Give what the function `where` allocates (or `module+0xoffset`, or `module+0xstart-0xend`, of its return
// addresses) a way of its own, from now on: `ways` are some of "short" or "long", "uncached", "unmap",
// "huge", "zero", "align=N", separated by commas. docs/site-rules.md explains them. False when it cannot be
// read, or the rules are too many. Reads the files of the program and its libraries: not for a busy loop.
HAKMEM_API bool hak_site_rule(const char *where, const char *ways);

// ---- options ----
// docs/options.md has them all.

// The value of an option, false when there is none of that name.
HAKMEM_API bool hak_option_get(const char *name, uint64_t *value);
// Set it, if it may be changed while the program runs and the value is in range.
HAKMEM_API bool hak_option_set(const char *name, uint64_t value);

// The texts are constants.
struct hak_option_info {
    const char *name;
    const char *kind; // "switch", "number", "choice", "file"
    const char *unit; // of a number; the words of a choice, separated by |
    const char *help; // a sentence or two
    // Of its value: "default", "mode", "machine", "learner", "config file", "HAKMEM_OPTIONS", "environment",
    // "program".
    const char *source;
    const char *file; // named for a "file"; "" otherwise
    uint64_t value;
    uint64_t initial; // the default
    uint64_t least;
    uint64_t most;
    bool at_run_time; // may hak_option_set change it?
};

// Fill in `info` for the option of that number, counted from 0. False when there are not so many.
HAKMEM_API bool hak_option_describe(size_t number, struct hak_option_info *info);

#ifdef __cplusplus
}
#endif

#endif
