#include "fiber.h"

#include <cstdint>
#include <cstdlib>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "sanitizers.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace emulated
{
/* A kernel's own frames are small; the sanitizers blow them up. */
constexpr size_t STACK_BYTES = EMULATED_ASAN || EMULATED_TSAN ? 256 << 10 : 64 << 10;

struct fiber {
    void *stack_pointer;
    char *mapping; /* NULL: a thread's own stack */
    char *bottom;  /* above the guard page */
    size_t size;
    void (*entry)();
    unsigned number;
    void *fake_stack, *tsan;
#if !defined(__x86_64__) && !defined(__aarch64__)
    ucontext_t context;
#endif
};

static thread_local fiber *current, *previous;

/* Saves what a callee must preserve on the old stack, and pops it from the new one. */
extern "C" void emulated_stack_switch(void **save, void *load);

#if defined(__x86_64__)
asm(".text\n"
    ".p2align 4\n"
    ".globl emulated_stack_switch\n"
    ".hidden emulated_stack_switch\n"
    ".type emulated_stack_switch,@function\n"
    "emulated_stack_switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size emulated_stack_switch,.-emulated_stack_switch\n");
constexpr size_t RETURN_WORD = 6, FRAME_WORDS = 8; /* one word of alignment */
#elif defined(__aarch64__)
asm(".text\n"
    ".p2align 4\n"
    ".globl emulated_stack_switch\n"
    ".hidden emulated_stack_switch\n"
    ".type emulated_stack_switch,%function\n"
    "emulated_stack_switch:\n"
    "    sub sp, sp, #160\n"
    "    stp x19, x20, [sp, #0]\n"
    "    stp x21, x22, [sp, #16]\n"
    "    stp x23, x24, [sp, #32]\n"
    "    stp x25, x26, [sp, #48]\n"
    "    stp x27, x28, [sp, #64]\n"
    "    stp x29, x30, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n"
    "    stp d10, d11, [sp, #112]\n"
    "    stp d12, d13, [sp, #128]\n"
    "    stp d14, d15, [sp, #144]\n"
    "    mov x9, sp\n"
    "    str x9, [x0]\n"
    "    mov sp, x1\n"
    "    ldp x19, x20, [sp, #0]\n"
    "    ldp x21, x22, [sp, #16]\n"
    "    ldp x23, x24, [sp, #32]\n"
    "    ldp x25, x26, [sp, #48]\n"
    "    ldp x27, x28, [sp, #64]\n"
    "    ldp x29, x30, [sp, #80]\n"
    "    ldp d8, d9, [sp, #96]\n"
    "    ldp d10, d11, [sp, #112]\n"
    "    ldp d12, d13, [sp, #128]\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    add sp, sp, #160\n"
    "    ret\n"
    ".size emulated_stack_switch,.-emulated_stack_switch\n");
constexpr size_t RETURN_WORD = 11, FRAME_WORDS = 20; /* x30; 160 bytes */
#endif

/* The first thing on a new stack. */
static void fiber_begin()
{
#if EMULATED_ASAN
    const void *bottom;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &previous->size);
    previous->bottom = (char *)bottom;
#endif
    current->entry();
    abort(); /* an entry never returns */
}

fiber *fiber_of_thread()
{
    static thread_local fiber own;
    if (!current) {
        current = &own;
#if EMULATED_TSAN
        own.tsan = __tsan_get_current_fiber();
#endif
    }
    return &own;
}

fiber *fiber_current()
{
    return current;
}

void fiber_restart(fiber *which)
{
#if EMULATED_ASAN
    __asan_unpoison_memory_region(which->bottom, which->size);
#endif
    char *top = which->bottom + which->size - which->number % 64 * 128;
#if defined(__x86_64__) || defined(__aarch64__)
    void **frame = (void **)(top - FRAME_WORDS * sizeof(void *));
    for (size_t i = 0; i < FRAME_WORDS; i++)
        frame[i] = nullptr;
    frame[RETURN_WORD] = (void *)fiber_begin;
    which->stack_pointer = frame;
#else
    getcontext(&which->context);
    which->context.uc_stack.ss_sp = which->bottom;
    which->context.uc_stack.ss_size = (size_t)(top - which->bottom);
    makecontext(&which->context, fiber_begin, 0);
#endif
    which->fake_stack = nullptr;
#if EMULATED_TSAN
    if (which->tsan)
        __tsan_destroy_fiber(which->tsan);
    which->tsan = __tsan_create_fiber(0);
#endif
}

fiber *fiber_create(void (*entry)(), unsigned number)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *mapping = mmap(nullptr, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        return nullptr;
    mprotect(mapping, page, PROT_NONE); /* a kernel that recurses too deeply faults */
    fiber *created = new fiber();
    created->mapping = (char *)mapping;
    created->bottom = created->mapping + page;
    created->size = STACK_BYTES;
    created->entry = entry;
    created->number = number;
    fiber_restart(created);
    return created;
}

void fiber_destroy(fiber *which)
{
    if (!which)
        return;
#if EMULATED_TSAN
    __tsan_destroy_fiber(which->tsan);
#endif
    munmap(which->mapping, (size_t)(which->bottom - which->mapping) + which->size);
    delete which;
}

/* Not inlined: a fiber may go on in another OS thread than it left, whose thread-local variables lie
 * elsewhere. */
__attribute__((noinline)) static void arrived(fiber *here)
{
#if EMULATED_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(here->fake_stack, &bottom, &size);
    if (!previous->mapping) {
        previous->bottom = (char *)bottom;
        previous->size = size;
    }
#else
    (void)here;
#endif
}

void fiber_switch(fiber *to)
{
    fiber *from = current;
    previous = from;
    current = to;
#if EMULATED_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->size);
#endif
#if EMULATED_TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    emulated_stack_switch(&from->stack_pointer, to->stack_pointer);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrived(from);
}
} // namespace emulated
