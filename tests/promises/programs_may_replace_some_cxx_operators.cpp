// static too
//
// A program that replaces only the basic operators new and delete gets the blocks of all other forms from its own, and frees them
// there, as the standard says ([new.delete]): new[], nothrow, sized, and with an alignment.
#include "../support/promise.h"

#include <cstdint>
#include <new>
#include <string>
#include <vector>

#ifndef __clang__
#    pragma GCC diagnostic ignored "-Wsized-deallocation" // which this test is about
#endif

// Known from tcmalloc: LLVM puts them in place of new.
enum class __hot_cold_t : std::uint8_t {};
struct sized_pointer {
    void *start;
    std::size_t bytes;
};
__attribute__((weak)) void *operator new(std::size_t, __hot_cold_t);
__attribute__((weak)) void *operator new[](std::size_t,
                                           const std::nothrow_t &,
                                           __hot_cold_t) noexcept;
extern "C" __attribute__((weak)) sized_pointer __size_returning_new(std::size_t);

enum { HEAD = 64 }; // bytes before each block, which only the program knows

static long live, calls;

static void *take(std::size_t bytes, std::size_t alignment)
{
    void *start = nullptr;
    if (posix_memalign(&start, alignment, bytes + HEAD) != 0) {
        throw std::bad_alloc();
    }
    char *block = static_cast<char *>(start) + HEAD;
    memset(start, 0x5a, HEAD);
    live++;
    calls++;
    return block;
}

static void give(void *block)
{
    if (block == nullptr) {
        return;
    }
    unsigned char *start = static_cast<unsigned char *>(block) - HEAD;
    HT_CHECK(start[0] == 0x5a && start[HEAD - 1] == 0x5a, "a block that is not the program's");
    live--;
    free(start);
}

void *operator new(std::size_t bytes)
{
    return take(bytes, HEAD);
}

void operator delete(void *block) noexcept
{
    give(block);
}

void *operator new(std::size_t bytes, std::align_val_t alignment)
{
    HT_CHECK(static_cast<std::size_t>(alignment) == HEAD, "another alignment");
    return take(bytes, HEAD);
}

void operator delete(void *block, std::align_val_t) noexcept
{
    give(block);
}

struct Piece { // with a destructor, so that arrays know their length
    long words[5];
    ~Piece()
    {
        words[0] = 0;
    }
};

struct alignas(HEAD) Aligned {
    char bytes[HEAD];
};

template <typename T> static T *hide(T *block)
{
    return static_cast<T *>(ht_hide(block));
}

static void forms_of_tcmalloc()
{
    const __hot_cold_t hint{1};
    ::operator delete(ht_hide(::operator new(100, hint)));
    ::operator delete[](ht_hide(::operator new[](100, std::nothrow, hint)));
    const sized_pointer got = __size_returning_new(100);
    HT_CHECK(got.bytes == 100, "%zu bytes of the program's block may be used", got.bytes);
    ::operator delete(got.start, got.bytes);
    HT_CHECK(live == 0, "%ld blocks are left", live);
}

template <typename T> static void all_forms()
{
    delete hide(new T);
    delete[] hide(new T[4]);
    delete hide(new (std::nothrow) T);
    delete[] hide(new (std::nothrow) T[4]);
    HT_CHECK(live == 0, "%ld blocks are left", live);
}

int main()
{
    ht_start();
    for (int i = 0; i < 100; i++) {
        all_forms<int>();
        all_forms<Piece>();
        all_forms<Aligned>();
    }
    HT_CHECK(calls == 1200, "the program's operators were called %ld times", calls);
    forms_of_tcmalloc();
    HT_CHECK(calls == 1203, "the program's operators were called %ld times", calls);
    void *block = ht_hide(::operator new(100));
    ::operator delete(block, std::nothrow);
    block = ht_hide(::operator new[](100));
    ::operator delete[](block, std::size_t(100));
    std::vector<std::string> strings;
    for (int i = 0; i < 100; i++) {
        strings.push_back(std::string(50, 'x'));
    }
    strings = std::vector<std::string>();
    HT_CHECK(live == 0, "%ld blocks are left", live);
    return 0;
}
