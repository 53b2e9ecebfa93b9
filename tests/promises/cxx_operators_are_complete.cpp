// static too
//
// The allocator defines all of C++'s operators new and delete: plain,
// array, sized, aligned, nothrow; their blocks are malloc's kind of block.
#include "../support/operators.h"

#include <cstring>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

static void check_plain(std::size_t size)
{
    std::size_t natural = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    void *block = ht_hide(::operator new(size));
    ht_check_block(block, size, natural, "new");
    ::operator delete(block);
    block = ht_hide(::operator new[](size));
    ht_check_block(block, size, natural, "new[]");
    ::operator delete[](block);
    block = ht_hide(::operator new(size, std::nothrow));
    ht_check_block(block, size, natural, "new nothrow");
    ::operator delete(block, std::nothrow);
    block = ht_hide(::operator new[](size, std::nothrow));
    ht_check_block(block, size, natural, "new[] nothrow");
    ::operator delete[](block, std::nothrow);
    block = ht_hide(::operator new(size));
    ::operator delete(block, size);
    block = ht_hide(::operator new[](size));
    ::operator delete[](block, size);
}

static void check_aligned(std::size_t size, std::size_t alignment)
{
    std::align_val_t align{alignment};
    void *block = ht_hide(::operator new(size, align));
    ht_check_block(block, size, alignment, "aligned new");
    ::operator delete(block, align);
    block = ht_hide(::operator new[](size, align));
    ht_check_block(block, size, alignment, "aligned new[]");
    ::operator delete[](block, align);
    block = ht_hide(::operator new(size, align, std::nothrow));
    ht_check_block(block, size, alignment, "aligned new nothrow");
    ::operator delete(block, align, std::nothrow);
    block = ht_hide(::operator new[](size, align, std::nothrow));
    ht_check_block(block, size, alignment, "aligned new[] nothrow");
    ::operator delete[](block, align, std::nothrow);
    block = ht_hide(::operator new(size, align));
    ::operator delete(block, size, align);
    block = ht_hide(::operator new[](size, align));
    ::operator delete[](block, size, align);
}

int main()
{
    ht_start();
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    for (std::size_t size = 0; size < 8 * HT_MIB; size += size / 2 + 1) {
        check_plain(size);
        for (std::size_t alignment = 32; alignment <= 65536; alignment *= 8) {
            check_aligned(size, alignment);
        }
    }
    // Containers across threads: filled in one, emptied in another.
    std::map<int, std::vector<std::string>> shelves;
    std::thread filler([&shelves] {
        for (int i = 0; i < 20000; i++) {
            shelves[i % 1000].push_back(std::string(static_cast<std::size_t>(i % 90), 'x'));
        }
    });
    filler.join();
    std::size_t letters = 0;
    for (const auto &shelf : shelves) {
        for (const auto &book : shelf.second) {
            letters += book.size();
        }
    }
    HT_CHECK(letters == 889300, "the shelves hold %zu letters", letters);
    return 0;
}
