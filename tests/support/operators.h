// operators.h -- what an operator new of C++ has to return.
#ifndef HAK_TESTS_SUPPORT_OPERATORS_H
#define HAK_TESTS_SUPPORT_OPERATORS_H

#include "promise.h"

#include <cstdint>
#include <cstring>
#include <new>

#ifndef __cpp_sized_deallocation // clang then leaves the declarations out; the functions exist
void operator delete(void *, std::size_t) noexcept;
void operator delete[](void *, std::size_t) noexcept;
void operator delete(void *, std::size_t, std::align_val_t) noexcept;
void operator delete[](void *, std::size_t, std::align_val_t) noexcept;
#endif

static inline void ht_check_block(void *block,
                                  std::size_t size,
                                  std::size_t alignment,
                                  const char *call)
{
    HT_CHECK(block != nullptr, "%s of %zu bytes gave NULL", call, size);
    HT_CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0,
             "%s: %p is not aligned to %zu",
             call,
             block,
             alignment);
    HT_CHECK(malloc_usable_size(block) >= size, "%s of %zu bytes is too small", call, size);
    HT_CHECK(ht_is_any() || hak_owns == nullptr || hak_owns(block), "%s: not hakmem's block", call);
    std::memset(block, 1, size);
}

#endif
