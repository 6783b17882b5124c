/* The worker's side of the bench: a process that answers every assignment at once, and what passes between it
 * and its parent through pipes. */
#ifndef RUNG_TESTS_SCHEDULER_WORKER_H
#define RUNG_TESTS_SCHEDULER_WORKER_H

#include "base/error.h"
#include "wire/security.h"

#include <stddef.h>
#include <stdint.h>

/* What a worker process must know to begin. */
struct invitation {
    char address[128];
    char server_key[KEY_SIZE];
};

/* What it tells the parent; `count` latencies (int64_t, ns) follow. */
struct outcome_of_worker {
    int64_t first_ns, last_ns, count;
};

struct worker_settings {
    long trials, slots;
    const struct security *security;
    int invitation_fd, outcome_fd;
};

/* Returns the process's exit code. */
int worker_main(const struct worker_settings *settings);

/* Prints what failed, with err's text or errno's; returns -1. */
int fail(const char *what, const struct error *err);
int write_all(int fd, const void *bytes, size_t size);
int read_all(int fd, void *bytes, size_t size);

#endif
