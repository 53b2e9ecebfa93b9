// A user's program in C++: all of hakmem.hpp, compiled with each standard that it supports.
#include <hakmem/hakmem.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#define CHECK(condition)                                   \
    do {                                                   \
        if (!(condition)) {                                \
            std::fprintf(stderr,                           \
                         "%s:%d: broken in C++ %ld: %s\n", \
                         __FILE__,                         \
                         __LINE__,                         \
                         __cplusplus,                      \
                         #condition);                      \
            std::_Exit(1);                                 \
        }                                                  \
    } while (0)

namespace
{

struct alignas(256) Wide {
    char bytes[256];
};

std::size_t blocks_in(const hak::heap &heap)
{
    std::size_t count = 0;
    const auto visit = [](void *, std::size_t, void *argument) {
        ++*static_cast<std::size_t *>(argument);
        return true;
    };
    CHECK(hak_visit_blocks(heap.get(), visit, &count));
    return count;
}

void heaps_end_with_their_scope()
{
    hak_stats before;
    hak_stats after;
    hak_stats_read(&before);
    for (int round = 0; round < 100; round++) {
        hak::heap heap;
        void *first = heap.allocate(1000);
        void *wide = heap.allocate(100000, 4096);
        CHECK(hak_owns(first) && reinterpret_cast<std::uintptr_t>(wide) % 4096 == 0);
        hak::heap moved(std::move(heap));
        CHECK(heap.get() == nullptr && blocks_in(moved) == 2);
        heap = std::move(moved);
        CHECK(moved.get() == nullptr && blocks_in(heap) == 2);
        heap.deallocate(first, 1000);
        CHECK(blocks_in(heap) == 1);
        heap.deallocate(wide, 100000, 4096);
        CHECK(blocks_in(heap) == 0);
        std::memset(heap.allocate(1 << 20), 1, 1 << 20);
        heap = hak::heap();
        CHECK(blocks_in(heap) == 0);
        std::memset(heap.allocate(1 << 20), 1, 1 << 20);
    }
    hak_stats_read(&after);
    CHECK(after.live_bytes < before.live_bytes + (1 << 20));
}

void resources_take_from_their_heap()
{
    hak::heap heap;
    hak::heap other;
    hak::heap_resource resource(heap);
    hak::heap_resource again(heap);
    hak::heap_resource elsewhere(other);
    CHECK(resource == again && resource != elsewhere && resource.get() == heap.get());
    CHECK(resource != *std::pmr::new_delete_resource());
    {
        std::pmr::map<int, std::pmr::string> names(&resource);
        for (int i = 0; i < 1000; i++) {
            names.emplace(i, std::pmr::string(static_cast<std::size_t>(50 + i % 100), 'x'));
        }
        CHECK(blocks_in(heap) == 2000);
        std::pmr::map<int, std::pmr::string> moved(std::move(names), &elsewhere);
        CHECK(blocks_in(other) == 2000 && moved.at(7).size() == 57);
        std::pmr::vector<Wide> wides(10, &resource);
        CHECK(reinterpret_cast<std::uintptr_t>(wides.data()) % alignof(Wide) == 0);
    }
    CHECK(blocks_in(heap) == 0 && blocks_in(other) == 0);
}

template <class Container> void fill_and_empty(hak::heap &heap)
{
    {
        Container container{typename Container::allocator_type(heap)};
        for (int i = 0; i < 1000; i++) {
            container.insert(container.end(), typename Container::value_type{});
        }
        CHECK(blocks_in(heap) > 0);
        Container copy(container);
        CHECK(copy.get_allocator().get() == nullptr && copy.size() == container.size());
        const std::size_t before = blocks_in(heap);
        Container there{typename Container::allocator_type(heap)};
        there = copy;
        CHECK(there.get_allocator().get() == heap.get() && blocks_in(heap) > before);
        there = std::move(copy);
        CHECK(there.get_allocator().get() == heap.get() && there.size() == container.size());
    }
    CHECK(blocks_in(heap) == 0);
}

void containers_keep_their_heap()
{
    hak::heap heap;
    fill_and_empty<std::vector<int, hak::allocator<int>>>(heap);
    fill_and_empty<std::vector<Wide, hak::allocator<Wide>>>(heap);
    fill_and_empty<std::list<std::string, hak::allocator<std::string>>>(heap);
    using pair = std::pair<const int, std::string>;
    fill_and_empty<std::multimap<int, std::string, std::less<int>, hak::allocator<pair>>>(heap);
    using text = std::basic_string<char, std::char_traits<char>, hak::allocator<char>>;
    fill_and_empty<text>(heap);
    std::vector<int, hak::allocator<int>> numbers({1, 2, 3}, heap);
    CHECK(numbers.get_allocator() == hak::allocator<char>(heap));
    CHECK(numbers.get_allocator() != hak::allocator<int>());
    static_assert(!std::is_constructible<hak::allocator<int>, hak::heap &&>::value,
                  "a heap that ends at once");
}

template <class T> void at_least(hak::allocator<T> allocator)
{
    for (std::size_t count = 0; count < 100000 / sizeof(T) + 10; count += count / 4 + 1) {
        for (std::size_t slack = 0; slack < 2; slack++) {
            const auto got = allocator.allocate_at_least(count);
            CHECK(got.count >= count && got.ptr != nullptr);
            CHECK(reinterpret_cast<std::uintptr_t>(got.ptr) % alignof(T) == 0);
            CHECK(got.count * sizeof(T) <= hak_usable_size(got.ptr));
            CHECK((got.count + 1) * sizeof(T) > hak_usable_size(got.ptr));
            std::memset(static_cast<void *>(got.ptr), 1, got.count * sizeof(T));
            allocator.deallocate(got.ptr, slack == 0 ? got.count : count);
        }
    }
}

void all_of_a_block_can_be_had()
{
    hak::heap heap;
    at_least(hak::allocator<char>());
    at_least(hak::allocator<char>(heap));
    at_least(hak::allocator<Wide>());
    at_least(hak::allocator<Wide>(heap));
    at_least(hak::allocator<std::pair<long, char>>(heap));
#if defined(__cpp_lib_allocate_at_least) && __cpp_lib_allocate_at_least >= 202302L
    hak::allocator<int> ints(heap);
    const std::allocation_result<int *, std::size_t> got =
        std::allocator_traits<hak::allocator<int>>::allocate_at_least(ints, 9);
    CHECK(got.count >= 9);
    ints.deallocate(got.ptr, got.count);
#endif
    CHECK(blocks_in(heap) == 0);
}

int handled;

void handle_twice()
{
    if (++handled % 3 == 0) {
        std::set_new_handler(nullptr);
    }
}

template <class Allocate> void expect_bad_alloc(Allocate allocate, int calls = 3)
{
    handled = 0;
    std::set_new_handler(handle_twice);
    bool caught = false;
    try {
        allocate();
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    CHECK(caught && handled == calls);
}

void what_is_refused_throws()
{
    volatile std::size_t much = PTRDIFF_MAX - 4096;
    hak::heap heap;
    hak::heap_resource resource(heap);
    expect_bad_alloc([&] { return heap.allocate(much); });
    expect_bad_alloc([&] { return resource.allocate(much, 4096); });
    expect_bad_alloc([&] { return hak::allocator<char>().allocate(much); });
    expect_bad_alloc([&] { return hak::allocator<char>(heap).allocate_at_least(much); });
    expect_bad_alloc([&] { return heap.allocate(100, 48); },
                     0); // no power of two: no handler can help
    std::set_new_handler(nullptr);
    bool caught = false;
    try {
        (void)hak::allocator<Wide>(heap).allocate(SIZE_MAX / 2);
    } catch (const std::bad_array_new_length &) {
        caught = true;
    }
    CHECK(caught && blocks_in(heap) == 0);
}

void threads_share_a_heap()
{
    hak::heap heap;
    std::vector<std::thread> threads;
    std::vector<std::vector<int *>> blocks(4);
    for (std::size_t i = 0; i < 4; i++) {
        threads.emplace_back([&heap, &blocks, i] {
            for (int j = 0; j < 10000; j++) {
                blocks[i].push_back(hak::allocator<int>(heap).allocate(1));
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    CHECK(blocks_in(heap) == 40000);
    threads.clear();
    for (std::size_t i = 0; i < 4; i++) {
        threads.emplace_back([&heap, &blocks, i] {
            for (int *block : blocks[(i + 1) % 4]) {
                hak::allocator<int>(heap).deallocate(block, 1);
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
}

} // namespace

int main()
{
    heaps_end_with_their_scope();
    resources_take_from_their_heap();
    containers_keep_their_heap();
    all_of_a_block_can_be_had();
    what_is_refused_throws();
    threads_share_a_heap();
    return 0;
}
