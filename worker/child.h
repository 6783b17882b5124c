/* A runner process as the agent sees it: a process group of its own, a link (socketpair), and the end of what
 * it printed. It dies with the agent, however the agent dies: PDEATHSIG, and the link closes. */
#ifndef RUNG_WORKER_CHILD_H
#define RUNG_WORKER_CHILD_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CHILD_LOG_SIZE (64 << 10) /* bytes kept of stdout and stderr together: the end of them */

struct child {
    pid_t pid;   /* 0: none */
    int link_fd; /* our end, non-blocking; -1: none */
    int log_fd;  /* what it prints, non-blocking; -1: none or closed */
    bool killed; /* by us */
    char *log;   /* ring of CHILD_LOG_SIZE bytes */
    size_t log_total;
};

void child_init(struct child *child);
/* Starts argv[0] (a path) with one thread for every numerical library. PDEATHSIG follows the calling thread.
 */
int child_start(struct child *child, const char *const *argv, struct error *err);
/* Takes in what it printed; call when log_fd is readable. */
void child_read_log(struct child *child);
/* Forgets what was printed so far. */
void child_clear_log(struct child *child);
/* At most `limit` last bytes printed, as UTF-8, without trailing blanks. free() it; NULL: no memory. */
char *child_log_end(const struct child *child, size_t limit);
/* SIGKILL to the whole group. */
void child_kill(struct child *child);
/* Whether it has ended (then *status is as of waitpid and pid is 0; what it wrote can still be read). Never
 * waits. */
bool child_has_ended(struct child *child, int *status);
/* Takes in the rest of the log and closes the descriptors: the child may be started again. */
void child_close(struct child *child);
/* Kills it, waits for it, frees everything. */
void child_release(struct child *child);

#endif
