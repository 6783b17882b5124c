/* The training child: serves its link until it closes. */
#include "worker/runner.h"

#include "base/text.h"
#include "worker/runner_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *runner_train_settings(const struct runner *runner)
{
    return json_object_get(runner->sweep, "train");
}

struct data_files runner_data_files(const struct runner *runner)
{
    const json_t *files = json_object_get(runner->sweep, "data_files");
    return (struct data_files){
        .path = json_get_string(files, "path", NULL),
        .labels = json_get_string(files, "labels", NULL),
        .test_path = json_get_string(files, "test_path", NULL),
        .test_labels = json_get_string(files, "test_labels", NULL),
    };
}

void runner_keep_data(struct runner *runner, const struct dataset *dataset)
{
    if (runner->kept == dataset) {
        return;
    }
    device_data_unshare(&runner->kept_data, runner->device);
    bool kept = dataset && device_data_share(&runner->kept_data, dataset, runner->device, NULL) == 0;
    runner->kept = kept ? dataset : NULL;
}

static void runner_send(struct runner *runner, json_t *line)
{
    if (!line || link_send(&runner->link, line, NULL) != 0) {
        runner->link_failed = true;
    }
    json_decref(line);
}

void runner_send_report(struct runner *runner, int64_t resource, json_t *metrics, double seconds,
                        json_t *details)
{
    runner_send(runner, json_pack("{s:s,s:I,s:I,s:I,s:O,s:f,s:o*}", "type", "report", "trial",
                                  (json_int_t)runner->run.trial, "attempt", (json_int_t)runner->run.attempt,
                                  "resource", (json_int_t)resource, "metrics", metrics, "seconds", seconds,
                                  "details", details));
}

void runner_send_ended(struct runner *runner, const char *outcome, int64_t resource, bool saved,
                       const struct error *reason, json_t *details)
{
    runner_send(runner, json_pack("{s:s,s:I,s:I,s:s,s:I,s:s?,s:s?,s:s?,s:b,s:o?}", "type", "ended", "trial",
                                  (json_int_t)runner->run.trial, "attempt", (json_int_t)runner->run.attempt,
                                  "outcome", outcome, "resource", (json_int_t)resource, "checkpoint",
                                  saved ? runner->run.save : NULL, "error", reason ? reason->message : NULL,
                                  "blame", runner->run.blame, "device_failed", (int)runner->device_failed,
                                  "details", details));
}

void runner_note(const struct runner *runner, const char *format, ...)
{
    struct text line;
    char words[1200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    text_init(&line);
    text_printf(&line, "trial %lld attempt %lld: %s\n", (long long)runner->run.trial,
                (long long)runner->run.attempt, words);
    /* In one piece; a log that cannot be written is no reason to end. */
    ssize_t ignored = line.data ? write(STDERR_FILENO, line.data, line.size) : 0;
    (void)ignored;
    text_release(&line);
}

void runner_note_start(const struct runner *runner, const struct dataset *dataset,
                       const struct derived *derived)
{
    struct text text;
    json_t *facts = derived_to_json(derived);
    text_init(&text);
    text_printf(&text, "on %s, %lld training and %lld validation rows of %lld features", runner->device->name,
                (long long)dataset->rows[SPLIT_TRAIN], (long long)dataset->rows[SPLIT_VALIDATION],
                (long long)dataset->features);
    if (dataset->task == TASK_CLASSIFICATION) {
        text_printf(&text, ", %lld classes", (long long)dataset->classes);
    }
    text_append(&text, "; parameters ");
    json_append(&text, runner->run.parameters);
    text_append(&text, " come to ");
    json_append(&text, facts);
    runner_note(runner, "%s", text.data ? text.data : "");
    text_release(&text);
    json_decref(facts);
}

/* After an error that spoils a device every call fails, so asking it once more tells. */
static bool device_is_spoilt(const struct runner *runner)
{
    struct error again = {0};
    return runner->device->operations->synchronize(runner->device, &again) != 0;
}

const char *runner_outcome(struct runner *runner, const struct error *reason, const char *blame)
{
    runner->device_failed =
        reason->code != ERROR_MEMORY && reason->code != ERROR_USAGE && device_is_spoilt(runner);
    if (runner->device_failed) {
        return "crashed";
    }
    runner->run.blame = blame;
    if (blame) {
        return "interrupted";
    }
    switch (reason->code) {
    case ERROR_MEMORY:
        return "out_of_memory";
    case ERROR_USAGE:
        return "invalid";
    default:
        return "crashed";
    }
}

int runner_settings(const struct runner *runner, const json_t *train, struct training_settings *settings,
                    struct error *err)
{
    if (training_settings_read(settings, train, runner->run.parameters, err) != 0) {
        return -1;
    }
    if (settings->precision == PRECISION_AUTO) {
        bool half = strcmp(json_get_string(train, "auto_precision", "fp32"), "bf16") == 0;
        settings->precision = half ? PRECISION_BF16 : PRECISION_FP32;
    }
    return 0;
}

static void runner_drop_run(struct runner *runner)
{
    replicates_destroy(runner->replicates);
    runner->replicates = NULL;
    json_decref(runner->run.line);
    memset(&runner->run, 0, sizeof runner->run);
}

static bool is_about_run(const struct runner *runner, const json_t *line)
{
    return runner->run.line && json_get_integer(line, "trial", -1) == runner->run.trial &&
           json_get_integer(line, "attempt", -1) == runner->run.attempt;
}

/* `until` and `stop`: true when the line was one of them (of another run: too late, and no matter). */
static bool runner_take_control(struct runner *runner, const json_t *line)
{
    const char *type = json_get_string(line, "type", "");
    bool until = strcmp(type, "until") == 0;
    if (!until && strcmp(type, "stop") != 0) {
        return false;
    }
    if (!is_about_run(runner, line)) {
        return true;
    }
    if (until) {
        int64_t bound = json_get_integer(line, "until", 0);
        runner->run.until = bound > runner->run.until ? bound : runner->run.until;
    } else if (strcmp(json_get_string(line, "reason", ""), "interrupted") == 0) {
        runner->run.interrupted = true;
    } else {
        runner->run.stopped = true;
    }
    return true;
}

void runner_poll(struct runner *runner)
{
    json_t *line = NULL;
    int result = 0;
    while (!runner->link_failed && (result = link_receive(&runner->link, &line, NULL)) != 0) {
        runner->link_failed = result < 0 || !runner_take_control(runner, line);
        if (result > 0) {
            json_decref(line);
        }
    }
}

/* The data once, for all trials of the sweep. */
static int runner_load(struct runner *runner, json_t *line, struct error *err)
{
    if (runner->sweep) {
        return error_set(err, ERROR_PROTOCOL, "a second sweep on one link");
    }
    runner->sweep = json_incref(line);
    runner->seed = strtoull(json_get_string(line, "seed", "0"), NULL, 10);
    json_t *data = json_object_get(runner_train_settings(runner), "data");
    struct data_files files = runner_data_files(runner);
    if (dataset_load(&runner->dataset, data, &files, runner->seed, err) != 0) {
        return error_prefix(err, "load the data");
    }
    runner->has_dataset = true;
    runner_send(runner, json_pack("{s:s,s:s}", "type", "idle", "device", runner->device->name));
    return 0;
}

static int runner_begin(struct runner *runner, json_t *line, struct error *err)
{
    struct run *run = &runner->run;
    if (!runner->has_dataset) {
        return error_set(err, ERROR_PROTOCOL, "a run before the sweep");
    }
    runner_drop_run(runner);
    run->line = json_incref(line);
    run->trial = json_get_integer(line, "trial", -1);
    run->attempt = json_get_integer(line, "attempt", -1);
    run->start = json_get_integer(line, "start", 0);
    run->until = json_get_integer(line, "until", 0);
    run->parameters = json_object_get(line, "parameters");
    run->final = json_object_get(line, "final");
    run->checkpoint = json_get_string(line, "checkpoint", NULL);
    run->save = json_get_string(line, "save", NULL);
    if (!run->save) {
        return error_set(err, ERROR_PROTOCOL, "a run without a place to save");
    }
    if (json_is_object(run->final)) {
        runner_refit(runner);
    } else {
        runner_train(runner);
    }
    return 0;
}

static int runner_take(struct runner *runner, json_t *line, struct error *err)
{
    const char *type = json_get_string(line, "type", "");
    int result = 0;
    if (strcmp(type, "sweep") == 0) {
        result = runner_load(runner, line, err);
    } else if (strcmp(type, "run") == 0) {
        result = runner_begin(runner, line, err);
    } else if (!runner_take_control(runner, line)) {
        result = error_set(err, ERROR_PROTOCOL, "the agent sent a line of unknown type '%s'", type);
    } else if (runner->replicates && runner->run.stopped) {
        runner_drop_run(runner); /* it was paused; nobody waits for an answer */
    } else if (runner->replicates && runner->run.until > replicates_resource(runner->replicates) &&
               !runner->run.interrupted) {
        runner_train(runner);
    }
    if (!runner->replicates) {
        runner_drop_run(runner); /* over */
    }
    if (runner->device_failed && result == 0) {
        result = error_set(err, ERROR_RESOURCE, "device %s cannot be used any more in this process",
                           runner->device->name);
    }
    return result;
}

static void runner_serve(struct runner *runner, struct error *err)
{
    while (!runner->link_failed) {
        json_t *line = NULL;
        int result = link_receive(&runner->link, &line, err);
        if (result == 0) {
            struct pollfd wait = {.fd = runner->link.fd, .events = POLLIN};
            poll(&wait, 1, -1);
        } else if (result < 0) {
            runner->link_failed = true;
        } else {
            runner->link_failed = runner_take(runner, line, err) != 0;
            json_decref(line);
        }
    }
}

static void runner_release(struct runner *runner)
{
    runner_drop_run(runner);
    runner_keep_data(runner, NULL);
    if (runner->has_dataset) {
        dataset_release(&runner->dataset);
    }
    if (runner->has_refit) {
        dataset_release(&runner->refit);
    }
    device_destroy(runner->device);
    json_decref(runner->sweep);
    link_release(&runner->link);
}

int runner_main(int fd, const char *device)
{
    struct runner runner = {0};
    struct error err = {0};
    /* The agent decides what an interrupt means for its runners. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); /* looked at between epochs, waited for with poll */
    link_init(&runner.link, fd);
    runner.device = device_create(device, &err);
    if (runner.device) {
        runner_serve(&runner, &err);
    }
    runner_release(&runner);
    if (err.code == ERROR_NONE || err.code == ERROR_CONNECT) {
        return 0; /* the link closed */
    }
    dprintf(STDERR_FILENO, "%s\n", err.message); /* its log, whose end the agent quotes */
    return err.code == ERROR_MEMORY ? ENOMEM : error_exit_code(&err);
}
