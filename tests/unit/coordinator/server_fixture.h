/* A server in a thread, and a worker written by hand: one DEALER that says what the test tells it to. */
#ifndef RUNG_TESTS_SERVER_FIXTURE_H
#define RUNG_TESTS_SERVER_FIXTURE_H

#include "coordinator/server.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct server_fixture {
    char folder[64];
    char db[96], address[96]; /* ipc */
    struct spec spec;
    struct server_settings settings;
    struct data_file data_files[4];
    const char *binds[3];
    struct log log;

    struct server *server;
    pthread_t thread;
    bool running;
    int result; /* of server_run */
    struct error run_error;

    struct bus *bus;
    struct endpoint *worker;
};

/* A zeroed fixture in an existing folder. */
int server_fixture_init(struct server_fixture *fixture, const char *folder);
int server_fixture_setup(void **state); /* in a new folder */
int server_fixture_teardown(void **state);

/* A spec of `trials` random trials of one epoch. Replaces the fixture's spec. */
void spec_make(struct server_fixture *fixture, const char *name, int trials, int epochs);
/* The sweep's data is this file; borrowed. */
void data_is(struct server_fixture *fixture, const char *path);
void spec_take(struct server_fixture *fixture, const char *text); /* or any other */
/* Creates the server with the fixture's settings and runs it in its thread; fails the test on an error. */
void server_start(struct server_fixture *fixture);
/* Tries to create one, which must fail; returns the error. */
struct error server_refused(struct server_fixture *fixture);
/* Waits for the thread and returns what server_run gave. The server still exists. */
int server_join(struct server_fixture *fixture);
void server_end(struct server_fixture *fixture); /* joins and destroys */

/* Connects a new worker (leaving the old connection, if any). */
void worker_connect(struct server_fixture *fixture, const char *address);
void worker_say(struct server_fixture *fixture, const struct message *message);
void say_hello(struct server_fixture *fixture, const struct running_attempt *running, size_t count);
void say_ready(struct server_fixture *fixture);
void say_heartbeat(struct server_fixture *fixture, const struct running_attempt *running, size_t count);
void say_report(struct server_fixture *fixture, int64_t trial, int64_t attempt, int64_t sequence,
                int64_t resource, double accuracy);
void say_ended(struct server_fixture *fixture, int64_t trial, int64_t attempt, int64_t sequence,
               enum outcome outcome, int64_t resource);
void say(struct server_fixture *fixture, enum message_type type);
/* Waits for the next message, which must be of this type; release it. */
void hear(struct server_fixture *fixture, enum message_type type, struct message *message);
void hear_and_forget(struct server_fixture *fixture, enum message_type type);
/* Nothing comes for so long. */
void hear_nothing(struct server_fixture *fixture, int milliseconds);
/* ready, and the assignment that comes; returns the trial. */
int64_t begin_trial(struct server_fixture *fixture);
/* Reports and ends a trial of one epoch; both acknowledged. */
void finish_trial(struct server_fixture *fixture, int64_t trial, int64_t attempt, int64_t sequence);

/* Connects by ipc; hello and welcome. */
void join_sweep(struct server_fixture *fixture);
/* Does all trials from `first` to `last`, which is the sweep's last, and leaves when told; server_run gives
 * 0. */
void run_to_the_end(struct server_fixture *fixture, int64_t first, int64_t last);

#endif
