/* The scripted coordinator of the agent's tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_coordinator.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 8000

static void open_endpoints(struct fake_coordinator *coordinator)
{
    struct error err = {0};
    coordinator->endpoint = endpoint_bind(coordinator->bus, coordinator->address, &err);
    coordinator->blob_endpoint = endpoint_bind(coordinator->bus, coordinator->blob_address, &err);
    if (!coordinator->endpoint || !coordinator->blob_endpoint) {
        fail_msg("bind: %s", err.message);
    }
}

int coordinator_setup(void **state)
{
    struct fake_coordinator *coordinator = calloc(1, sizeof *coordinator);
    snprintf(coordinator->folder, sizeof coordinator->folder, "/tmp/rung-test-XXXXXX");
    assert_non_null(mkdtemp(coordinator->folder));
    snprintf(coordinator->address, sizeof coordinator->address, "ipc://%s/main", coordinator->folder);
    snprintf(coordinator->blob_address, sizeof coordinator->blob_address, "ipc://%s/blobs",
             coordinator->folder);
    coordinator->worker_stderr = -1;
    coordinator->sweep = "abcdefgh";
    coordinator->bus = bus_create(NULL, NULL, NULL);
    assert_non_null(coordinator->bus);
    open_endpoints(coordinator);
    *state = coordinator;
    return 0;
}

int coordinator_teardown(void **state)
{
    struct fake_coordinator *coordinator = *state;
    if (coordinator->worker > 0) {
        kill(coordinator->worker, SIGKILL);
        waitpid(coordinator->worker, NULL, 0);
    }
    if (coordinator->worker_stderr >= 0) {
        close(coordinator->worker_stderr);
    }
    endpoint_destroy(coordinator->endpoint);
    endpoint_destroy(coordinator->blob_endpoint);
    bus_destroy(coordinator->bus);
    for (int i = 0; i < coordinator->blob_count; i++) {
        free(coordinator->blobs[i].bytes);
    }
    folder_remove(coordinator->folder, NULL);
    free(coordinator);
    return 0;
}

void coordinator_start_worker(struct fake_coordinator *coordinator, const char *devices,
                              const char *const *options)
{
    const char *argv[16] = {FAKE_WORKER, coordinator->address, devices, NULL};
    char folder[100];
    int pipe_fds[2];
    snprintf(folder, sizeof folder, "%s/cache", coordinator->folder);
    argv[3] = folder;
    for (int i = 0; options && options[i] && i < 10; i++) {
        argv[4 + i] = options[i];
    }
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    coordinator->worker = fork();
    assert_true(coordinator->worker >= 0);
    if (coordinator->worker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(pipe_fds[1], getenv("RUNG_TEST_LOG") ? 9 : 2);
        execv(FAKE_WORKER, (char *const *)argv);
        _exit(127);
    }
    close(pipe_fds[1]);
    coordinator->worker_stderr = pipe_fds[0];
}

int coordinator_await_worker(struct fake_coordinator *coordinator, char *text)
{
    int status = 0;
    pid_t pid = 0;
    for (int i = 0; i < PATIENCE_MS / 5 && pid == 0; i++) {
        usleep(5000);
        pid = waitpid(coordinator->worker, &status, WNOHANG);
    }
    if (pid == 0) {
        fail_msg("the worker does not end");
    }
    coordinator->worker = 0;
    if (text) {
        ssize_t count = read(coordinator->worker_stderr, text, 999);
        text[count > 0 ? count : 0] = '\0';
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void coordinator_vanish(struct fake_coordinator *coordinator)
{
    endpoint_destroy(coordinator->endpoint);
    endpoint_destroy(coordinator->blob_endpoint);
    coordinator->endpoint = coordinator->blob_endpoint = NULL;
}

void coordinator_return(struct fake_coordinator *coordinator)
{
    open_endpoints(coordinator);
}

/* ---- blobs ---- */

static struct fake_blob *find_blob(struct fake_coordinator *coordinator, const char *sha256)
{
    for (int i = 0; i < coordinator->blob_count; i++) {
        if (strcmp(coordinator->blobs[i].sha256, sha256) == 0) {
            return &coordinator->blobs[i];
        }
    }
    return NULL;
}

const char *coordinator_blob(const struct fake_coordinator *coordinator, const char *sha256)
{
    struct fake_blob *blob = find_blob((struct fake_coordinator *)coordinator, sha256);
    return blob && blob->size == blob->capacity ? blob->bytes : NULL;
}

static void take_put(struct fake_coordinator *coordinator, const struct message *put, struct message *answer)
{
    struct fake_blob *blob = find_blob(coordinator, put->checkpoint);
    coordinator->puts++;
    if (!blob) {
        assert_true(coordinator->blob_count < FAKE_BLOBS);
        blob = &coordinator->blobs[coordinator->blob_count++];
        memcpy(blob->sha256, put->checkpoint, SHA256_TEXT);
        blob->bytes = calloc(1, (size_t)put->size + 1);
        blob->capacity = put->size;
    }
    if (put->offset == blob->size && put->offset + (int64_t)put->byte_count <= blob->capacity) {
        memcpy(blob->bytes + put->offset, put->bytes, put->byte_count);
        blob->size += (int64_t)put->byte_count;
    }
    message_init(answer, MESSAGE_STORED);
    answer->offset = blob->size;
    answer->size = blob->capacity;
}

static void serve_blob(struct fake_coordinator *coordinator)
{
    static char not_found[] = "not_found";
    struct message request, answer;
    struct peer peer;
    while (endpoint_receive(coordinator->blob_endpoint, &peer, &request, NULL) == 1) {
        if (request.type == MESSAGE_PUT) {
            take_put(coordinator, &request, &answer);
        } else {
            assert_int_equal(request.type, MESSAGE_FETCH);
            struct fake_blob *blob = find_blob(coordinator, request.checkpoint);
            message_init(&answer, blob ? MESSAGE_CHUNK : MESSAGE_ERROR);
            answer.code = not_found;
            if (blob) {
                int64_t rest = blob->size - request.offset;
                answer.offset = request.offset;
                answer.size = blob->size;
                answer.bytes = blob->bytes + request.offset;
                answer.byte_count = (size_t)(rest < 1 << 20 ? rest : 1 << 20);
            }
        }
        answer.checkpoint = request.checkpoint;
        if (!coordinator->lose_blobs) {
            endpoint_send(coordinator->blob_endpoint, &peer, &answer, NULL);
        }
        message_release(&request);
    }
}

/* ---- messages ---- */

/* The next message of the main socket; false when `milliseconds` pass without one. */
static bool receive(struct fake_coordinator *coordinator, struct message *message, int milliseconds)
{
    struct endpoint *endpoints[2] = {coordinator->endpoint, coordinator->blob_endpoint};
    bool readable[2];
    int64_t deadline = clock_now().monotonic_ns + milliseconds * NS_PER_MS;
    for (;;) {
        struct error err = {0};
        int result = endpoint_receive(coordinator->endpoint, &coordinator->peer, message, &err);
        if (result < 0) {
            fail_msg("a malformed message: %s", err.message);
        }
        if (result == 1) {
            return true;
        }
        serve_blob(coordinator);
        int64_t rest = (deadline - clock_now().monotonic_ns) / NS_PER_MS;
        if (rest <= 0) {
            return false;
        }
        bus_wait(endpoints, 2, readable, NULL, 0, NULL, (int)(rest < 50 ? rest : 50), NULL);
    }
}

static bool receive_other(struct fake_coordinator *coordinator, struct message *message, int milliseconds)
{
    int64_t deadline = clock_now().monotonic_ns + milliseconds * NS_PER_MS;
    int64_t rest = milliseconds;
    while (rest > 0 && receive(coordinator, message, (int)rest)) {
        if (message->type != MESSAGE_HEARTBEAT) {
            return true;
        }
        message_release(message);
        rest = (deadline - clock_now().monotonic_ns) / NS_PER_MS;
    }
    return false;
}

void coordinator_expect(struct fake_coordinator *coordinator, enum message_type type, struct message *message)
{
    if (!receive_other(coordinator, message, PATIENCE_MS)) {
        fail_msg("no %s came", message_type_name(type));
    }
    if (message->type != type) {
        fail_msg("expected %s, but %s came (trial %lld, sequence %lld)", message_type_name(type),
                 message_type_name(message->type), (long long)message->trial, (long long)message->sequence);
    }
}

void coordinator_expect_only(struct fake_coordinator *coordinator, enum message_type type)
{
    struct message message;
    coordinator_expect(coordinator, type, &message);
    message_release(&message);
}

void coordinator_expect_heartbeat(struct fake_coordinator *coordinator, struct message *message)
{
    for (;;) {
        if (!receive(coordinator, message, PATIENCE_MS)) {
            fail_msg("no heartbeat came");
        }
        if (message->type == MESSAGE_HEARTBEAT) {
            return;
        }
        message_release(message);
    }
}

void coordinator_await_hello(struct fake_coordinator *coordinator, struct message *message)
{
    for (;;) {
        if (!receive(coordinator, message, PATIENCE_MS)) {
            fail_msg("no hello came");
        }
        if (message->type == MESSAGE_HELLO) {
            return;
        }
        message_release(message);
        coordinator_error(coordinator, "unknown_session");
    }
}

void coordinator_expect_silence(struct fake_coordinator *coordinator, int milliseconds)
{
    struct message message;
    if (receive_other(coordinator, &message, milliseconds)) {
        fail_msg("expected silence, but %s came (trial %lld, sequence %lld)", message_type_name(message.type),
                 (long long)message.trial, (long long)message.sequence);
    }
}

void coordinator_send(struct fake_coordinator *coordinator, const struct message *message)
{
    struct error err = {0};
    if (endpoint_send(coordinator->endpoint, &coordinator->peer, message, &err) != 0) {
        fail_msg("%s", err.message);
    }
}

void coordinator_welcome(struct fake_coordinator *coordinator)
{
    struct message message;
    message_init(&message, MESSAGE_WELCOME);
    message.sweep = (char *)coordinator->sweep;
    message.sweep_name = (char[]){"test"};
    message.devices_per_trial = 1;
    message.heartbeat_seconds = 0.1;
    message.lease_seconds = 30;
    message.blob_endpoint = coordinator->blob_address;
    message.metric = (char[]){"loss"};
    message.seed = (char[]){"7"};
    message.train = json_object();
    coordinator_send(coordinator, &message);
    json_decref(message.train);
}

void coordinator_join(struct fake_coordinator *coordinator, int slots)
{
    coordinator_expect_only(coordinator, MESSAGE_HELLO);
    coordinator_welcome(coordinator);
    for (int i = 0; i < slots; i++) {
        coordinator_expect_only(coordinator, MESSAGE_READY);
    }
}

void coordinator_assign(struct fake_coordinator *coordinator, int slot, int64_t trial, int64_t attempt,
                        const char *parameters, int64_t start, int64_t until, const char *checkpoint)
{
    struct assignment assignment = {
        .trial = trial,
        .attempt = attempt,
        .parameters = json_parse(parameters, strlen(parameters), NULL),
        .start = start,
        .until = until,
        .checkpoint = (char *)checkpoint,
    };
    struct message message;
    message_init(&message, MESSAGE_ASSIGN);
    message.slot = slot;
    message.trials = &assignment;
    message.trial_count = 1;
    coordinator_send(coordinator, &message);
    json_decref(assignment.parameters);
}

void coordinator_acknowledge(struct fake_coordinator *coordinator, int64_t trial, int64_t attempt,
                             int64_t sequence, enum action action, int64_t until)
{
    struct message message;
    message_init(&message, MESSAGE_ACKNOWLEDGE);
    message.trial = trial;
    message.attempt = attempt;
    message.sequence = sequence;
    message.action = action;
    message.until = until;
    coordinator_send(coordinator, &message);
}

void coordinator_drain(struct fake_coordinator *coordinator, bool now)
{
    struct message message;
    message_init(&message, MESSAGE_DRAIN);
    message.now = now;
    coordinator_send(coordinator, &message);
}

void coordinator_error(struct fake_coordinator *coordinator, const char *code)
{
    struct message message;
    message_init(&message, MESSAGE_ERROR);
    message.code = (char *)code;
    coordinator_send(coordinator, &message);
}

void coordinator_expect_reports(struct fake_coordinator *coordinator, int64_t trial, int64_t attempt,
                                int64_t first, int64_t last)
{
    for (int64_t number = first; number <= last; number++) {
        struct message message;
        coordinator_expect(coordinator, MESSAGE_REPORT, &message);
        assert_int_equal(message.trial, trial);
        assert_int_equal(message.attempt, attempt);
        assert_int_equal(message.sequence, number);
        message_release(&message);
    }
}

void coordinator_expect_ended(struct fake_coordinator *coordinator, int64_t trial, int64_t attempt,
                              int64_t sequence, enum outcome outcome, char *checkpoint)
{
    struct message message;
    coordinator_expect(coordinator, MESSAGE_ENDED, &message);
    assert_int_equal(message.trial, trial);
    assert_int_equal(message.attempt, attempt);
    assert_int_equal(message.sequence, sequence);
    assert_string_equal(outcome_name(message.outcome), outcome_name(outcome));
    if (checkpoint) {
        assert_non_null(message.checkpoint);
        memcpy(checkpoint, message.checkpoint, SHA256_TEXT);
    }
    message_release(&message);
    coordinator_acknowledge(coordinator, trial, attempt, sequence, ACTION_STOP, 0);
}
