/* SIGINT, SIGTERM and SIGHUP in commands that serve or train: once means hand back and go, twice means go.
 * From the first call to the end of the process none is lost and none ends it by the system's default action:
 *
 *   interrupt_begin   ends the process at once with 130: nothing is at stake yet
 *   interrupt_hold    remembered
 *   interrupt_pass    handed on, what was remembered first
 *   interrupt_hold    the work is over: one more changes nothing
 *
 * While nobody is there to hand it to, the second ends the process with 130. Process-wide, as signals are. */
#ifndef RUNG_CLI_INTERRUPT_H
#define RUNG_CLI_INTERRUPT_H

void interrupt_begin(void);
void interrupt_hold(void);
/* stop_f runs in a signal handler. level 1: once, 2: more often. */
void interrupt_pass(void (*stop_f)(void *object, int level), void *object);
int interrupt_count(void); /* 2: twice or more */

#endif
