/* The commands that look: what they print and their exit codes, from a file and from a live coordinator. */
#include "base/files.h"
#include "cli/client.h"
#include "cli/command.h"
#include "tests/unit/coordinator/store_fixture.h"
#include "wire/socket.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* main.c has the whole command table; these two are all that the commands need of it. */
int command_fail(const char *command, const struct error *err)
{
    fprintf(stderr, "rung %s: %s\n", command, err->message);
    return error_exit_code(err);
}

int command_usage_error(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "rung %s: ", command);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    return EXIT_USAGE;
}

static char out[1 << 16], errors[1 << 16]; /* of the last command */

static void read_back(FILE *file, char *text, size_t size)
{
    rewind(file);
    size_t count = fread(text, 1, size - 1, file);
    text[count] = '\0';
    fclose(file);
}

/* Runs a command with these arguments and --db; its output is in `out` and `errors`. */
static int run(const struct fixture *fixture, int (*command)(int argc, char **argv), const char *line)
{
    char text[500], *arguments[32];
    int count = 0;
    if (fixture != NULL) {
        snprintf(text, sizeof text, "command|--db|%s|%s", fixture->path, line);
    } else {
        snprintf(text, sizeof text, "command|%s", line);
    }
    char *rest = text;
    while ((arguments[count] = strsep(&rest, "|")) != NULL) {
        count += arguments[count][0] != '\0';
    }
    FILE *captured[2] = {tmpfile(), tmpfile()};
    int saved[2];
    for (int i = 0; i < 2; i++) {
        fflush(i == 0 ? stdout : stderr);
        saved[i] = dup(i + 1);
        dup2(fileno(captured[i]), i + 1);
    }
    int result = command(count, arguments);
    for (int i = 0; i < 2; i++) {
        fflush(i == 0 ? stdout : stderr);
        dup2(saved[i], i + 1);
        close(saved[i]);
    }
    read_back(captured[0], out, sizeof out);
    read_back(captured[1], errors, sizeof errors);
    return result;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no '%s' in:\n%s", part, text);
    }
}

static void fill(struct fixture *fixture)
{
    keep_sweep(fixture->store, "last");
    keep_trial(fixture->store, 1, 0.5, "{\"learning_rate\": 0.1, \"fixed\": 3}");
    keep_trial(fixture->store, 2, 0.1 + 0.2, "{\"learning_rate\": 0.2, \"fixed\": 3}");
    struct record trial =
        trial_record(3, TRIAL_FAILED, (double)NAN, 1, "{\"learning_rate\": 0.3, \"fixed\": 3}");
    trial.trial.reason = REASON_CRASHED;
    keep(fixture->store, trial);
    struct record attempt = attempt_record(3, 1, "node2", 0.25);
    attempt.attempt.outcome = OUTCOME_CRASHED;
    attempt.attempt.error = strdup("first\nlast line of stderr");
    keep(fixture->store, attempt);
}

static void test_leaderboard(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    assert_int_equal(run(fixture, command_leaderboard, ""), EXIT_DONE);
    assert_string_equal(out, "rank  trial  accuracy  learning_rate  resource  state      seconds  worker\n"
                             "   1      1       0.5            0.1         3  completed      1.5  node1\n"
                             "   2      2       0.3            0.2         3  completed      1.5  node1\n"
                             "   -      3         -            0.3         1  crashed       0.25  node2\n");
    assert_int_equal(run(fixture, command_leaderboard, "digits|--top|1|--format|csv"), EXIT_DONE);
    assert_string_equal(
        out, "rank,sweep,trial,state,reason,objective,resource,parameters.fixed,parameters.learning_rate,"
             "metrics.accuracy,metrics.loss,seconds,worker,device,attempts\n"
             "1,digits,1,completed,finished,0.5,3,3,0.1,0.5,0.5,1.5,node1,cpu/test,1\n");
    assert_int_equal(run(fixture, command_leaderboard, SWEEP_ID "|--where|trial = 2|--format|json"),
                     EXIT_DONE);
    assert_has(out, "\"objective\": 0.30000000000000004");
    assert_has(out, "\"rank\": 2");
    assert_int_equal(run(fixture, command_leaderboard, "--columns|trial,loss,parameters.fixed|--sort|-trial"),
                     0);
    assert_string_equal(
        out, "trial  loss  parameters.fixed\n    3     -                 3\n    2   0.5                 3\n"
             "    1   0.5                 3\n");
}

static void test_leaderboard_with_refit(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    struct record sweep = sweep_record(SWEEP_ID, "digits", 1, "{}");
    sweep.sweep.final = json_pack("{s:{s:f, s:f}, s:i, s:i}", "test_accuracy", "mean", 0.97, "sd", 0.01,
                                  "seeds", 5, "epochs", 27);
    keep(fixture->store, sweep);
    assert_int_equal(run(fixture, command_leaderboard, ""), EXIT_DONE);
    assert_has(out, "\nrefit of trial 2, 27 epochs, 5 seeds\n"
                    "metric         mean    sd\n"
                    "test_accuracy  0.97  0.01\n");
    assert_int_equal(run(fixture, command_leaderboard, "--where|trial = 99"), EXIT_DONE);
    assert_string_equal(out, "");
    assert_has(errors, "no trial of digits matches --where 'trial = 99'");
}

/* The lock beside the database says whether a coordinator is there. */
static void test_an_interrupted_sweep(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    assert_int_equal(run(fixture, command_list, ""), EXIT_DONE);
    assert_has(out, "running");
    assert_int_equal(run(fixture, command_list, "--format|json"), EXIT_DONE);
    assert_has(out, "\"live\": true");
    store_close(fixture->store);
    fixture->store = NULL;
    assert_int_equal(run(fixture, command_list, ""), EXIT_DONE);
    assert_has(out, "interrupted");
    assert_int_equal(run(fixture, command_list, "--format|json"), EXIT_DONE);
    assert_has(out, "\"live\": false");
    assert_has(out, "\"state\": \"running\"");
    char path[300]; /* as a coordinator that was killed leaves it */
    snprintf(path, sizeof path, "%s.lock", fixture->path);
    assert_int_equal(file_write(path, "1 host\n", 7, 0600, NULL), 0);
    assert_int_equal(run(fixture, command_list, ""), EXIT_DONE);
    assert_has(out, "interrupted");
}

static void test_refusals(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(run(fixture, command_leaderboard, ""), EXIT_USAGE);
    assert_has(errors, "has no sweep yet");
    assert_int_equal(run(fixture, command_list, ""), EXIT_DONE);
    assert_string_equal(out, "");
    assert_has(errors, "no sweeps yet");
    assert_int_equal(run(fixture, command_list, "--format|json"), EXIT_DONE);
    assert_string_equal(out, "[]\n");
    fill(fixture);
    static const struct {
        int (*command)(int argc, char **argv);
        const char *line, *message;
    } cases[] = {
        {command_leaderboard, "other", "has no sweep other"},
        {command_leaderboard, "a|b", "one SWEEP at a time; found also 'b'"},
        {command_leaderboard, "--top|0", "--top '0': a number from 1 up"},
        {command_leaderboard, "--top|x", "--top 'x'"},
        {command_leaderboard, "--format|xml", "--format 'xml': table, json or csv"},
        {command_leaderboard, "--where|trail = 1", "did you mean 'trial'?"},
        {command_leaderboard, "--sort|objektive", "did you mean 'objective'?"},
        {command_leaderboard, "--columns|wroker", "did you mean 'worker'?"},
        {command_leaderboard, "--columns|foo", "no column 'foo'; there are rank, sweep, trial"},
        {command_leaderboard, "--columns|accuracy,los", "did you mean 'loss'?"},
        {command_leaderboard, "--where|state = '\xff'", "--where: the value is not UTF-8 text"},
        {command_leaderboard, "--sort|\xc3", "--sort: the value is not UTF-8 text"},
        {command_leaderboard, "--columns|rank,\xed\xa0\x80", "--columns: the value is not UTF-8 text"},
        {command_leaderboard, "\xff", "has no sweep"},
        {command_show, "\xff|1", "has no sweep"},
        {command_logs, "\xff|1", "has no sweep"},
        {command_leaderboard, "--nonsense", "unknown option '--nonsense'"},
        {command_leaderboard, "--colums|x", "unknown option '--colums'; did you mean '--columns'?"},
        {command_leaderboard, "--top", "option '--top' takes a value"},
        {command_list, "--insecure=1", "option '--insecure' takes no value"},
        {command_list, "-z", "unknown option '-z'"},
        {command_show, "--f", "option '--format' takes a value"},
        {command_show, "--d", "option '--db' takes a value"},
        {command_leaderboard, "--co", "'--co' is the start of several options: --config, --columns"},
        {command_show, "", "SWEEP and TRIAL are expected"},
        {command_show, "digits|first", "TRIAL 'first': a number from 0 up"},
        {command_show, "digits|99", "sweep digits has no trial 99"},
        {command_show, "other|1", "has no sweep other"},
        {command_list, "digits", "no argument is expected"},
        {command_logs, "digits|9", "has no trial 9"},
        {command_logs, "digits|1|--attempt|7", "trial 1 has no attempt 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run(fixture, cases[i].command, cases[i].line), EXIT_USAGE);
        assert_has(errors, cases[i].message);
        assert_string_equal(out, "");
    }
    assert_int_equal(run(NULL, command_leaderboard, "--db|/nowhere/rung.db"), EXIT_RESOURCE);
    assert_has(errors, "there is no database /nowhere/rung.db");
}

static void test_show(void **state)
{
    struct fixture *fixture = *state;
    fill(fixture);
    for (int i = 4; i <= 100; i++) {
        keep(fixture->store, report_record(1, 1, i, "{\"accuracy\": 0.5}"));
    }
    assert_int_equal(run(fixture, command_show, "digits|1"), EXIT_DONE);
    assert_has(out, "sweep digits, trial 1: completed, resource 3, accuracy 0.5\n");
    assert_has(out, "  learning_rate  0.1\n");
    assert_has(out, "of 98 points; --all shows them");
    assert_int_equal(run(fixture, command_show, "1|--all|--format|csv"), EXIT_DONE);
    int lines = 0;
    for (const char *c = out; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    assert_int_equal(lines, 99);
    assert_int_equal(run(fixture, command_show, "3"), EXIT_DONE);
    assert_has(out, "error of attempt 1\n    first\n    last line of stderr\n");
    assert_int_equal(run(fixture, command_show, "digits|3|--format|json"), EXIT_DONE);
    assert_has(out, "\"error\": \"first\\nlast line of stderr\"");
}

static void test_logs(void **state)
{
    struct fixture *fixture = *state;
    char folder[200], path[230];
    fill(fixture);
    assert_int_equal(run(fixture, command_logs, "digits|1"), EXIT_DONE);
    assert_has(errors, "nothing that was kept");
    snprintf(folder, sizeof folder, "%s.files/" SWEEP_ID "/trial-000001/attempt-1", fixture->path);
    assert_int_equal(folder_create(folder, 0700, NULL), 0);
    snprintf(path, sizeof path, "%s/stdout", folder);
    assert_int_equal(file_write(path, "hello\n", 6, 0600, NULL), 0);
    snprintf(path, sizeof path, "%s/stderr", folder);
    assert_int_equal(file_write(path, "oops\n", 5, 0600, NULL), 0);
    static const char *const lines[] = {"1", "digits|1|-f", "digits|1|--attempt|1"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(run(fixture, command_logs, lines[i]), EXIT_DONE);
        assert_string_equal(out, "hello\n");
        assert_string_equal(errors, "oops\n");
    }
}

/* A coordinator that answers queries from the store, as the server does. */
struct live {
    struct bus *bus;
    struct endpoint *endpoint;
    struct store *store;
    atomic_bool stop;
    pthread_t thread;
    char address[120];
};

static void answer_one(struct live *live)
{
    struct peer peer;
    struct message query, answer;
    struct error err = {0};
    if (endpoint_receive(live->endpoint, &peer, &query, NULL) != 1) {
        return;
    }
    message_init(&answer, MESSAGE_ANSWER);
    answer.body = store_answer(live->store, NULL, query.query, query.body, &err);
    answer.error = answer.body == NULL ? strdup(err.message) : NULL;
    endpoint_send(live->endpoint, &peer, &answer, NULL);
    message_release(&answer);
    message_release(&query);
}

static void *serve(void *argument)
{
    struct live *live = argument;
    while (!atomic_load(&live->stop)) {
        bool readable;
        bus_wait(&live->endpoint, 1, &readable, NULL, 0, NULL, 20, NULL);
        answer_one(live);
    }
    return NULL;
}

static void live_start(struct live *live, const struct fixture *fixture)
{
    struct error err = {0};
    snprintf(live->address, sizeof live->address, "ipc://%s/socket", fixture->folder);
    live->store = store_open(fixture->path, STORE_READ, NULL, NULL);
    live->bus = bus_create(NULL, NULL, &err);
    live->endpoint = endpoint_bind(live->bus, live->address, &err);
    if (live->endpoint == NULL) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(pthread_create(&live->thread, NULL, serve, live), 0);
}

static void live_stop(struct live *live)
{
    atomic_store(&live->stop, true);
    pthread_join(live->thread, NULL);
    endpoint_destroy(live->endpoint);
    bus_destroy(live->bus);
    store_close(live->store);
}

static void test_live_coordinator(void **state)
{
    struct fixture *fixture = *state;
    struct live live = {0};
    char line[300], path[200];
    fill(fixture);
    live_start(&live, fixture);
    static const struct {
        int (*command)(int argc, char **argv);
        const char *line;
    } cases[] = {{command_leaderboard, "digits|--format|json"},
                 {command_leaderboard, "--where|loss < 1"},
                 {command_list, "--format|csv"},
                 {command_show, "digits|3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run(fixture, cases[i].command, cases[i].line), EXIT_DONE);
        char *from_file = strdup(out);
        snprintf(line, sizeof line, "%s|--endpoint|%s", cases[i].line, live.address);
        assert_int_equal(run(NULL, cases[i].command, line), EXIT_DONE);
        assert_string_equal(out, from_file);
        free(from_file);
    }
    snprintf(line, sizeof line, "--where|los < 1|--endpoint|%s", live.address);
    assert_int_equal(run(NULL, command_leaderboard, line), EXIT_USAGE);
    assert_has(errors, "did you mean 'loss'?");
    snprintf(path, sizeof path, "%s/endpoint", fixture->folder);
    snprintf(line, sizeof line, "%s\n", live.address);
    assert_int_equal(file_write(path, line, strlen(line), 0600, NULL), 0);
    snprintf(line, sizeof line, "--endpoint|@%s", path);
    assert_int_equal(run(NULL, command_list, line), EXIT_DONE);
    assert_has(out, "digits");
    live_stop(&live);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_leaderboard),
        TEST(test_leaderboard_with_refit),
        TEST(test_an_interrupted_sweep),
        TEST(test_refusals),
        TEST(test_show),
        TEST(test_logs),
        TEST(test_live_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
