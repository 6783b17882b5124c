/* Blobs that nobody names: uploaded by a worker that died, or left by a coordinator that died between a
 * commit and the deletions it allowed, or sent for a trial that was stopped meanwhile. Found when a
 * coordinator starts, every ten minutes, and when the sweep has ended; removed when nobody can be about to
 * name them. */
#ifndef RUNG_COORDINATOR_SERVER_LEFTOVERS_H
#define RUNG_COORDINATOR_SERVER_LEFTOVERS_H

#include "base/error.h"
#include "base/files.h"

#include <stddef.h>
#include <stdint.h>

struct server;

struct leftovers {
    char (*names)[SHA256_TEXT];
    size_t count, capacity;
    int64_t due_ns;
    int64_t next_ns; /* when to search again */
};

/* Deletes the blobs that the effects hold, unless something else names them too: sweeps that do the same make
 * the same checkpoints. Call it behind the commit. */
void server_unneeded_delete(struct server *server);

/* Lists what no trial of the database names and is no sweep's data. Removes it at once when no attempt runs.
 */
int server_leftovers_find(struct server *server, struct error *err);
/* Removes those that still are not named, when it is time: a worker that was told "stored" by the coordinator
 * before names its blob as soon as it is back. */
int server_leftovers_remove(struct server *server, struct error *err);
/* The sweep has ended: only what is named stays. Ends the blob server. */
void server_leftovers_end(struct server *server);
void leftovers_release(struct leftovers *leftovers);

#endif
