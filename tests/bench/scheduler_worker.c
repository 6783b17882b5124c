/* A synthetic worker: one report and an `ended` for every assignment, in the same breath. */
#include "tests/bench/scheduler_worker.h"

#include "base/clock.h"
#include "base/files.h"
#include "wire/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fail(const char *what, const struct error *err)
{
    fprintf(stderr, "bench_scheduler: %s: %s\n", what, err ? err->message : strerror(errno));
    return -1;
}

int write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t count = write(fd, at, size);
        if (count <= 0) {
            return -1;
        }
        at += count;
        size -= (size_t)count;
    }
    return 0;
}

int read_all(int fd, void *bytes, size_t size)
{
    char *at = bytes;
    while (size > 0) {
        ssize_t count = read(fd, at, size);
        if (count <= 0) {
            return -1;
        }
        at += count;
        size -= (size_t)count;
    }
    return 0;
}

struct worker {
    struct endpoint *endpoint;
    long slots;
    int64_t *ready_ns;      /* by slot */
    int64_t *slot_of_trial; /* by trial number */
    int64_t *latencies;     /* ns */
    struct outcome_of_worker outcome;
    bool drained;
};

static int say(struct worker *worker, const struct message *message)
{
    struct error err = {0};
    return endpoint_send(worker->endpoint, NULL, message, &err) ? fail("send", &err) : 0;
}

static int say_hello(struct worker *worker)
{
    struct device_description device = {.id = "cpu:0", .kind = "cpu"};
    struct message message;
    char name[32], session[SESSION_SIZE];
    snprintf(name, sizeof name, "worker-%d", (int)getpid());
    random_hex(session, 8);
    message_init(&message, MESSAGE_HELLO);
    message.protocol = PROTOCOL_VERSION;
    message.worker = name;
    message.session = session;
    message.devices = &device;
    message.device_count = 1;
    return say(worker, &message);
}

static int say_ready(struct worker *worker, int64_t slot)
{
    struct message message;
    message_init(&message, MESSAGE_READY);
    message.slot = slot;
    message.lanes = 1;
    worker->ready_ns[slot] = clock_now().monotonic_ns;
    return say(worker, &message);
}

static int run_trial(struct worker *worker, const struct assignment *assignment)
{
    double accuracy = json_get_number(assignment->parameters, "learning_rate", 0);
    struct reported report = {
        .resource = 1, .metrics = json_pack("{s:f}", "accuracy", accuracy), .seconds = 1e-3};
    struct message message;
    message_init(&message, MESSAGE_REPORT);
    message.trial = assignment->trial;
    message.attempt = assignment->attempt;
    message.sequence = 1;
    message.reports = &report;
    message.report_count = 1;
    message.device = "cpu/bench";
    int result = say(worker, &message);
    json_decref(report.metrics);
    message_init(&message, MESSAGE_ENDED);
    message.trial = assignment->trial;
    message.attempt = assignment->attempt;
    message.sequence = 2;
    message.outcome = OUTCOME_FINISHED;
    message.resource = 1;
    return result ? result : say(worker, &message);
}

static int handle_assign(struct worker *worker, const struct message *message)
{
    if (worker->outcome.first_ns == 0) {
        worker->outcome.first_ns = clock_now().monotonic_ns;
    }
    worker->slot_of_trial[message->trials[0].trial] = message->slot;
    return run_trial(worker, &message->trials[0]);
}

static int handle_acknowledge(struct worker *worker, const struct message *message)
{
    if (message->sequence < 2) {
        return 0;
    }
    int64_t slot = worker->slot_of_trial[message->trial];
    worker->outcome.last_ns = clock_now().monotonic_ns;
    worker->latencies[worker->outcome.count++] = worker->outcome.last_ns - worker->ready_ns[slot];
    return say_ready(worker, slot);
}

static int handle(struct worker *worker, const struct message *message)
{
    struct message bye;
    switch (message->type) {
    case MESSAGE_WELCOME:
        for (long slot = 0; slot < worker->slots; slot++) {
            if (say_ready(worker, slot)) {
                return -1;
            }
        }
        return 0;
    case MESSAGE_ASSIGN:
        return handle_assign(worker, message);
    case MESSAGE_ACKNOWLEDGE:
        return handle_acknowledge(worker, message);
    case MESSAGE_DRAIN:
        if (worker->drained) {
            return 0;
        }
        worker->drained = true;
        message_init(&bye, MESSAGE_BYE);
        return say(worker, &bye);
    default:
        fprintf(stderr, "bench_scheduler: a worker got %s\n", message_type_name(message->type));
        return -1;
    }
}

static int worker_loop(struct worker *worker)
{
    struct error err = {0};
    while (!worker->drained) {
        struct message message;
        int result;
        while ((result = endpoint_receive(worker->endpoint, NULL, &message, &err)) == 1) {
            result = handle(worker, &message);
            message_release(&message);
            if (result) {
                return -1;
            }
        }
        bool readable;
        if (result < 0 || bus_wait(&worker->endpoint, 1, &readable, NULL, 0, NULL, 1000, &err) < 0) {
            return fail("a worker", &err);
        }
    }
    return 0;
}

int worker_main(const struct worker_settings *settings)
{
    struct invitation invitation;
    struct error err = {0};
    struct worker worker = {.slots = settings->slots};
    size_t trials = (size_t)settings->trials + 1;
    if (read_all(settings->invitation_fd, &invitation, sizeof invitation)) {
        return 1;
    }
    struct bus *bus = bus_create(settings->security, NULL, &err);
    worker.endpoint = bus ? endpoint_connect(bus, invitation.address, invitation.server_key, &err) : NULL;
    worker.ready_ns = calloc((size_t)worker.slots, sizeof *worker.ready_ns);
    worker.slot_of_trial = calloc(trials, sizeof *worker.slot_of_trial);
    worker.latencies = calloc(trials, sizeof *worker.latencies);
    if (!worker.endpoint || !worker.ready_ns || !worker.slot_of_trial || !worker.latencies) {
        fail("start a worker", &err);
        return 1;
    }
    int fd = settings->outcome_fd;
    int result = say_hello(&worker) || worker_loop(&worker) ||
                 write_all(fd, &worker.outcome, sizeof worker.outcome) ||
                 write_all(fd, worker.latencies, (size_t)worker.outcome.count * sizeof *worker.latencies);
    endpoint_destroy(worker.endpoint);
    bus_destroy(bus);
    free(worker.ready_ns);
    free(worker.slot_of_trial);
    free(worker.latencies);
    return result;
}
