// static too
//
// The operators new that LLVM and programs know from tcmalloc: those with a hint of how often the block will be used, and those
// that also return how many bytes are usable. Their blocks are like any others, and delete frees them.
#include "../support/operators.h"

#include <cstdint>
#include <cstring>
#include <new>

// As the program declares them; weak, as there is nothing to link with when the library is preloaded.
enum class __hot_cold_t : std::uint8_t {};
struct sized_pointer {
    void *start;
    std::size_t bytes;
};

#define WEAK __attribute__((weak))
WEAK void *operator new(std::size_t, __hot_cold_t);
WEAK void *operator new[](std::size_t, __hot_cold_t);
WEAK void *operator new(std::size_t, const std::nothrow_t &, __hot_cold_t) noexcept;
WEAK void *operator new[](std::size_t, const std::nothrow_t &, __hot_cold_t) noexcept;
WEAK void *operator new(std::size_t, std::align_val_t, __hot_cold_t);
WEAK void *operator new[](std::size_t, std::align_val_t, __hot_cold_t);
WEAK void *operator new(std::size_t,
                        std::align_val_t,
                        const std::nothrow_t &,
                        __hot_cold_t) noexcept;
WEAK void *operator new[](std::size_t,
                          std::align_val_t,
                          const std::nothrow_t &,
                          __hot_cold_t) noexcept;
extern "C" {
WEAK sized_pointer __size_returning_new(std::size_t);
WEAK sized_pointer __size_returning_new_hot_cold(std::size_t, __hot_cold_t);
WEAK sized_pointer __size_returning_new_aligned(std::size_t, std::align_val_t);
WEAK sized_pointer __size_returning_new_aligned_hot_cold(std::size_t,
                                                         std::align_val_t,
                                                         __hot_cold_t);
}

static void check_hinted(std::size_t size, __hot_cold_t hint)
{
    void *block = ht_hide(::operator new(size, hint));
    ht_check_block(block, size, 16, "new with a hint");
    ::operator delete(block);
    block = ht_hide(::operator new[](size, hint));
    ht_check_block(block, size, 16, "new[] with a hint");
    ::operator delete[](block);
    block = ht_hide(::operator new(size, std::nothrow, hint));
    ht_check_block(block, size, 16, "new nothrow with a hint");
    ::operator delete(block, size);
    block = ht_hide(::operator new[](size, std::nothrow, hint));
    ht_check_block(block, size, 16, "new[] nothrow with a hint");
    ::operator delete[](block);
}

static void check_hinted_aligned(std::size_t size, std::size_t alignment, __hot_cold_t hint)
{
    const std::align_val_t align{alignment};
    void *block = ht_hide(::operator new(size, align, hint));
    ht_check_block(block, size, alignment, "aligned new with a hint");
    ::operator delete(block, align);
    block = ht_hide(::operator new[](size, align, hint));
    ht_check_block(block, size, alignment, "aligned new[] with a hint");
    ::operator delete[](block, align);
    block = ht_hide(::operator new(size, align, std::nothrow, hint));
    ht_check_block(block, size, alignment, "aligned new nothrow with a hint");
    ::operator delete(block, size, align);
    block = ht_hide(::operator new[](size, align, std::nothrow, hint));
    ht_check_block(block, size, alignment, "aligned new[] nothrow with a hint");
    ::operator delete[](block, align);
}

// All bytes that it reports can be written, and any size in between frees it.
static void check_sized(const sized_pointer &got, std::size_t size, std::size_t alignment)
{
    void *block = ht_hide(got.start);
    ht_check_block(block, size, alignment, "a new that returns the size");
    HT_CHECK(got.bytes >= size, "%zu bytes of %zu may be used", got.bytes, size);
    HT_CHECK(got.bytes == malloc_usable_size(block),
             "%zu bytes may be used, and malloc_usable_size says %zu",
             got.bytes,
             malloc_usable_size(block));
    std::memset(block, 2, got.bytes);
    const std::size_t said = size % 2 == 0 ? size : got.bytes;
    if (alignment > 16) {
        ::operator delete(block, said, std::align_val_t{alignment});
    } else {
        ::operator delete(block, said);
    }
}

template <class Allocate> static void expect_bad_alloc(Allocate allocate, const char *call)
{
    bool caught = false;
    try {
        allocate();
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    HT_CHECK(caught, "%s of too much did not throw", call);
}

static void check_refusals()
{
    const std::size_t much = ht_hide_size(PTRDIFF_MAX);
    const __hot_cold_t hint{0};
    const std::align_val_t align{64};
    expect_bad_alloc([&] { ht_hide(::operator new(much, hint)); }, "new with a hint");
    expect_bad_alloc([&] { ht_hide(::operator new[](much, align, hint)); }, "aligned new[]");
    expect_bad_alloc([&] { __size_returning_new(much); }, "a new that returns the size");
    expect_bad_alloc([&] { __size_returning_new_aligned(much, align); }, "an aligned one");
    HT_CHECK(::operator new(much, std::nothrow, hint) == nullptr, "nothrow of too much");
    HT_CHECK(::operator new[](much, align, std::nothrow, hint) == nullptr, "nothrow of too much");
}

int main()
{
    ht_start();
    HT_CHECK(__size_returning_new != nullptr, "there is no __size_returning_new");
    for (std::size_t size = 0; size < 4 * HT_MIB; size += size / 3 + 1) {
        const __hot_cold_t hint{static_cast<std::uint8_t>(size)};
        check_hinted(size, hint);
        check_sized(__size_returning_new(size), size, 16);
        check_sized(__size_returning_new_hot_cold(size, hint), size, 16);
        for (std::size_t alignment = 32; alignment <= 65536; alignment *= 8) {
            const std::align_val_t align{alignment};
            check_hinted_aligned(size, alignment, hint);
            check_sized(__size_returning_new_aligned(size, align), size, alignment);
            check_sized(__size_returning_new_aligned_hot_cold(size, align, hint), size, alignment);
        }
    }
    check_refusals();
    return 0;
}
