// exceptions.c -- see exceptions.h.
//
// What the Itanium C++ ABI (exception handling, levels I and II) asks of a compiler is written out
// here for two cases. All that it needs comes from the program's own C++ library, through weak
// references: C programs do not load one, and have nothing that throws.
#include "front/exceptions.h"

#ifndef HAK_NO_OVERRIDE

#    include <stdbool.h>
#    include <stddef.h>
#    include <stdint.h>
#    include <unwind.h>

extern void *allocate_exception(size_t bytes) __asm__("__cxa_allocate_exception")
    __attribute__((weak));
extern void throw_exception(void *exception,
                            const void *type,
                            void (*end)(void *)) __asm__("__cxa_throw") __attribute__((weak));
extern void *begin_catch(void *exception) __asm__("__cxa_begin_catch") __attribute__((weak));
extern void end_catch(void) __asm__("__cxa_end_catch") __attribute__((weak));
extern __typeof__(_Unwind_SetGR) _Unwind_SetGR __attribute__((weak));
extern __typeof__(_Unwind_SetIP) _Unwind_SetIP __attribute__((weak));

// std::bad_alloc: its type, its virtual functions and its destructor.
extern const char bad_alloc_type[] __asm__("_ZTISt9bad_alloc") __attribute__((weak));
extern const void *const bad_alloc_virtual[] __asm__("_ZTVSt9bad_alloc") __attribute__((weak));
extern void bad_alloc_end(void *exception) __asm__("_ZNSt9bad_allocD1Ev") __attribute__((weak));

void hak_throw_bad_alloc(void)
{
    if (allocate_exception == NULL || throw_exception == NULL || bad_alloc_type == NULL ||
        bad_alloc_virtual == NULL || bad_alloc_end == NULL) {
        return;
    }
    const void **exception = allocate_exception(sizeof *exception);
    *exception = &bad_alloc_virtual[2]; // behind the offset to the top and the type
    throw_exception(exception, bad_alloc_type, bad_alloc_end);
}

// The call, and where the unwinder comes back to with what was thrown in its first register for
// data. The instructions behind the call look as those of a compiler's catch (...).
HAK_INTERNAL void *hak_catch_call(void *(*allocate)(const void *argument), const void *argument);
HAK_INTERNAL extern const char hak_catch_landing[];
HAK_INTERNAL void hak_catch_end(void *exception);
HAK_INTERNAL _Unwind_Reason_Code hak_catch_personality(int version,
                                                       _Unwind_Action actions,
                                                       _Unwind_Exception_Class class,
                                                       struct _Unwind_Exception *exception,
                                                       struct _Unwind_Context *context);

#    if defined(__x86_64__)
__asm__(".text\n"
        ".hidden hak_catch_call\n"
        ".globl hak_catch_call\n"
        ".type hak_catch_call, @function\n"
        "hak_catch_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, hak_catch_personality\n" // relative to the place, in 4 bytes
        "subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "movq %rdi, %rax\n"
        "movq %rsi, %rdi\n"
        "callq *%rax\n"
        "jmp 1f\n"
        ".hidden hak_catch_landing\n"
        ".globl hak_catch_landing\n"
        "hak_catch_landing:\n"
        "endbr64\n"
        "movq %rax, %rdi\n"
        "callq hak_catch_end\n"
        "xorl %eax, %eax\n"
        "1:\n"
        "addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "retq\n"
        ".cfi_endproc\n"
        ".size hak_catch_call, . - hak_catch_call\n");
#    elif defined(__aarch64__)
__asm__(".text\n"
        ".hidden hak_catch_call\n"
        ".globl hak_catch_call\n"
        ".type hak_catch_call, %function\n"
        "hak_catch_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, hak_catch_personality\n"
        "stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset 29, -16\n"
        ".cfi_offset 30, -8\n"
        "mov x2, x0\n"
        "mov x0, x1\n"
        "blr x2\n"
        "b 1f\n"
        ".hidden hak_catch_landing\n"
        ".globl hak_catch_landing\n"
        "hak_catch_landing:\n"
        "hint #36\n" // bti j
        "bl hak_catch_end\n"
        "mov x0, #0\n"
        "1:\n"
        "ldp x29, x30, [sp], #16\n"
        ".cfi_def_cfa_offset 0\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size hak_catch_call, . - hak_catch_call\n");
#    endif

void hak_catch_end(void *exception)
{
    begin_catch(exception);
    end_catch();
}

// What the unwinder asks of a frame: here every exception is caught. What is not an exception
// (pthread_exit, pthread_cancel) goes on.
_Unwind_Reason_Code hak_catch_personality(int version,
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
    _Unwind_SetGR(context, __builtin_eh_return_data_regno(0), (uintptr_t)exception);
    _Unwind_SetIP(context, (uintptr_t)hak_catch_landing);
    return _URC_INSTALL_CONTEXT;
}

void *hak_catch(void *(*allocate)(const void *argument), const void *argument)
{
    const bool can_throw =
        begin_catch != NULL && end_catch != NULL && _Unwind_SetGR != NULL && _Unwind_SetIP != NULL;
    return can_throw ? hak_catch_call(allocate, argument) : allocate(argument);
}

#endif
