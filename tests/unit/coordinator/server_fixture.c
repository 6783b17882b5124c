#include "tests/unit/coordinator/server_fixture.h"

#include "base/clock.h"
#include "base/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define PATIENCE_NS (10 * NS_PER_SECOND)

static const struct setting train_settings[] = {
    {.name = "epochs", .type = SETTING_INTEGER, .minimum = 1, .maximum = 1e6, .fallback = "1"},
    {.name = "learning_rate",
     .type = SETTING_NUMBER,
     .maximum = 10,
     .fallback = "0.1",
     .searchable = true,
     .help = "step size"},
    {.name = NULL},
};

int server_fixture_init(struct server_fixture *fixture, const char *folder)
{
    struct error err = {0};
    snprintf(fixture->folder, sizeof fixture->folder, "%s", folder);
    snprintf(fixture->db, sizeof fixture->db, "%s/rung.db", folder);
    snprintf(fixture->address, sizeof fixture->address, "ipc://%s/socket", folder);
    fixture->binds[0] = fixture->address;
    fixture->log = (struct log){.fd = -1, .level = LOG_LEVEL_INFO};
    fixture->settings = (struct server_settings){
        .spec = &fixture->spec, .db = fixture->db, .binds = fixture->binds, .log = &fixture->log};
    spec_make(fixture, "tiny", 3, 1);
    fixture->bus = bus_create(NULL, NULL, &err);
    return fixture->bus ? 0 : -1;
}

int server_fixture_setup(void **state)
{
    struct server_fixture *fixture = calloc(1, sizeof *fixture);
    char folder[] = "/tmp/rung-server-XXXXXX";
    *state = fixture;
    return fixture && mkdtemp(folder) ? server_fixture_init(fixture, folder) : -1;
}

int server_fixture_teardown(void **state)
{
    struct server_fixture *fixture = *state;
    if (fixture->running) {
        server_request_stop(fixture->server, 2);
    }
    endpoint_destroy(fixture->worker);
    server_end(fixture);
    bus_destroy(fixture->bus);
    spec_release(&fixture->spec);
    folder_remove(fixture->folder, NULL);
    free(fixture);
    return 0;
}

void data_is(struct server_fixture *fixture, const char *path)
{
    fixture->data_files[0] = (struct data_file){"path", path};
    fixture->data_files[1] = (struct data_file){NULL, NULL};
    fixture->settings.data_files = fixture->data_files;
}

void spec_take(struct server_fixture *fixture, const char *text)
{
    struct error err = {0};
    struct spec_options options = {.train_settings = train_settings};
    spec_release(&fixture->spec);
    if (spec_parse(&fixture->spec, text, strlen(text), "tiny.yaml", &options, NULL, &err)) {
        fail_msg("%s", err.message);
    }
}

void spec_make(struct server_fixture *fixture, const char *name, int trials, int epochs)
{
    char text[512];
    snprintf(text, sizeof text,
             "name: %s\nmethod: random\nmetric: {name: accuracy, goal: maximize}\nrun_cap: %d\nseed: 7\n"
             "parameters:\n  learning_rate: {min: 0.0, max: 1.0}\ntrain: {epochs: %d}\n",
             name, trials, epochs);
    spec_take(fixture, text);
}

static void *server_thread(void *argument)
{
    struct server_fixture *fixture = argument;
    fixture->result = server_run(fixture->server, &fixture->run_error);
    return NULL;
}

void server_start(struct server_fixture *fixture)
{
    struct error err = {0};
    fixture->server = server_create(&fixture->settings, &err);
    if (!fixture->server) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(pthread_create(&fixture->thread, NULL, server_thread, fixture), 0);
    fixture->running = true;
}

struct error server_refused(struct server_fixture *fixture)
{
    struct error err = {0};
    struct server *server = server_create(&fixture->settings, &err);
    assert_null(server);
    assert_true(err.message[0] != '\0');
    return err;
}

int server_join(struct server_fixture *fixture)
{
    if (fixture->running) {
        pthread_join(fixture->thread, NULL);
        fixture->running = false;
    }
    return fixture->result;
}

void server_end(struct server_fixture *fixture)
{
    server_join(fixture);
    server_destroy(fixture->server);
    fixture->server = NULL;
}

void worker_connect(struct server_fixture *fixture, const char *address)
{
    struct error err = {0};
    endpoint_destroy(fixture->worker);
    fixture->worker = endpoint_connect(fixture->bus, address, NULL, &err);
    assert_non_null(fixture->worker);
}

void worker_say(struct server_fixture *fixture, const struct message *message)
{
    struct error err = {0};
    if (endpoint_send(fixture->worker, NULL, message, &err)) {
        fail_msg("%s", err.message);
    }
}

void say(struct server_fixture *fixture, enum message_type type)
{
    struct message message;
    message_init(&message, type);
    worker_say(fixture, &message);
}

void say_hello(struct server_fixture *fixture, const struct running_attempt *running, size_t count)
{
    struct device_description device = {.id = "cpu:0", .kind = "cpu"};
    struct message message;
    message_init(&message, MESSAGE_HELLO);
    message.protocol = PROTOCOL_VERSION;
    message.worker = "by-hand";
    message.session = "0123456789abcdef";
    message.devices = &device;
    message.device_count = 1;
    message.running = (struct running_attempt *)running;
    message.running_count = count;
    worker_say(fixture, &message);
}

void say_ready(struct server_fixture *fixture)
{
    struct message message;
    message_init(&message, MESSAGE_READY);
    message.lanes = 1;
    worker_say(fixture, &message);
}

void say_heartbeat(struct server_fixture *fixture, const struct running_attempt *running, size_t count)
{
    struct message message;
    message_init(&message, MESSAGE_HEARTBEAT);
    message.running = (struct running_attempt *)running;
    message.running_count = count;
    worker_say(fixture, &message);
}

void say_report(struct server_fixture *fixture, int64_t trial, int64_t attempt, int64_t sequence,
                int64_t resource, double accuracy)
{
    struct reported report = {
        .resource = resource, .metrics = json_pack("{s:f}", "accuracy", accuracy), .seconds = 0.5};
    struct message message;
    message_init(&message, MESSAGE_REPORT);
    message.trial = trial;
    message.attempt = attempt;
    message.sequence = sequence;
    message.reports = &report;
    message.report_count = 1;
    worker_say(fixture, &message);
    json_decref(report.metrics);
}

void say_ended(struct server_fixture *fixture, int64_t trial, int64_t attempt, int64_t sequence,
               enum outcome outcome, int64_t resource)
{
    struct message message;
    message_init(&message, MESSAGE_ENDED);
    message.trial = trial;
    message.attempt = attempt;
    message.sequence = sequence;
    message.outcome = outcome;
    message.resource = resource;
    worker_say(fixture, &message);
}

/* 1: a message; 0: none within the time. */
static int listen(struct server_fixture *fixture, int64_t patience_ns, struct message *message)
{
    int64_t deadline = clock_now().monotonic_ns + patience_ns;
    struct error err = {0};
    int result;
    while ((result = endpoint_receive(fixture->worker, NULL, message, &err)) == 0) {
        bool readable;
        if (clock_now().monotonic_ns >= deadline) {
            return 0;
        }
        bus_wait(&fixture->worker, 1, &readable, NULL, 0, NULL, 20, &err);
    }
    if (result < 0) {
        fail_msg("%s", err.message);
    }
    return 1;
}

void hear(struct server_fixture *fixture, enum message_type type, struct message *message)
{
    if (!listen(fixture, PATIENCE_NS, message)) {
        fail_msg("no message came; expected %s", message_type_name(type));
    }
    if (message->type != type) {
        fail_msg("expected %s, got %s %s", message_type_name(type), message_type_name(message->type),
                 message->error ? message->error : "");
    }
}

void hear_and_forget(struct server_fixture *fixture, enum message_type type)
{
    struct message message;
    hear(fixture, type, &message);
    message_release(&message);
}

void hear_nothing(struct server_fixture *fixture, int milliseconds)
{
    struct message message;
    if (listen(fixture, milliseconds * NS_PER_MS, &message)) {
        fail_msg("expected nothing, got %s", message_type_name(message.type));
    }
}

int64_t begin_trial(struct server_fixture *fixture)
{
    struct message assign;
    say_ready(fixture);
    hear(fixture, MESSAGE_ASSIGN, &assign);
    assert_int_equal(assign.slot, 0);
    assert_int_equal(assign.trial_count, 1);
    int64_t trial = assign.trials[0].trial;
    message_release(&assign);
    return trial;
}

void finish_trial(struct server_fixture *fixture, int64_t trial, int64_t attempt, int64_t sequence)
{
    struct message acknowledge;
    say_report(fixture, trial, attempt, sequence, 1, 0.5 + (double)trial / 100);
    hear(fixture, MESSAGE_ACKNOWLEDGE, &acknowledge);
    assert_int_equal(acknowledge.sequence, sequence);
    message_release(&acknowledge);
    say_ended(fixture, trial, attempt, sequence + 1, OUTCOME_FINISHED, 1);
    hear(fixture, MESSAGE_ACKNOWLEDGE, &acknowledge);
    assert_int_equal(acknowledge.sequence, sequence + 1);
    message_release(&acknowledge);
}

void join_sweep(struct server_fixture *fixture)
{
    worker_connect(fixture, fixture->address);
    say_hello(fixture, NULL, 0);
    hear_and_forget(fixture, MESSAGE_WELCOME);
}

void run_to_the_end(struct server_fixture *fixture, int64_t first, int64_t last)
{
    for (int64_t trial = first; trial <= last; trial++) {
        assert_int_equal(begin_trial(fixture), trial);
        finish_trial(fixture, trial, 1, 1);
    }
    hear_and_forget(fixture, MESSAGE_DRAIN);
    say(fixture, MESSAGE_BYE);
    assert_int_equal(server_join(fixture), 0);
}
