// hakmem.h -- the C API of hakmem, a memory allocator for Linux.
//
// Programs need none of this: LD_PRELOAD=libhakmem.so or linking the library
// replaces malloc and its family. These functions go beyond that. C++ has
// hakmem.hpp: heaps that end with their scope, and allocators for containers.
//
// All functions may be called from any thread at any time, except in a signal
// handler that has interrupted one of them. None throws. Sizes are bytes.
//
// A build of the core alone (cmake --preset core) lacks hak_describe, hak_visit_blocks, hak_stats_read,
// hak_stats_json, hak_profile_start, hak_profile_stop and hak_site_rule.
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

// "1.0.0". A weak reference to this function is NULL unless hakmem is in the process.
HAKMEM_API const char *hak_version(void);

// ---- the malloc family under names of its own ----
// They do the same as the C library's functions of these names (hak_usable_size: malloc_usable_size).

HAKMEM_API void *hak_malloc(size_t bytes) __attribute__((malloc, alloc_size(1)));
HAKMEM_API void *hak_calloc(size_t count, size_t bytes) __attribute__((malloc, alloc_size(1, 2)));
HAKMEM_API void *hak_realloc(void *block, size_t bytes) __attribute__((alloc_size(2)));
HAKMEM_API void *hak_reallocarray(void *block, size_t count, size_t bytes)
    __attribute__((alloc_size(2, 3)));
HAKMEM_API void hak_free(void *block);
// `bytes` must be the requested size; a wrong one is reported with HAKMEM_CHECK=1.
HAKMEM_API void hak_free_sized(void *block, size_t bytes);
HAKMEM_API void hak_free_aligned_sized(void *block, size_t alignment, size_t bytes);
// `alignment` is any power of two, for hak_posix_memalign one of at least sizeof(void *); `bytes` need not be a
// multiple of it.
HAKMEM_API void *hak_aligned_alloc(size_t alignment, size_t bytes)
    __attribute__((malloc, alloc_align(1), alloc_size(2)));
HAKMEM_API int hak_posix_memalign(void **block, size_t alignment, size_t bytes);
// The usable bytes of a live block: at least the requested size. 0 for NULL and for memory that is not hakmem's. For an
// address inside a block, or of a freed block, it may be any size: hak_describe finds the block around an address.
HAKMEM_API size_t hak_usable_size(const void *block);

// ---- what is this address? ----

enum hak_block_kind {
    HAK_BLOCK_FOREIGN, // not hakmem's memory
    HAK_BLOCK_SMALL,   // in a slab
    HAK_BLOCK_LARGE,   // a run of pages, or a mapping of its own
};

struct hak_block_info {
    enum hak_block_kind kind;
    void *start;  // of the block that contains the address
    size_t bytes; // usable
    bool is_free; // known to be free; a block in a thread's magazine does not count
};

// Is this an address of memory that hakmem manages?
HAKMEM_API bool hak_owns(const void *address);
// If the address lies in hakmem's memory, fill in `info` and return true. Not in a build of the core alone.
HAKMEM_API bool hak_describe(const void *address, struct hak_block_info *info);

// ---- heaps ----
// A heap's blocks are freed one by one with free(), from any thread, or all at once. A block that realloc
// moves leaves the heap.

struct hak_heap;

// NULL with errno ENOMEM if there is no memory, or if there are two million heaps and threads.
HAKMEM_API struct hak_heap *hak_heap_create(void);
// Any thread may allocate from any heap. On failure the result is NULL with ENOMEM, as malloc's, or with EINVAL if the
// alignment is no power of two. A function that intercepts munmap or madvise gets NULL while it is called by hakmem.
HAKMEM_API void *hak_heap_malloc(struct hak_heap *heap, size_t bytes)
    __attribute__((malloc, alloc_size(2)));
HAKMEM_API void *hak_heap_calloc(struct hak_heap *heap, size_t count, size_t bytes)
    __attribute__((malloc, alloc_size(2, 3)));
HAKMEM_API void *hak_heap_aligned_alloc(struct hak_heap *heap, size_t alignment, size_t bytes)
    __attribute__((malloc, alloc_align(2), alloc_size(3)));
// Free the heap and all its live blocks. Meanwhile no thread may use the heap or free its blocks.
HAKMEM_API void hak_heap_destroy(struct hak_heap *heap);

// ---- every live block ----

// Not in a build of the core alone.
//
// Call `visit` with each live block of `heap`, or of the whole process if that is NULL, until `visit`
// returns false. `bytes` is the usable size. Returns true if all were visited. Returns false, too, if there
// was no memory for the few pages that the walk needs; then no block was visited.
//
// Every block that is live when the walk begins, and that no thread frees before it ends, is visited once.
// A block that is allocated or freed meanwhile may be visited or not.
//
// The walk holds all locks of the allocator: other threads wait as soon as one of their magazines is empty
// or full. It takes some ns a block. `visit` must not wait for a thread that may allocate or free, for example for a lock of
// the C library's streams. It may write into memory that was allocated before. It may allocate, 4 MiB at a time, and free; what it
// frees goes back when the walk ends. It may fork; the child should then end, or call exec, before the walk does. hak_describe,
// hak_owns, hak_usable_size and hak_option_get work in it. The other functions would have to wait for its own locks, and do
// nothing: they return 0, false or NULL, and figures that need a lock are 0. It must return: an exception or longjmp would leave
// the locks held.
HAKMEM_API bool hak_visit_blocks(struct hak_heap *heap,
                                 bool (*visit)(void *start, size_t bytes, void *argument),
                                 void *argument);

// ---- giving back, looking in ----

// Give all threads' free memory back to the system at once, as far as possible. Returns the bytes of purged
// pages; if there were none, those of released addresses.
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

// Not in a build of the core alone. Exact if no other thread allocates or frees meanwhile. Holds all locks while it walks the slabs: about
// 10 ns a slab (64 KiB to 256 KiB of heap each).
HAKMEM_API void hak_stats_read(struct hak_stats *stats);

// Write the same, each size class and the counters as one line of JSON with a final 0 into `text`, which
// has room for `bytes`. Returns the full length: if it is not less than `bytes`, the text was truncated.
// 32 KiB are always enough. Allocates nothing, and may be called from a signal handler: if a lock is not
// free within 100 ms, as where the handler has interrupted who holds it, the figures that need it are 0, and `"walked"` is false.
// Names do not change, new ones may be added; docs/statistics.md explains them. Not in a build of the core alone.
HAKMEM_API size_t hak_stats_json(char *text, size_t bytes);

// ---- profile ----
// Not in a build of the core alone.

// From now on sample one in `sample_bytes` allocated bytes (at least 1): docs/profiling.md. `hakmem profile`
// shows where the samples were allocated, and which of them are live. False if the number is out of range.
HAKMEM_API bool hak_profile_start(size_t sample_bytes);
// Take no more samples. Live ones are still tracked until they are freed.
HAKMEM_API void hak_profile_stop(void);

// ---- site rules ----
// Not in a build of the core alone.

// From now on serve the allocations of the function `where` (or of return addresses: `module+0xoffset`, or
// `module+0xstart-0xend`) by `ways`: some of "short" or "long", "uncached", "unmap", "huge", "zero",
// "align=N", separated by commas. docs/site-rules.md explains them. False if the rule cannot be read, or if
// there are too many rules. Reads the files of the program and its libraries: do not call it in a busy loop; nor, as dlopen, in a
// child that was forked while another thread was in the dynamic linker.
HAKMEM_API bool hak_site_rule(const char *where, const char *ways);

// ---- options ----
// docs/options.md has them all.

// Read the value of an option. False if there is no option of that name.
HAKMEM_API bool hak_option_get(const char *name, uint64_t *value);
// Set an option, if it may be changed at run time and the value is in range; else return false.
HAKMEM_API bool hak_option_set(const char *name, uint64_t value);

// The texts are constants.
struct hak_option_info {
    const char *name;
    const char *kind; // "switch", "number", "choice", "file", "text"
    const char *unit; // of a number; the words of a choice, separated by |; the form of a text
    const char *help; // a sentence or two
    // Who set the value: "default", "mode", "machine", "learner", "config file", "HAKMEM_OPTIONS", "environment",
    // "program".
    const char *source;
    const char *file; // the file's name, of kind "file"; the text, of kind "text"; "" otherwise
    uint64_t value;
    uint64_t initial; // the default
    uint64_t least;
    uint64_t most;
    bool at_run_time; // may hak_option_set change it?
};

// Fill in `info` for the option of that number, counted from 0. False if there is no such option.
HAKMEM_API bool hak_option_describe(size_t number, struct hak_option_info *info);

#ifdef __cplusplus
}
#endif

#endif
