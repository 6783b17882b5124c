/* The training child over its link, with real data: reports, pauses that go on in memory or from the
 * checkpoint with the same numbers, stops, the refit, and what cannot be trained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/files.h"
#include "worker/link.h"
#include "worker/runner.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define EPOCHS 6

struct child {
    char folder[64], save[100];
    int replicates; /* 0: not given */
    struct link link;
    pid_t pid;
};

static void send_line(struct child *child, json_t *line)
{
    assert_non_null(line);
    assert_int_equal(link_send(&child->link, line, NULL), 0);
    json_decref(line);
}

static json_t *receive_line(struct child *child)
{
    json_t *line = NULL;
    struct error err = {0};
    if (link_receive(&child->link, &line, &err) != 1) {
        fail_msg("nothing came: %s", err.message);
    }
    return line;
}

static void start_runner(struct child *child, const char *data_path, int epochs, const char *objective)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    child->pid = fork();
    if (child->pid == 0) {
        close(fds[0]);
        char log[100];
        snprintf(log, sizeof log, "%s/stderr", child->folder[0] ? child->folder : "/tmp");
        int fd = open(child->folder[0] ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, STDERR_FILENO);
        _exit(runner_main(fds[1], "cpu:0"));
    }
    close(fds[1]);
    struct timeval patience = {.tv_sec = 10};
    setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    link_init(&child->link, fds[0]);
    json_t *sweep = json_pack(
        "{s:s,s:{s:{s:s,s:f,s:f},s:s,s:i,s:s,s:i,s:f},s:{s:s?},s:s,s:s,s:b,s:s}", "type", "sweep", "train",
        "data", "target", "label", "validation", 0.2, "test", 0.2, "model", "mlp", "hidden", 16, "optimizer",
        "adamw", "epochs", epochs, "learning_rate", 0.01, "data_files", "path", data_path, "seed",
        "18446744073709551615", "metric", "validation_accuracy", "maximize", 1, "objective", objective);
    if (child->replicates) {
        json_object_set_new(json_object_get(sweep, "train"), "replicates", json_integer(child->replicates));
    }
    send_line(child, sweep);
}

static int setup_epochs(void **state, int epochs)
{
    struct child *child = calloc(1, sizeof *child);
    snprintf(child->folder, sizeof child->folder, "/tmp/rung-test-XXXXXX");
    assert_non_null(mkdtemp(child->folder));
    snprintf(child->save, sizeof child->save, "%s/saved.safetensors", child->folder);
    start_runner(child, RUNG_SOURCE_DIR "/configs/digits.csv.gz", epochs, "last");
    json_t *idle = receive_line(child);
    assert_string_equal(json_get_string(idle, "type", ""), "idle");
    assert_int_equal(strncmp(json_get_string(idle, "device", ""), "cpu/", 4), 0);
    json_decref(idle);
    *state = child;
    return 0;
}

static int setup(void **state)
{
    return setup_epochs(state, EPOCHS);
}

static int setup_ten(void **state)
{
    return setup_epochs(state, 10);
}

static int end_runner(struct child *child);

/* A runner whose sweep trains each point with so many seeds. */
static void start_again(struct child *child, int replicates)
{
    end_runner(child);
    child->replicates = replicates;
    start_runner(child, RUNG_SOURCE_DIR "/configs/digits.csv.gz", EPOCHS, "last");
    json_decref(receive_line(child));
}

static int setup_long(void **state)
{
    return setup_epochs(state, 10000);
}

static int end_runner(struct child *child)
{
    int status = 0;
    close(child->link.fd);
    link_release(&child->link);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int teardown(void **state)
{
    struct child *child = *state;
    int code = end_runner(child);
    folder_remove(child->folder, NULL);
    free(child);
    assert_int_equal(code, 0); /* a closed link is its end, whatever it was at */
    return 0;
}

static void run(struct child *child, int trial, const char *parameters, int start, int until,
                const char *checkpoint)
{
    send_line(child,
              json_pack("{s:s,s:i,s:i,s:o,s:i,s:i,s:s?,s:s,s:n}", "type", "run", "trial", trial, "attempt", 1,
                        "parameters", json_parse(parameters, strlen(parameters), NULL), "start", start,
                        "until", until, "checkpoint", checkpoint, "save", child->save, "final"));
}

static void control(struct child *child, int trial, const char *type, int until, const char *reason)
{
    send_line(child, json_pack("{s:s,s:i,s:i,s:i,s:s}", "type", type, "trial", trial, "attempt", 1, "until",
                               until, "reason", reason));
}

/* The report of a resource; its metrics as text go into `metrics`, one of `epochs` texts. */
static void expect_report(struct child *child, int trial, int resource, char **metrics)
{
    json_t *line = receive_line(child);
    if (strcmp(json_get_string(line, "type", ""), "report") != 0) {
        fail_msg("no report but %s: %s", json_get_string(line, "outcome", ""),
                 json_get_string(line, "error", ""));
    }
    assert_int_equal(json_get_integer(line, "trial", -1), trial);
    assert_int_equal(json_get_integer(line, "resource", -1), resource);
    assert_true(json_get_number(line, "seconds", -1) > 0);
    if (metrics) {
        metrics[resource] = json_canonical(json_object_get(line, "metrics"));
    }
    json_decref(line);
}

/* The end; skips reports when `any_reports`. */
static json_t *expect_ended(struct child *child, const char *outcome, bool any_reports)
{
    json_t *line = receive_line(child);
    while (any_reports && strcmp(json_get_string(line, "type", ""), "report") == 0) {
        json_decref(line);
        line = receive_line(child);
    }
    assert_string_equal(json_get_string(line, "type", ""), "ended");
    if (strcmp(json_get_string(line, "outcome", ""), outcome) != 0) {
        fail_msg("ended %s: %s", json_get_string(line, "outcome", ""), json_get_string(line, "error", ""));
    }
    return line;
}

static void release_texts(char **texts)
{
    for (int i = 0; i <= EPOCHS; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
}

static void test_a_trial_learns_and_finishes(void **state)
{
    char *metrics[EPOCHS + 1] = {0};
    run(*state, 1, "{}", 0, EPOCHS, NULL);
    for (int i = 1; i <= EPOCHS; i++) {
        expect_report(*state, 1, i, metrics);
    }
    json_t *ended = expect_ended(*state, "finished", false);
    assert_int_equal(json_get_integer(ended, "resource", -1), EPOCHS);
    assert_true(json_get_number(json_object_get(json_object_get(ended, "details"), "derived"),
                                "peak_learning_rate", 0) > 0);
    assert_true(json_is_null(json_object_get(ended, "checkpoint")));
    json_t *last = json_parse(metrics[EPOCHS], strlen(metrics[EPOCHS]), NULL);
    assert_true(json_get_number(last, "validation_accuracy", 0) > 0.9);
    json_decref(last);
    json_decref(ended);
    release_texts(metrics);
}

static void expect_same_curves(char **one, char **other)
{
    for (int i = 1; i <= EPOCHS; i++) {
        assert_string_equal(one[i], other[i]);
    }
}

static void test_paused_and_never_paused_are_equal(void **state)
{
    struct child *child = *state;
    char *through[EPOCHS + 1] = {0}, *in_memory[EPOCHS + 1] = {0}, *reloaded[EPOCHS + 1] = {0};
    char kept[120];
    snprintf(kept, sizeof kept, "%s/kept", child->folder);
    run(child, 9, "{\"dropout\": 0.3}", 0, EPOCHS, NULL);
    for (int i = 1; i <= EPOCHS; i++) {
        expect_report(child, 9, i, through);
    }
    json_decref(expect_ended(child, "finished", false));

    run(child, 9, "{\"dropout\": 0.3}", 0, 2, NULL);
    for (int i = 1; i <= 2; i++) {
        expect_report(child, 9, i, in_memory);
    }
    json_t *paused = expect_ended(child, "paused", false);
    assert_string_equal(json_get_string(paused, "checkpoint", ""), child->save);
    json_decref(paused);
    assert_int_equal(link(child->save, kept), 0);
    control(child, 9, "until", EPOCHS, "");
    for (int i = 3; i <= EPOCHS; i++) {
        expect_report(child, 9, i, in_memory);
    }
    json_decref(expect_ended(child, "finished", false));
    expect_same_curves(through, in_memory);

    run(child, 8, "{}", 0, 1, NULL); /* another trial in between */
    json_decref(expect_ended(child, "paused", true));
    run(child, 9, "{\"dropout\": 0.3}", 2, EPOCHS, kept);
    reloaded[1] = strdup(through[1]);
    reloaded[2] = strdup(through[2]);
    for (int i = 3; i <= EPOCHS; i++) {
        expect_report(child, 9, i, reloaded);
    }
    json_decref(expect_ended(child, "finished", false));
    expect_same_curves(through, reloaded);
    release_texts(through);
    release_texts(in_memory);
    release_texts(reloaded);
}

/* The promise in full: weights, optimizer, schedule and random state at epoch 9, as they are on disk, of a
 * trial that ran straight through, and of one that was paused at 3 and went on in another process. */
static void test_a_checkpoint_does_not_tell_of_pauses(void **state)
{
    struct child *child = *state;
    char start[120];
    size_t sizes[2] = {0};
    char *bytes[2];
    run(child, 4, "{\"dropout\": 0.3}", 0, 9, NULL);
    json_decref(expect_ended(child, "paused", true));
    bytes[0] = file_read(child->save, 0, &sizes[0], NULL);

    run(child, 4, "{\"dropout\": 0.3}", 0, 3, NULL);
    json_decref(expect_ended(child, "paused", true));
    snprintf(start, sizeof start, "%s/start", child->folder);
    assert_int_equal(rename(child->save, start), 0);
    end_runner(child);
    start_runner(child, RUNG_SOURCE_DIR "/configs/digits.csv.gz", 10, "last");
    json_decref(receive_line(child));
    run(child, 4, "{\"dropout\": 0.3}", 3, 9, start);
    json_decref(expect_ended(child, "paused", true));
    bytes[1] = file_read(child->save, 0, &sizes[1], NULL);

    assert_true(sizes[0] > 1000); /* a network of 62 x 16 + 16 x 10 floats and more */
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static void test_it_says_what_it_does(void **state)
{
    struct child *child = *state;
    char path[120];
    run(child, 7, "{\"dropout\": 0.3}", 0, 2, NULL);
    json_decref(expect_ended(child, "paused", true));
    snprintf(path, sizeof path, "%s/stderr", child->folder);
    char *log = file_read(path, 0, NULL, NULL);
    assert_non_null(log);
    assert_non_null(strstr(log, "trial 7 attempt 1: on cpu/"));
    assert_non_null(strstr(log, " features, 10 classes; parameters {\"dropout\":0.3} come to {"));
    assert_non_null(strstr(log, "trial 7 attempt 1: paused after 2 epochs\n"));
    free(log);
}

static void test_trials_have_seeds_of_their_own(void **state)
{
    char *one[EPOCHS + 1] = {0}, *other[EPOCHS + 1] = {0}, *fixed[EPOCHS + 1] = {0}, *again[EPOCHS + 1] = {0};
    run(*state, 1, "{}", 0, 1, NULL);
    expect_report(*state, 1, 1, one);
    json_decref(expect_ended(*state, "paused", false));
    run(*state, 2, "{}", 0, 1, NULL);
    expect_report(*state, 2, 1, other);
    json_decref(expect_ended(*state, "paused", false));
    assert_string_not_equal(one[1], other[1]);
    run(*state, 1, "{\"seed\": 5}", 0, 1, NULL);
    expect_report(*state, 1, 1, fixed);
    json_decref(expect_ended(*state, "paused", false));
    run(*state, 2, "{\"seed\": 5}", 0, 1, NULL);
    expect_report(*state, 2, 1, again);
    json_decref(expect_ended(*state, "paused", false));
    assert_string_equal(fixed[1], again[1]);
    release_texts(one);
    release_texts(other);
    release_texts(fixed);
    release_texts(again);
}

/* What the r-th of a trial's seeds comes to alone: Philox gives the seeds of the others. */
static double accuracy_of_seed(struct child *child, uint64_t seed, int epochs)
{
    char parameters[80], *metrics[EPOCHS + 1] = {0};
    double accuracy = -1;
    snprintf(parameters, sizeof parameters, "{\"dropout\": 0.3, \"seed\": %lld}", (long long)seed);
    run(child, 1, parameters, 0, epochs, NULL);
    for (int i = 1; i <= epochs; i++) {
        expect_report(child, 1, i, metrics);
    }
    json_decref(expect_ended(child, "paused", false));
    json_t *last = json_parse(metrics[epochs], strlen(metrics[epochs]), NULL);
    json_number_get(json_object_get(last, "validation_accuracy"), &accuracy);
    json_decref(last);
    release_texts(metrics);
    return accuracy;
}

/* The mean and deviation of two seeds, and the same after a pause in which a bundle of both checkpoints goes
 * to another process. */
static void test_replicates(void **state)
{
    struct child *child = *state;
    char *metrics[EPOCHS + 1] = {0}, *again[EPOCHS + 1] = {0}, kept[120], beside[140];
    double first = accuracy_of_seed(child, 5, 2), mean = -1, sd = -1;

    start_again(child, 2);
    run(child, 1, "{\"dropout\": 0.3, \"seed\": 5}", 0, EPOCHS, NULL);
    for (int i = 1; i <= EPOCHS; i++) {
        expect_report(child, 1, i, metrics);
    }
    json_decref(expect_ended(child, "finished", false));
    json_t *second = json_parse(metrics[2], strlen(metrics[2]), NULL);
    assert_true(json_number_get(json_object_get(second, "validation_accuracy"), &mean));
    assert_true(json_number_get(json_object_get(second, "validation_accuracy_sd"), &sd));
    json_decref(second);
    /* Of two values a and b the deviation is |a - b| / sqrt(2), so that one of them is mean +- sd / sqrt(2).
     */
    assert_true(sd > 0);
    assert_true(fabs(fabs(first - mean) - sd / sqrt(2)) < 1e-12);

    run(child, 1, "{\"dropout\": 0.3, \"seed\": 5}", 0, 2, NULL);
    json_t *paused = expect_ended(child, "paused", true);
    assert_int_equal(json_get_integer(json_object_get(paused, "details"), "replicates", 0), 2);
    json_decref(paused);
    snprintf(kept, sizeof kept, "%s/kept", child->folder);
    assert_int_equal(link(child->save, kept), 0);
    snprintf(beside, sizeof beside, "%s.replicate-0", kept);
    assert_int_equal(mkdir(beside, 0700), 0); /* to read it, no other file is needed */
    start_again(child, 2);
    again[1] = strdup(metrics[1]);
    again[2] = strdup(metrics[2]);
    run(child, 1, "{\"dropout\": 0.3, \"seed\": 5}", 2, EPOCHS, kept);
    for (int i = 3; i <= EPOCHS; i++) {
        expect_report(child, 1, i, again);
    }
    json_decref(expect_ended(child, "finished", false));
    expect_same_curves(metrics, again);

    start_again(child, 3); /* which that file cannot be of */
    run(child, 1, "{\"dropout\": 0.3, \"seed\": 5}", 2, EPOCHS, kept);
    json_t *ended = expect_ended(child, "interrupted", false);
    assert_string_equal(json_get_string(ended, "blame", ""), "checkpoint");
    assert_non_null(strstr(json_get_string(ended, "error", ""), "holds 2 replicates, not 3"));
    json_decref(ended);
    release_texts(metrics);
    release_texts(again);
}

static void test_baseline(void **state)
{
    struct child *child = *state;
    json_t *line = json_pack("{s:s,s:i,s:i,s:{},s:i,s:i,s:s,s:{s:s,s:i,s:b}}", "type", "run", "trial", 0,
                             "attempt", 1, "parameters", "start", 0, "until", 4, "save", child->save, "final",
                             "refit", "none", "epochs", 4, "baseline", 1);
    send_line(child, line);
    json_t *ended = expect_ended(child, "finished", false);
    json_t *details = json_object_get(ended, "details"), *baseline = json_object_get(details, "baseline");
    assert_int_equal(json_object_size(details), 1);
    /* scikit-learn's LogisticRegression comes to 0.95 to 0.97 on random fifths of these digits. */
    double accuracy = json_get_number(json_object_get(baseline, "metrics"), "validation_accuracy", 0);
    assert_true(accuracy > 0.93 && accuracy < 0.99);
    assert_int_equal(json_get_integer(baseline, "epochs", 0), 37); /* 40,000 visits of 1,079 rows */
    assert_true(json_is_null(json_object_get(ended, "checkpoint")));
    json_decref(ended);
    run(child, 3, "{}", 0, 1, NULL); /* and it takes trials all the same */
    json_decref(expect_ended(child, "paused", true));
}

static void test_stop_and_interrupt(void **state)
{
    struct child *child = *state;
    run(child, 3, "{}", 0, 10000, NULL);
    expect_report(child, 3, 1, NULL);
    control(child, 2, "stop", 0, "stopped"); /* of another: no matter */
    control(child, 3, "stop", 0, "stopped");
    json_t *ended = expect_ended(child, "stopped", true);
    assert_true(json_get_integer(ended, "resource", -1) >= 1);
    assert_true(json_is_null(json_object_get(ended, "checkpoint")));
    json_decref(ended);
    run(child, 4, "{}", 0, 10000, NULL);
    expect_report(child, 4, 1, NULL);
    control(child, 4, "stop", 0, "interrupted");
    ended = expect_ended(child, "interrupted", true);
    int resource = (int)json_get_integer(ended, "resource", -1);
    assert_string_equal(json_get_string(ended, "checkpoint", ""), child->save);
    json_decref(ended);
    run(child, 4, "{}", resource, resource + 1, child->save);
    expect_report(child, 4, resource + 1, NULL);
    json_decref(expect_ended(child, "paused", false));
    control(child, 4, "stop", 0, "stopped"); /* dropped without a word */
    control(child, 4, "until", 10000, "");
    run(child, 5, "{}", 0, 1, NULL);
    expect_report(child, 5, 1, NULL);
    json_decref(expect_ended(child, "paused", false));
}

static void test_what_cannot_be_trained(void **state)
{
    struct child *child = *state;
    run(child, 1, "{\"learning_rate\": \"fast\"}", 0, 1, NULL);
    json_t *ended = expect_ended(child, "invalid", false);
    assert_non_null(strstr(json_get_string(ended, "error", ""), "learning_rate"));
    json_decref(ended);
    run(child, 2, "{\"learning_rate\": 1e6, \"optimizer\": \"sgd\"}", 0, EPOCHS, NULL);
    json_decref(expect_ended(child, "diverged", true));
    run(child, 3, "{}", 2, EPOCHS, "/nowhere/at/all");
    ended = expect_ended(child, "interrupted", false);
    assert_non_null(strstr(json_get_string(ended, "error", ""), "/nowhere/at/all"));
    assert_string_equal(json_get_string(ended, "blame", ""), BLAME_CHECKPOINT);
    json_decref(ended);
    snprintf(child->save, sizeof child->save, "%s/missing/saved", child->folder);
    run(child, 4, "{}", 0, 1, NULL);
    ended = expect_ended(child, "interrupted", true);
    assert_string_equal(json_get_string(ended, "blame", ""), BLAME_WORKER);
    json_decref(ended);
}

static void refit_epochs(struct child *child, const char *kind, int seeds, int epochs)
{
    send_line(child, json_pack("{s:s,s:i,s:i,s:{},s:i,s:i,s:n,s:s,s:{s:s,s:i,s:i}}", "type", "run", "trial",
                               0, "attempt", 1, "parameters", "start", 0, "until", 4, "checkpoint", "save",
                               child->save, "final", "refit", kind, "seeds", seeds, "epochs", epochs));
}

static void refit(struct child *child, const char *kind, int seeds)
{
    refit_epochs(child, kind, seeds, 4);
}

static void test_the_refit(void **state)
{
    struct child *child = *state;
    refit(child, "train+validation", 3);
    json_t *ended = expect_ended(child, "finished", false);
    json_t *details = json_object_get(ended, "details");
    json_t *accuracy = json_object_get(details, "test_accuracy");
    assert_int_equal(json_get_integer(details, "seeds", -1), 3);
    assert_int_equal(json_get_integer(details, "epochs", -1), 4);
    assert_true(json_get_number(accuracy, "mean", 0) > 0.9 && json_get_number(accuracy, "mean", 2) <= 1);
    assert_true(json_get_number(accuracy, "sd", 0) > 0 && json_get_number(accuracy, "sd", 1) < 0.1);
    assert_non_null(json_object_get(details, "test_loss"));
    assert_non_null(json_object_get(details, "derived"));
    assert_string_equal(json_get_string(ended, "checkpoint", ""), child->save);
    assert_true(file_exists(child->save));
    char *text = json_canonical(details);
    json_decref(ended);

    refit(child, "train+validation", 3); /* the same again, to the last bit */
    ended = expect_ended(child, "finished", false);
    char *again = json_canonical(json_object_get(ended, "details"));
    assert_string_equal(text, again);
    json_decref(ended);
    refit(child, "train", 1); /* fewer rows, another score; one seed has no spread */
    ended = expect_ended(child, "finished", false);
    accuracy = json_object_get(json_object_get(ended, "details"), "test_accuracy");
    assert_true(json_get_number(accuracy, "sd", -1) == 0);
    json_decref(ended);
    refit(child, "train+validation", 1000);
    control(child, 0, "stop", 0, "interrupted");
    json_decref(expect_ended(child, "interrupted", false));
    free(text);
    free(again);
}

/* Fewer epochs than a trial's follow its schedule and leave it; more have a schedule of their own length. */
static void test_the_refits_schedule(void **state)
{
    struct child *child = *state;
    for (int epochs = EPOCHS - 1; epochs <= EPOCHS + 3; epochs += 4) {
        refit_epochs(child, "train", 1, epochs);
        json_t *ended = expect_ended(child, "finished", false);
        json_t *details = json_object_get(ended, "details"), *derived = json_object_get(details, "derived");
        assert_int_equal(json_get_integer(derived, "total_steps", 0),
                         json_get_integer(derived, "steps_per_epoch", -1) *
                             (epochs > EPOCHS ? epochs : EPOCHS));
        assert_string_equal(json_get_string(details, "precision", ""), "fp32");
        json_decref(ended);
    }
}

static void test_signals_are_the_agents_business(void **state)
{
    struct child *child = *state;
    run(child, 1, "{}", 0, 1, NULL);
    expect_report(child, 1, 1, NULL);
    kill(child->pid, SIGINT);
    kill(child->pid, SIGTERM);
    json_decref(expect_ended(child, "paused", false));
}

static void test_a_closed_link_ends_it_in_the_middle(void **state)
{
    run(*state, 1, "{}", 0, 10000, NULL);
    expect_report(*state, 1, 1, NULL); /* teardown closes the link and waits */
}

static void test_data_that_is_not_there(void **state)
{
    (void)state;
    struct child child = {0};
    start_runner(&child, "/nowhere/data.csv", EPOCHS, "last");
    json_t *line = NULL;
    struct error err = {0};
    assert_int_equal(link_receive(&child.link, &line, &err), -1);
    assert_int_equal(err.code, ERROR_CONNECT);
    int code = end_runner(&child);
    assert_true(code == 2 || code == 4);
}

static void test_the_best_epoch_is_kept(void **state)
{
    struct child *child = *state;
    end_runner(child);
    start_runner(child, RUNG_SOURCE_DIR "/configs/digits.csv.gz", EPOCHS, "best");
    json_decref(receive_line(child));
    run(child, 1, "{}", 0, 3, NULL);
    json_decref(expect_ended(child, "paused", true));
    size_t size = 0;
    char *bytes = file_read(child->save, 0, &size, NULL);
    assert_non_null(bytes);
    assert_non_null(memmem(bytes, size, "best", 4)); /* its weights are in the checkpoint */
    free(bytes);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define LONG_CASE(name) cmocka_unit_test_setup_teardown(name, setup_long, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_trial_learns_and_finishes),
        CASE(test_paused_and_never_paused_are_equal),
        CASE(test_replicates),
        CASE(test_baseline),
        cmocka_unit_test_setup_teardown(test_a_checkpoint_does_not_tell_of_pauses, setup_ten, teardown),
        CASE(test_it_says_what_it_does),
        CASE(test_trials_have_seeds_of_their_own),
        LONG_CASE(test_stop_and_interrupt),
        CASE(test_what_cannot_be_trained),
        CASE(test_the_refit),
        CASE(test_the_refits_schedule),
        CASE(test_signals_are_the_agents_business),
        LONG_CASE(test_a_closed_link_ends_it_in_the_middle),
        cmocka_unit_test(test_data_that_is_not_there),
        CASE(test_the_best_epoch_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
