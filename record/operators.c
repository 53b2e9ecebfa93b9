// operators.c -- C++'s new and delete, without C++.
//
// The C++ runtime's operators call malloc, which could record the call. Many allocators define
// operators of their own that do not call malloc. So the operators here stand in front of both, and a
// call is recorded once. An operator may throw bad_alloc through the frames here: they are compiled with
// -fexceptions, and leave by a cleanup. If malloc refuses the runtime's operator, that is recorded in
// malloc (hak_record_refused), before the throw. An allocator's own operator does not call malloc: its
// refusal is recorded when it is left, and with it the exception, which is a block, too.
#include <stdint.h>
#include <stdlib.h>

#include "next.h"
#include "recorder.h"
#include "within.h"

static void leave(const bool *has_entered)
{
    if (*has_entered) {
        hak_within_leave(NULL);
    }
}

// Enter, and leave again however the scope ends.
#define SCOPE_ENTER() bool has_entered __attribute__((cleanup(leave))) = hak_recorder_enter()

static bool is_in_new(bool has_entered)
{
    return has_entered && hak_recorder.state == RECORDER_IN_NEW;
}

static bool enter_new(size_t bytes, size_t alignment)
{
    const bool has_entered = hak_recorder_enter();
    if (has_entered) {
        hak_recorder.new_bytes = bytes;
        hak_recorder.inner = NULL;
        hak_recorder.new_alignment_log2 = alignment != 0 ? (uint8_t)__builtin_ctzll(alignment) : 0;
        hak_recorder.state = RECORDER_IN_NEW;
    }
    return has_entered;
}

void hak_record_refused(enum event_kind kind, size_t bytes, unsigned alignment_log2)
{
    struct recorder *self = &hak_recorder;
    if (self->state == RECORDER_IN_NEW) {
        self->state = RECORDER_BUSY;
        hak_record_long(kind, NULL, bytes, alignment_log2);
        hak_within_leave(NULL);
    }
}

// Record a refusal if the call is not recorded yet: then an exception has ended it.
static void leave_new(const bool *has_entered)
{
    if (!is_in_new(*has_entered)) {
        return;
    }
    struct recorder *self = &hak_recorder;
    const unsigned alignment_log2 = self->new_alignment_log2;
    self->state = RECORDER_BUSY;
    hak_record_long(
        alignment_log2 != 0 ? EVENT_ALIGNED : EVENT_MALLOC, NULL, self->new_bytes, alignment_log2);
    if (self->inner != NULL) {
        hak_record(EVENT_MALLOC, self->inner, self->inner_bytes);
    }
    self->inner = NULL;
    hak_recorder_leave();
}

// Look up the runtime's function, once. NULL when the program has no C++ runtime.
static void *find_once(_Atomic(uintptr_t) *found, const char *name)
{
    uintptr_t address = hak_load_relaxed(found);
    if (HAK_UNLIKELY(address == 0)) {
        address = (uintptr_t)hak_next_symbol(name);
        hak_store_relaxed(found, address);
    }
    return (void *)address;
}

static void note_alloc(bool has_entered, const void *block, size_t bytes, size_t alignment)
{
    if (!is_in_new(has_entered)) {
        return;
    }
    hak_recorder.state = RECORDER_BUSY;
    if (alignment != 0) {
        hak_record_long(EVENT_ALIGNED, block, bytes, (unsigned)__builtin_ctzll(alignment));
    } else {
        hak_record(EVENT_MALLOC, block, bytes);
    }
    hak_within_leave(block);
}

static void *alloc_without_runtime(size_t bytes, size_t alignment)
{
    return alignment > 16 ? aligned_alloc(alignment, bytes) : malloc(bytes);
}

// `parameters` and `arguments` are the operator's; `alignment` is one of them, or 0.
#define OPERATOR_NEW(name, parameters, arguments, alignment)                                      \
    HAK_EXPORT void *name parameters;                                                             \
    HAK_EXPORT void *name parameters                                                              \
    {                                                                                             \
        static _Atomic(uintptr_t) found;                                                          \
        const bool has_entered __attribute__((cleanup(leave_new))) = enter_new(bytes, alignment); \
        void *(*next)parameters;                                                                  \
        *(void **)(&next) = find_once(&found, #name);                                             \
        void *block = next != NULL ? next arguments : alloc_without_runtime(bytes, alignment);    \
        note_alloc(has_entered, block, bytes, alignment);                                         \
        return block;                                                                             \
    }

// delete of NULL does nothing and is not recorded, like free of NULL.
#define OPERATOR_DELETE(name, parameters, arguments)  \
    HAK_EXPORT void name parameters;                  \
    HAK_EXPORT void name parameters                   \
    {                                                 \
        static _Atomic(uintptr_t) found;              \
        if (block == NULL) {                          \
            return;                                   \
        }                                             \
        SCOPE_ENTER();                                \
        if (has_entered && !hak_within_ends(block)) { \
            hak_record(EVENT_FREE, block, 0);         \
        }                                             \
        void(*next) parameters;                       \
        *(void **)(&next) = find_once(&found, #name); \
        if (next != NULL) {                           \
            next arguments;                           \
        } else {                                      \
            free(block);                              \
        }                                             \
    }

// As the C++ ABI names them: w new, a new[]; l delete, a delete[]; m a size, St11align_val_t an
// alignment, RKSt9nothrow_t the promise not to throw.
OPERATOR_NEW(_Znwm, (size_t bytes), (bytes), 0)
OPERATOR_NEW(_Znam, (size_t bytes), (bytes), 0)
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, (size_t bytes, const void *tag), (bytes, tag), 0)
OPERATOR_NEW(_ZnamRKSt9nothrow_t, (size_t bytes, const void *tag), (bytes, tag), 0)
OPERATOR_NEW(_ZnwmSt11align_val_t, (size_t bytes, size_t align), (bytes, align), align)
OPERATOR_NEW(_ZnamSt11align_val_t, (size_t bytes, size_t align), (bytes, align), align)
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t,
             (size_t bytes, size_t align, const void *tag),
             (bytes, align, tag),
             align)
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t,
             (size_t bytes, size_t align, const void *tag),
             (bytes, align, tag),
             align)
OPERATOR_DELETE(_ZdlPv, (void *block), (block))
OPERATOR_DELETE(_ZdaPv, (void *block), (block))
OPERATOR_DELETE(_ZdlPvm, (void *block, size_t bytes), (block, bytes))
OPERATOR_DELETE(_ZdaPvm, (void *block, size_t bytes), (block, bytes))
OPERATOR_DELETE(_ZdlPvRKSt9nothrow_t, (void *block, const void *tag), (block, tag))
OPERATOR_DELETE(_ZdaPvRKSt9nothrow_t, (void *block, const void *tag), (block, tag))
OPERATOR_DELETE(_ZdlPvSt11align_val_t, (void *block, size_t align), (block, align))
OPERATOR_DELETE(_ZdaPvSt11align_val_t, (void *block, size_t align), (block, align))
OPERATOR_DELETE(_ZdlPvmSt11align_val_t,
                (void *block, size_t bytes, size_t align),
                (block, bytes, align))
OPERATOR_DELETE(_ZdaPvmSt11align_val_t,
                (void *block, size_t bytes, size_t align),
                (block, bytes, align))
OPERATOR_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t,
                (void *block, size_t align, const void *tag),
                (block, align, tag))
OPERATOR_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t,
                (void *block, size_t align, const void *tag),
                (block, align, tag))
