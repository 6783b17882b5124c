#include "fault_signal.h"

#include <csignal>
#include <cstdlib>

#include "sanitizers.h"

namespace emulated
{
constexpr bool WATCHES = !EMULATED_ASAN && !EMULATED_TSAN;
static const int watched_signals[] = {SIGSEGV, SIGBUS, SIGFPE};
static struct sigaction before[3];
static thread_local bool watching;
static const void *touched;

static void on_fault(int signal, siginfo_t *info, void *)
{
    if (watching) {
        touched = signal == SIGFPE ? nullptr : info->si_addr;
        kernel_fault(); /* abandons this stack */
    }
    /* Not the kernel's: as if nobody watched. The instruction runs again. */
    for (int i = 0; i < 3; i++)
        sigaction(watched_signals[i], &before[i], nullptr);
}

/* A handler needs a stack of its own where a kernel has run out of its. */
static void signal_stack_prepare()
{
    static thread_local bool prepared;
    if (prepared)
        return;
    prepared = true;
    stack_t stack = {}, old;
    if (sigaltstack(nullptr, &old) == 0 && !(old.ss_flags & SS_DISABLE))
        return;
    constexpr size_t BYTES = 64 << 10;
    stack.ss_sp = malloc(BYTES);
    stack.ss_size = BYTES;
    sigaltstack(&stack, nullptr);
}

/* They stay; only where somebody else has taken the signals since, they are taken again. */
static void handlers_install()
{
    struct sigaction action = {}, now;
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
        return;
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 3; i++)
        sigaction(watched_signals[i], &action, &before[i]);
}

void fault_watch_begin()
{
    if (!WATCHES)
        return;
    signal_stack_prepare();
    handlers_install();
    watching = true;
}

void fault_watch_end()
{
    watching = false;
}

const void *fault_address()
{
    return touched;
}
} // namespace emulated
