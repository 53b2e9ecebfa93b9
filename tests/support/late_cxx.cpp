// late_cxx.cpp -- a library in C++, for a program in C that opens it late.
#include <new>

static int handled;

static void give_up()
{
    handled++;
    std::set_new_handler(nullptr);
}

static void throw_a_number()
{
    throw 42;
}

static const std::size_t too_many = std::size_t(1) << 60;

// 1: the handler was called once, and there is no block.
extern "C" int ht_late_nothrow()
{
    handled = 0;
    std::set_new_handler(give_up);
    return ::operator new(too_many, std::nothrow) == nullptr &&handled == 1;
}

// 1: what the handler throws is caught, and there is no block.
extern "C" int ht_late_handler_throws()
{
    std::set_new_handler(throw_a_number);
    const bool is_null = ::operator new(too_many, std::nothrow) == nullptr;
    std::set_new_handler(nullptr);
    return is_null;
}

// 1: std::bad_alloc was thrown.
extern "C" int ht_late_throw()
{
    try {
        ::operator delete(::operator new(too_many));
        return 0;
    } catch (const std::bad_alloc &) {
        return 1;
    }
}
