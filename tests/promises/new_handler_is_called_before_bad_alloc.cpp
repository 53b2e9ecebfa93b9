// static too
//
// When memory is exhausted, operator new calls the new-handler as long as
// there is one, then throws std::bad_alloc; the nothrow forms return NULL.
// No handler is called for an alignment that is no power of two.
#include "../support/promise.h"

#include <exception>
#include <new>

static int calls;

static void give_up_at_third_call()
{
    calls++;
    if (calls == 3) {
        std::set_new_handler(nullptr);
    }
}

static void throwing_handler()
{
    calls++;
    throw std::bad_alloc();
}

struct Noticing { // notices that the stack is unwound
    ~Noticing()
    {
        unwound++;
    }
    static int unwound;
};
int Noticing::unwound;

static void handler_that_throws_a_number()
{
    Noticing noticing;
    throw 42;
}

template <typename Allocate> static void must_throw(const char *what, Allocate allocate)
{
    calls = 0;
    std::set_new_handler(give_up_at_third_call);
    bool caught = false;
    try {
        void *block = ht_hide(allocate());
        HT_BREAK("%s gave %p", what, block);
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    HT_CHECK(caught, "%s did not throw", what);
    HT_CHECK(calls == 3, "%s called the handler %d times, not 3", what, calls);
    std::set_new_handler(handler_that_throws_a_number);
    int number = 0;
    try {
        ht_hide(allocate());
    } catch (int thrown) {
        number = thrown;
    }
    HT_CHECK(number == 42, "%s did not let the handler's exception through", what);
    HT_CHECK(Noticing::unwound == 1, "%s: unwound %d times", what, Noticing::unwound);
    Noticing::unwound = 0;
}

template <typename Allocate> static void must_be_null(const char *what, Allocate allocate)
{
    calls = 0;
    std::set_new_handler(give_up_at_third_call);
    HT_CHECK(ht_hide(allocate()) == nullptr, "%s gave a block", what);
    HT_CHECK(calls == 3, "%s called the handler %d times, not 3", what, calls);
    calls = 0;
    std::set_new_handler(throwing_handler);
    HT_CHECK(ht_hide(allocate()) == nullptr, "%s gave a block", what);
    HT_CHECK(calls == 1, "%s called the throwing handler %d times", what, calls);
    std::set_new_handler(handler_that_throws_a_number);
    HT_CHECK(ht_hide(allocate()) == nullptr, "%s gave a block", what);
    HT_CHECK(Noticing::unwound == 1, "%s: unwound %d times", what, Noticing::unwound);
    HT_CHECK(std::current_exception() == nullptr, "%s is still handling what it caught", what);
    Noticing::unwound = 0;
    std::set_new_handler(nullptr);
}

static void an_odd_alignment_fails_at_once()
{
    const std::align_val_t odd{48};
    bool caught = false;
    calls = 0;
    std::set_new_handler(give_up_at_third_call);
    try {
        ht_hide(::operator new(100, odd));
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    HT_CHECK(caught && calls == 0, "an alignment of 48: the handler was called %d times", calls);
    HT_CHECK(ht_hide(::operator new(100, odd, std::nothrow)) == nullptr && calls == 0,
             "an alignment of 48 with nothrow: the handler was called %d times",
             calls);
    std::set_new_handler(nullptr);
}

int main()
{
    ht_start();
    std::size_t huge = ht_hide_size(SIZE_MAX / 2 - 100);
    std::align_val_t align{256};
    must_throw("new", [&] { return ::operator new(huge); });
    must_throw("new[]", [&] { return ::operator new[](huge); });
    must_throw("aligned new", [&] { return ::operator new(huge, align); });
    must_throw("aligned new[]", [&] { return ::operator new[](huge, align); });
    must_be_null("new nothrow", [&] { return ::operator new(huge, std::nothrow); });
    must_be_null("new[] nothrow", [&] { return ::operator new[](huge, std::nothrow); });
    must_be_null("aligned new nothrow", [&] { return ::operator new(huge, align, std::nothrow); });
    must_be_null("aligned new[] nothrow",
                 [&] { return ::operator new[](huge, align, std::nothrow); });
    an_odd_alignment_fails_at_once();
    ::operator delete(ht_hide(::operator new(100)));
    return 0;
}
