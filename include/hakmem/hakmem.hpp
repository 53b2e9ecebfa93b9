// hakmem.hpp -- hakmem's heaps and allocators for C++17 and later. There is nothing to link but hakmem.
//
//   hak::heap heap;                                    // ends with its scope, with all that is in it
//   hak::heap_resource resource(heap);                 // for std::pmr's containers
//   std::pmr::vector<int> numbers(&resource);
//   std::vector<int, hak::allocator<int>> more(heap);  // for all others
//
// A heap must outlive the objects that were allocated from it. Without memory the new-handler is called; if there
// is none, std::bad_alloc is thrown; a program without exceptions ends.
#ifndef HAKMEM_HAKMEM_HPP
#define HAKMEM_HAKMEM_HPP

#if __cplusplus < 201703L
#    error "hakmem.hpp needs C++17 or later (-std=c++17); hakmem.h works with all"
#endif

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

#include "hakmem/hakmem.h"

namespace hak
{

namespace detail
{

template <class Exception> [[noreturn]] inline void raise()
{
#if defined(__cpp_exceptions)
    throw Exception();
#else
    std::abort();
#endif
}

// Call `attempt` until it does not return NULL, and return its result. After each NULL, call the new-handler.
template <class Function> auto insist(Function attempt)
{
    for (;;) {
        if (auto *result = attempt()) {
            return result;
        }
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) {
            raise<std::bad_alloc>();
        }
        handler();
    }
}

inline void *try_allocate(hak_heap *heap, std::size_t bytes, std::size_t alignment) noexcept
{
    if (alignment <= alignof(std::max_align_t)) {
        return heap == nullptr ? hak_malloc(bytes) : hak_heap_malloc(heap, bytes);
    }
    return heap == nullptr ? hak_aligned_alloc(alignment, bytes)
                           : hak_heap_aligned_alloc(heap, alignment, bytes);
}

// An alignment that is no power of two would be tried for ever.
inline void *allocate(hak_heap *heap, std::size_t bytes, std::size_t alignment)
{
    if ((alignment & (alignment - 1)) != 0) {
        raise<std::bad_alloc>();
    }
    return insist([&] { return try_allocate(heap, bytes, alignment); });
}

inline void deallocate(void *block, std::size_t bytes, std::size_t alignment) noexcept
{
    if (alignment <= alignof(std::max_align_t)) {
        hak_free_sized(block, bytes);
    } else {
        hak_free_aligned_sized(block, alignment, bytes);
    }
}

} // namespace detail

// A heap that ends with its scope: see hak_heap_create(3). When it is moved, its blocks stay where they are, and
// allocators of the heap stay valid.
class heap
{
  public:
    heap() : heap_(detail::insist(hak_heap_create))
    {
    }
    heap(heap &&other) noexcept : heap_(std::exchange(other.heap_, nullptr))
    {
    }
    heap &operator=(heap &&other) noexcept
    {
        heap moved(std::move(other));
        std::swap(heap_, moved.heap_);
        return *this;
    }
    // Its blocks that are still live are freed, without destructors.
    ~heap()
    {
        hak_heap_destroy(heap_);
    }

    // For hakmem.h's functions. NULL after the heap was moved: then it may only be destroyed or assigned to.
    [[nodiscard]] hak_heap *get() const noexcept
    {
        return heap_;
    }
    [[nodiscard]] void *allocate(std::size_t bytes,
                                 std::size_t alignment = alignof(std::max_align_t))
    {
        return detail::allocate(heap_, bytes, alignment);
    }
    // `bytes` and `alignment` must be those asked for. free() and hak_free() do the same without them.
    void deallocate(void *block,
                    std::size_t bytes,
                    std::size_t alignment = alignof(std::max_align_t)) noexcept
    {
        detail::deallocate(block, bytes, alignment);
    }

  private:
    hak_heap *heap_;
};

// Allocates from a heap, for std::pmr's containers. It equals another resource of the same heap.
class heap_resource : public std::pmr::memory_resource
{
  public:
    explicit heap_resource(heap &from) noexcept : heap_(from.get())
    {
    }
    [[nodiscard]] hak_heap *get() const noexcept
    {
        return heap_;
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return detail::allocate(heap_, bytes, alignment);
    }
    void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override
    {
        detail::deallocate(block, bytes, alignment);
    }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti)
        const auto *same = dynamic_cast<const heap_resource *>(&other);
        return same != nullptr && same->heap_ == heap_;
#else
        return this == &other;
#endif
    }

    hak_heap *heap_;
};

// What allocate_at_least returns: the standard library's own type if it has one.
#if defined(__cpp_lib_allocate_at_least) && __cpp_lib_allocate_at_least >= 202302L
template <class Pointer> using allocation_result = std::allocation_result<Pointer, std::size_t>;
#else
template <class Pointer> struct allocation_result {
    Pointer ptr;
    std::size_t count;
};
#endif

// Allocates from a heap, or as malloc does, for the standard's containers. As with std::pmr, a container keeps its
// heap for its life: elements that are assigned to it are moved or copied there, and copies of it use malloc.
template <class T> class allocator
{
  public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using is_always_equal = std::false_type;

    allocator() noexcept = default;
    // Implicit, so that a container can be given the heap.
    allocator(heap &from) noexcept : heap_(from.get())
    {
    }
    template <class Other> allocator(const allocator<Other> &from) noexcept : heap_(from.get())
    {
    }

    [[nodiscard]] T *allocate(size_type count)
    {
        return static_cast<T *>(detail::allocate(heap_, bytes_of(count), alignof(T)));
    }

    // The result counts all objects that fit the block, at least `count`. Any number in between may free it.
    [[nodiscard]] allocation_result<T *> allocate_at_least(size_type count)
    {
        void *block = detail::allocate(heap_, bytes_of(count), alignof(T));
        const size_type there = hak_usable_size(block) / sizeof(T);
        __asm__("" : "+r"(block)); // else the compiler takes the size asked for as the block's
        return {static_cast<T *>(block), there};
    }

    void deallocate(T *block, size_type count) noexcept
    {
        detail::deallocate(block, count * sizeof(T), alignof(T));
    }

    [[nodiscard]] allocator select_on_container_copy_construction() const noexcept
    {
        return allocator();
    }
    // NULL: it uses malloc.
    [[nodiscard]] hak_heap *get() const noexcept
    {
        return heap_;
    }

  private:
    static size_type bytes_of(size_type count)
    {
        if (count > std::numeric_limits<size_type>::max() / sizeof(T)) {
            detail::raise<std::bad_array_new_length>();
        }
        return count * sizeof(T);
    }

    hak_heap *heap_ = nullptr;
};

template <class One, class Other>
[[nodiscard]] bool operator==(const allocator<One> &left, const allocator<Other> &right) noexcept
{
    return left.get() == right.get();
}

template <class One, class Other>
[[nodiscard]] bool operator!=(const allocator<One> &left, const allocator<Other> &right) noexcept
{
    return !(left == right);
}

} // namespace hak

#endif
