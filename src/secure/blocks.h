// blocks.h -- what the program does with the blocks of hardened slabs, beyond malloc and free of its own thread.
//
// Layer     secure
// Threads   any; no cache's lock is held but where it says so.
#ifndef HAK_SECURE_BLOCKS_H
#define HAK_SECURE_BLOCKS_H

#include "cache/cache.h"
#include "cache/hooks.h"

// See hak_hook_put and hak_hook_resize.
HAK_INTERNAL void hak_blocks_put(struct hak_cache *cache,
                                 struct hak_cache *owner,
                                 struct hak_slab *slab,
                                 void *block);
HAK_INTERNAL enum hak_resized hak_blocks_resize(void *block, size_t bytes);
// What the program may use of a block of `block_bytes`.
HAK_INTERNAL size_t hak_blocks_usable(const void *block, size_t block_bytes);
// At the end of the program: die if a block of any cache is not as it has to be.
HAK_INTERNAL void hak_blocks_check_all(void);

#endif
