/* Signals that ask to stop, from the first line of a command to its last. */
#include "cli/interrupt.h"

#include "cli/command.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/* A handler reaches nothing else. Changed only while the signals are blocked. */
static volatile sig_atomic_t count, holds;
static void (*volatile stop)(void *object, int level);
static void *volatile stopped;

static void on_signal(int number)
{
    (void)number;
    int reason = errno;
    count = count < 2 ? count + 1 : 2;
    if (stop)
        stop(stopped, count);
    else if (!holds || count > 1)
        _exit(EXIT_INTERRUPTED);
    errno = reason;
}

static void change(bool hold, void (*stop_f)(void *object, int level), void *object)
{
    sigset_t ours, before;
    sigemptyset(&ours);
    for (size_t i = 0; i < NUMBERS; i++)
        sigaddset(&ours, numbers[i]);
    sigprocmask(SIG_BLOCK, &ours, &before);
    stop = stop_f;
    stopped = object;
    holds = hold;
    if (stop && count > 0)
        stop(stopped, count);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void interrupt_begin(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < NUMBERS; i++)
        sigaddset(&action.sa_mask, numbers[i]);
    for (size_t i = 0; i < NUMBERS; i++)
        sigaction(numbers[i], &action, NULL);
}

void interrupt_hold(void)
{
    change(true, NULL, NULL);
}

void interrupt_pass(void (*stop_f)(void *object, int level), void *object)
{
    change(true, stop_f, object);
}

int interrupt_count(void)
{
    return count;
}
