/* A coordinator played by the test: real sockets, scripted answers. It keeps blobs in memory and serves them
 * while it waits for messages. Everything fails the running test when it does not happen within a few
 * seconds. */
#ifndef RUNG_TESTS_FAKE_COORDINATOR_H
#define RUNG_TESTS_FAKE_COORDINATOR_H

#include "base/files.h"
#include "wire/socket.h"

#include <sys/types.h>

#define FAKE_BLOBS 64

struct fake_blob {
    char sha256[SHA256_TEXT];
    char *bytes;
    int64_t size, capacity;
};

struct fake_coordinator {
    char folder[64]; /* private; gone at the end */
    char address[96], blob_address[96];
    struct bus *bus;
    struct endpoint *endpoint, *blob_endpoint;
    struct peer peer; /* of the newest message */
    pid_t worker;
    int worker_stderr;
    const char *sweep; /* id in the next welcome */
    bool lose_blobs;   /* blob requests are not answered */
    int puts;          /* put messages seen */
    struct fake_blob blobs[FAKE_BLOBS];
    int blob_count;
};

/* cmocka's setup and teardown of a fresh one; the worker must be gone, or is killed. */
int coordinator_setup(void **state);
int coordinator_teardown(void **state);

/* Starts a fake_worker against it; `options` NULL-terminated, may be NULL. */
void coordinator_start_worker(struct fake_coordinator *coordinator, const char *devices,
                              const char *const *options);
/* Its exit code (128 + signal if killed); `text` (1000 bytes, may be NULL) is what it printed. */
int coordinator_await_worker(struct fake_coordinator *coordinator, char *text);
/* The network and the coordinator go away, and come back. */
void coordinator_vanish(struct fake_coordinator *coordinator);
void coordinator_return(struct fake_coordinator *coordinator);

/* The next message that is no heartbeat; fails unless it is of `type`. Release it. */
void coordinator_expect(struct fake_coordinator *coordinator, enum message_type type,
                        struct message *message);
/* The same, released at once. */
void coordinator_expect_only(struct fake_coordinator *coordinator, enum message_type type);
void coordinator_expect_heartbeat(struct fake_coordinator *coordinator, struct message *message);
/* The next hello; whatever comes before is of a session this coordinator does not know, and is answered so.
 */
void coordinator_await_hello(struct fake_coordinator *coordinator, struct message *message);
/* Nothing but heartbeats and blob traffic for that long. */
void coordinator_expect_silence(struct fake_coordinator *coordinator, int milliseconds);

void coordinator_send(struct fake_coordinator *coordinator, const struct message *message);
/* hello, welcome, and `slots` times ready. */
void coordinator_join(struct fake_coordinator *coordinator, int slots);
void coordinator_welcome(struct fake_coordinator *coordinator);
/* parameters: JSON text; checkpoint may be NULL. */
void coordinator_assign(struct fake_coordinator *coordinator, int slot, int64_t trial, int64_t attempt,
                        const char *parameters, int64_t start, int64_t until, const char *checkpoint);
void coordinator_acknowledge(struct fake_coordinator *coordinator, int64_t trial, int64_t attempt,
                             int64_t sequence, enum action action, int64_t until);
void coordinator_drain(struct fake_coordinator *coordinator, bool now);
void coordinator_error(struct fake_coordinator *coordinator, const char *code);
/* Reports `first`..`last` of an attempt arrive, in order, numbered alike. */
void coordinator_expect_reports(struct fake_coordinator *coordinator, int64_t trial, int64_t attempt,
                                int64_t first, int64_t last);
/* `ended` with this sequence and outcome; acknowledged. `checkpoint` (SHA256_TEXT bytes, may be NULL): what
 * it names. */
void coordinator_expect_ended(struct fake_coordinator *coordinator, int64_t trial, int64_t attempt,
                              int64_t sequence, enum outcome outcome, char *checkpoint);
/* Bytes of a stored blob as text, or NULL. */
const char *coordinator_blob(const struct fake_coordinator *coordinator, const char *sha256);

#endif
