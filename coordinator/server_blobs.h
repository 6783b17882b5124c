/* The blob server: a thread with sockets of its own that sends and takes blobs, so that a large upload or a
 * slow disk never holds up the engine. One socket beside each address of the coordinator. */
#ifndef RUNG_COORDINATOR_SERVER_BLOBS_H
#define RUNG_COORDINATOR_SERVER_BLOBS_H

#include "coordinator/blobs.h"
#include "wire/socket.h"

#include <stddef.h>

struct blob_server;
/* Binds one socket beside each of `addresses` (the bound ones: "tcp://host:port" gets the next port if it is
 * free, else any; "ipc://path" gets "ipc://path-blobs") and starts the thread. `blobs`, `bus` and `log` are
 * borrowed. */
struct blob_server *blob_server_create(struct bus *bus, const struct blobs *blobs,
                                       const char *const *addresses, size_t count, const struct log *log,
                                       struct error *err);
void blob_server_destroy(struct blob_server *server); /* NULL-safe; ends the thread */
/* Puts into a welcome where blobs are for who came by socket `index`. -1: no memory. */
int blob_server_describe(const struct blob_server *server, size_t index, struct message *welcome);
/* An `ended` has named this blob: the engine knows it now, and says when it is not needed. */
void blob_server_named(struct blob_server *server, const char *sha256);
/* Deletes a blob, unless somebody else is sending the same, or was told that it is stored and has not named
 * it yet. */
void blob_server_delete(struct blob_server *server, const char *sha256);

#endif
