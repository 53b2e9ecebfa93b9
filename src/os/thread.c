// thread.c -- a thread that the C library does not know of.
//
// Why not pthread_create: it takes locks of the C library, which the thread that
// is inside free() may hold already (thread exit frees under the stack-cache
// lock); and it switches the C library from its single-threaded fast paths to
// atomic ones for the rest of the program's life. Our helper needs neither: it
// runs a few functions of ours and ends.
#include <asm/unistd.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#include "os/os.h"
#include "os/syscall.h"

#if HAK_TSAN // its runtime needs to know every thread that runs instrumented code
#    include <pthread.h>

static void *run_work(void *work)
{
    ((void (*)(void))(uintptr_t)work)();
    return NULL;
}

bool hak_os_start_thread(void (*work)(void))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_work, (void *)(uintptr_t)work) != 0) {
        return false;
    }
    pthread_detach(thread);
    return true;
}
#else

// Deepest use measured is under 2 KiB; the rest is room for debug builds.
enum { STACK_BYTES = 64 * 1024, THREAD_BLOCK_BYTES = 4096 };

#    define CLONE_LIKE_A_THREAD                                                             \
        (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
         CLONE_SETTLS)

// The stack is one mapping that ends itself: the last thing the thread does is to
// unmap the memory it stands on and exit, in code that uses no stack.
#    if defined(__x86_64__)
static long clone_thread(void *stack_top, void *thread_block)
{
    register void *r8 __asm__("r8") = thread_block;
    register void *r10 __asm__("r10") = NULL;
    long result;
    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xorl %%ebp, %%ebp\n\t"
                     "popq %%rax\n\t" // the work
                     "callq *%%rax\n\t"
                     "popq %%rdi\n\t" // start and length of the stack
                     "popq %%rsi\n\t"
                     "movl %[unmap], %%eax\n\t"
                     "syscall\n\t"
                     "movl %[exit], %%eax\n\t"
                     "xorl %%edi, %%edi\n\t"
                     "syscall\n\t"
                     "hlt\n\t"
                     "1:"
                     : "=a"(result)
                     : "a"((long)__NR_clone),
                       "D"((long)CLONE_LIKE_A_THREAD),
                       "S"(stack_top),
                       "d"(NULL),
                       "r"(r10),
                       "r"(r8),
                       [unmap] "i"(__NR_munmap),
                       [exit] "i"(__NR_exit)
                     : "rcx", "r11", "memory");
    return result;
}
#    elif defined(__aarch64__)
static long clone_thread(void *stack_top, void *thread_block)
{
    register long x8 __asm__("x8") = __NR_clone;
    register long x0 __asm__("x0") = CLONE_LIKE_A_THREAD;
    register void *x1 __asm__("x1") = stack_top;
    register void *x2 __asm__("x2") = NULL;
    register void *x3 __asm__("x3") = thread_block;
    register void *x4 __asm__("x4") = NULL;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "ldr x9, [sp], #16\n\t" // the work
                     "blr x9\n\t"
                     "ldp x0, x1, [sp]\n\t" // start and length of the stack
                     "mov x8, %[unmap]\n\t"
                     "svc 0\n\t"
                     "mov x8, %[exit]\n\t"
                     "mov x0, #0\n\t"
                     "svc 0\n\t"
                     "brk #0\n\t"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8),
                       "r"(x1),
                       "r"(x2),
                       "r"(x3),
                       "r"(x4),
                       [unmap] "i"(__NR_munmap),
                       [exit] "i"(__NR_exit)
                     : "x9", "x30", "memory");
    return x0;
}
#    endif

bool hak_os_start_thread(void (*work)(void))
{
    char *stack = hak_os_map(STACK_BYTES);
    if (stack == NULL) {
        return false;
    }
    // The thread register must point at something: compilers read a stack canary
    // through it (x86-64: %fs:0x28) and the C library a pointer to itself (%fs:0). In front of it (aarch64) or
    // behind, the dynamic linker looks at its struct pthread, 2 KiB, when a call of ours is bound only now.
    hak_os_note_helper(stack, STACK_BYTES);
    void **thread_block = (void **)(void *)(stack + THREAD_BLOCK_BYTES);
    thread_block[0] = thread_block;
    void **top = (void **)(void *)(stack + STACK_BYTES) - 4; // 16-byte aligned before the call
#    if defined(__x86_64__)
    top -= 1; // the work is popped first, which aligns the stack
    top[0] = (void *)(uintptr_t)work;
    top[1] = stack;
    top[2] = (void *)(uintptr_t)STACK_BYTES;
#    else
    top[0] = (void *)(uintptr_t)work;
    top[2] = stack;
    top[3] = (void *)(uintptr_t)STACK_BYTES;
#    endif
    uint64_t all = ~UINT64_C(0);
    uint64_t before = 0;
    // A thread that takes signals would run the program's handlers without the C library's thread block.
    bool is_started =
        hak_syscall(
            __NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0) == 0;
    if (is_started) {
        is_started = clone_thread(top, thread_block) > 0;
        // It fails for a bad address or an unknown request only, and then the call before failed as well.
        HAK_UNHEEDED(
            hak_syscall(__NR_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0));
    }
    if (!is_started) {
        hak_os_discard(stack, STACK_BYTES);
    }
    return is_started;
}
#endif
