/* The agent: one node's worker. It owns the slots and their runner children, talks to the coordinator,
 * buffers reports until they are acknowledged, fetches and uploads blobs, and never fences itself. No GPU
 * context, never blocks. */
#ifndef RUNG_WORKER_AGENT_H
#define RUNG_WORKER_AGENT_H

#include "base/error.h"
#include "base/log.h"
#include "wire/security.h"

#include <stdbool.h>
#include <stdint.h>

struct agent_settings {
    const char *endpoint;            /* tcp://host:port or ipc://... */
    const char *name;                /* worker name; NULL: host name and pid */
    const char *devices;             /* as in devices.h; NULL: auto */
    const char *folder;              /* --dir; NULL: the cache folder */
    const char *program;             /* path of this binary, to start `rung runner` */
    const struct security *security; /* NULL: insecure or ipc */
    double wait_seconds;             /* 60: for the first connection */
    double reconnect_seconds;        /* 3600 */
    double stop_seconds;             /* from the wish to stop until it leaves, at most; 0: 25 */
    bool stay;
    const struct log *log;
};

struct agent;
struct agent *agent_create(const struct agent_settings *settings, struct error *err);
/* Until the sweep has ended (0), was interrupted (1), or failed (-1: ERROR_CONNECT refused or unreachable).
 */
int agent_run(struct agent *agent, struct error *err);
/* Async-signal-safe: 1 = checkpoint and hand back (25 s at most), 2 = kill the children and go. */
void agent_request_stop(struct agent *agent, int level);
void agent_destroy(struct agent *agent);

#endif
