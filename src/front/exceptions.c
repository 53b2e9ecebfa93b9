// exceptions.c -- see exceptions.h.
//
// This file writes out, for two cases, the code that the Itanium C++ ABI (exception handling, levels I and II) asks of a
// compiler. The functions that it calls come from the program's own C++ library (cxx_library.h). C programs do not load one,
// and have nothing that throws.
#include "front/exceptions.h"

#ifndef HAK_NO_OVERRIDE

#    include <unwind.h>

#    include "front/cxx_library.h"

extern void *__cxa_allocate_exception(size_t bytes) __attribute__((weak));
extern void __cxa_throw(void *exception, const void *type, void (*end)(void *))
    __attribute__((weak));
extern void *__cxa_begin_catch(void *exception) __attribute__((weak));
extern void __cxa_end_catch(void) __attribute__((weak));
extern __typeof__(_Unwind_SetGR) _Unwind_SetGR __attribute__((weak));
extern __typeof__(_Unwind_SetIP) _Unwind_SetIP __attribute__((weak));

// std::bad_alloc: its type, its virtual functions and its destructor.
extern const char bad_alloc_type[] __asm__("_ZTISt9bad_alloc") __attribute__((weak));
extern const void *const bad_alloc_virtual[] __asm__("_ZTVSt9bad_alloc") __attribute__((weak));
extern void bad_alloc_end(void *exception) __asm__("_ZNSt9bad_allocD1Ev") __attribute__((weak));

// What we use of the C++ library; NULL if there is none.
struct thrower {
    __typeof__(__cxa_allocate_exception) *allocate;
    __typeof__(__cxa_throw) *throw;
    const char *type;
    const void *const *virtual;
    __typeof__(bad_alloc_end) *end;
};

struct catcher {
    __typeof__(__cxa_begin_catch) *begin;
    __typeof__(__cxa_end_catch) *end;
    __typeof__(_Unwind_SetGR) *set_register;
    __typeof__(_Unwind_SetIP) *set_place;
};

#    define FIND(member, linked, name, site) \
        (*(const void **)&(member) =         \
             hak_cxx_library_symbol((const void *)(uintptr_t)(linked), (name), (site)))

// A program may have several C++ libraries and unwinders: `site` is code of the one whose functions are needed.
static struct catcher catcher_find(const void *site)
{
    struct catcher catcher;
    FIND(catcher.begin, __cxa_begin_catch, "__cxa_begin_catch", site);
    FIND(catcher.end, __cxa_end_catch, "__cxa_end_catch", site);
    FIND(catcher.set_register, _Unwind_SetGR, "_Unwind_SetGR", site);
    FIND(catcher.set_place, _Unwind_SetIP, "_Unwind_SetIP", site);
    return catcher;
}

void hak_exceptions_throw_bad_alloc(const void *site)
{
    struct thrower thrower;
    FIND(thrower.allocate, __cxa_allocate_exception, "__cxa_allocate_exception", site);
    FIND(thrower.throw, __cxa_throw, "__cxa_throw", site);
    FIND(thrower.type, bad_alloc_type, "_ZTISt9bad_alloc", site);
    FIND(thrower.virtual, bad_alloc_virtual, "_ZTVSt9bad_alloc", site);
    FIND(thrower.end, bad_alloc_end, "_ZNSt9bad_allocD1Ev", site);
    if (thrower.allocate == NULL || thrower.throw == NULL || thrower.type == NULL ||
        thrower.virtual == NULL || thrower.end == NULL) {
        return;
    }
    const void **exception = thrower.allocate(sizeof *exception);
    *exception = &thrower.virtual[2]; // behind the offset to the top and the type
    thrower.throw(exception, thrower.type, thrower.end);
}

// The call, and its landing pad, which the unwinder enters with the exception in the first data
// register. The instructions behind the call are like those of a compiler's catch (...).
HAK_INTERNAL void *hak_exceptions_catch_call(void *(*allocate)(const void *argument),
                                             const void *argument);
HAK_INTERNAL extern const char hak_exceptions_catch_landing[];
HAK_INTERNAL void hak_exceptions_catch_end(void *exception);
HAK_INTERNAL _Unwind_Reason_Code
hak_exceptions_catch_personality(int version,
                                 _Unwind_Action actions,
                                 _Unwind_Exception_Class class,
                                 struct _Unwind_Exception *exception,
                                 struct _Unwind_Context *context);

#    if defined(__x86_64__)
__asm__(
    ".text\n"
    ".hidden hak_exceptions_catch_call\n"
    ".globl hak_exceptions_catch_call\n"
    ".type hak_exceptions_catch_call, @function\n"
    "hak_exceptions_catch_call:\n"
    ".cfi_startproc\n"
    ".cfi_personality 0x1b, hak_exceptions_catch_personality\n" // relative to the place, in 4 bytes
    "subq $8, %rsp\n"
    ".cfi_adjust_cfa_offset 8\n"
    "movq %rdi, %rax\n"
    "movq %rsi, %rdi\n"
    "callq *%rax\n"
    "jmp 1f\n"
    ".hidden hak_exceptions_catch_landing\n"
    ".globl hak_exceptions_catch_landing\n"
    "hak_exceptions_catch_landing:\n"
    "endbr64\n"
    "movq %rax, %rdi\n"
    "callq hak_exceptions_catch_end\n"
    "xorl %eax, %eax\n"
    "1:\n"
    "addq $8, %rsp\n"
    ".cfi_adjust_cfa_offset -8\n"
    "retq\n"
    ".cfi_endproc\n"
    ".size hak_exceptions_catch_call, . - hak_exceptions_catch_call\n");
#    elif defined(__aarch64__)
__asm__(".text\n"
        ".hidden hak_exceptions_catch_call\n"
        ".globl hak_exceptions_catch_call\n"
        ".type hak_exceptions_catch_call, %function\n"
        "hak_exceptions_catch_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, hak_exceptions_catch_personality\n"
        "stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset 29, -16\n"
        ".cfi_offset 30, -8\n"
        "mov x2, x0\n"
        "mov x0, x1\n"
        "blr x2\n"
        "b 1f\n"
        ".hidden hak_exceptions_catch_landing\n"
        ".globl hak_exceptions_catch_landing\n"
        "hak_exceptions_catch_landing:\n"
        "hint #36\n" // bti j
        "bl hak_exceptions_catch_end\n"
        "mov x0, #0\n"
        "1:\n"
        "ldp x29, x30, [sp], #16\n"
        ".cfi_def_cfa_offset 0\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size hak_exceptions_catch_call, . - hak_exceptions_catch_call\n");
#    endif

void hak_exceptions_catch_end(void *exception)
{
    const struct _Unwind_Exception *header = exception;
    const struct catcher catcher =
        catcher_find((const void *)(uintptr_t)header->exception_cleanup); // the library that threw
    catcher.begin(exception);
    catcher.end();
}

// The personality function: the unwinder calls it for this frame. Every exception is caught;
// unwinding for another reason (pthread_exit, pthread_cancel) goes on.
_Unwind_Reason_Code hak_exceptions_catch_personality(int version,
                                                     _Unwind_Action actions,
                                                     _Unwind_Exception_Class class,
                                                     struct _Unwind_Exception *exception,
                                                     struct _Unwind_Context *context)
{
    (void)version;
    (void)class;
    if ((actions & _UA_FORCE_UNWIND) != 0) {
        return _URC_CONTINUE_UNWIND;
    }
    if ((actions & _UA_SEARCH_PHASE) != 0) {
        return _URC_HANDLER_FOUND;
    }
    const struct catcher catcher = catcher_find(__builtin_return_address(0)); // the unwinder
    catcher.set_register(context, __builtin_eh_return_data_regno(0), (uintptr_t)exception);
    catcher.set_place(context, (uintptr_t)hak_exceptions_catch_landing);
    return _URC_INSTALL_CONTEXT;
}

void *hak_exceptions_catch(void *(*allocate)(const void *argument), const void *argument)
{
    const struct catcher catcher = catcher_find(NULL); // of any library
    const bool can_throw = catcher.begin != NULL && catcher.end != NULL &&
                           catcher.set_register != NULL && catcher.set_place != NULL;
    return can_throw ? hak_exceptions_catch_call(allocate, argument) : allocate(argument);
}

#endif
