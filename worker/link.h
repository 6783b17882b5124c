/* The link between agent and runner: JSON lines over an inherited socketpair (descriptor in RUNG_LINK_FD),
 * each with trial and attempt. stdout and stderr of the runner are only logs.
 *
 * agent -> runner
 *   {"type":"sweep","train":{...},"data_files":{"path":"/...",...},"seed":"7","metric":"...",
 *    "maximize":true,"objective":"last"}
 *        once, before the first run; the data is loaded from those files, by the settings that name them
 *   {"type":"run","trial":3,"attempt":1,"parameters":{},"start":0,"until":9,"checkpoint":"/path or null",
 *    "save":"/path","final":{...} or null}
 *   {"type":"until","trial":3,"attempt":1,"until":27}
 *        a higher bound; a paused trial goes on with what is in memory
 *   {"type":"stop","trial":3,"attempt":1,"reason":"stopped|interrupted"}
 *        at the next epoch boundary; interrupted saves a checkpoint. A paused trial is dropped (stopped) or
 *        kept (interrupted) without an answer
 *
 * runner -> agent
 *   {"type":"idle","device":"cpu/avx512_core"}
 *        once, when the sweep is loaded; later an `ended` says the same
 *   {"type":"report","trial":3,"attempt":1,"resource":1,"metrics":{},"seconds":0.01,
 *    "details":{"derived":{}} with the first of an attempt}
 *   {"type":"ended","trial":3,"attempt":1,"outcome":"...","resource":9,"checkpoint":"/path or null",
 *    "error":"... or null","blame":"checkpoint|worker or null","device_failed":false,
 *    "details":{"derived":{},...}}
 *        outcome: finished, paused, stopped, interrupted, diverged, out_of_memory, invalid or crashed
 *        blame: with interrupted, the fault is not the trial's: the checkpoint it was to start from cannot be
 *        used, or this machine's disk failed
 *        device_failed: with crashed, the device can compute nothing more in this process, which ends itself
 *
 * The runner exits when the link closes. Lines are at most 16 MiB. */
#ifndef RUNG_WORKER_LINK_H
#define RUNG_WORKER_LINK_H

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <stddef.h>

#define LINK_FD_VARIABLE "RUNG_LINK_FD"
#define LINK_LINE_LIMIT (16u << 20)
#define BLAME_CHECKPOINT "checkpoint"
#define BLAME_WORKER "worker"

/* A buffered line reader over a non-blocking or blocking descriptor (not owned). */
struct link {
    int fd;
    struct text input;
    size_t parsed;   /* bytes of input already given out as messages */
    size_t searched; /* bytes of input known to hold no further newline */
    int send_timeout_ms;
};
void link_init(struct link *link, int fd);
void link_release(struct link *link);
/* 1: *message is a new object; 0: nothing whole yet (would block); -1: closed (ERROR_CONNECT) or malformed
 * (ERROR_PROTOCOL). On a blocking descriptor it waits for a whole line. */
int link_receive(struct link *link, json_t **message, struct error *err);
/* Writes the whole line, waiting for room at most send_timeout_ms (-1, the default: for ever); steals
 * nothing. */
int link_send(struct link *link, const json_t *message, struct error *err);

#endif
