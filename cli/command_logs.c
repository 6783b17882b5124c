/* rung logs SWEEP TRIAL: what a trial's program printed, as kept beside the database. */
#include "cli/command.h"
#include "cli/options.h"
#include "cli/query.h"

#include "base/files.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: rung logs [SWEEP] TRIAL [OPTION]...\n"
    "What the newest attempt of a trial printed: its stdout on stdout, its stderr on\n"
    "stderr. SWEEP is a name or id; with TRIAL alone it is the newest.\n"
    "\n"
    "  --attempt N       this attempt\n"
    "  -f, --follow      go on as it grows, until the attempt has ended or Ctrl-C\n"
    "  --db PATH         database (default rung.db, or RUNG_DB)\n";

enum { OPTION_DB = QUERY_DB, OPTION_ATTEMPT = QUERY_OWN };
#define FOLLOW_MS 250

static const struct option options_table[] = {{"db", required_argument, NULL, OPTION_DB},
                                              {"attempt", required_argument, NULL, OPTION_ATTEMPT},
                                              {"follow", no_argument, NULL, 'f'},
                                              {"help", no_argument, NULL, 'h'},
                                              {NULL, 0, NULL, 0}};

struct logs {
    struct query_options query;
    const char *sweep;
    int64_t trial, attempt; /* attempt 0: the newest */
    bool follow;
    char *paths[2];   /* stdout, stderr */
    off_t printed[2]; /* bytes of each that were printed */
};

/* Copies what is new in one file. 1: something was; 0: nothing, or there is no file; -1: err. */
static int copy_new(struct logs *logs, int which, struct error *err)
{
    char buffer[1 << 16];
    int fd = open(logs->paths[which], O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT
                   ? 0
                   : error_set(err, ERROR_RESOURCE, "open %s: %s", logs->paths[which], strerror(errno));
    }
    FILE *out = which == 0 ? stdout : stderr;
    ssize_t count;
    int result = 0;
    while ((count = pread(fd, buffer, sizeof buffer, logs->printed[which])) > 0) {
        logs->printed[which] += count;
        result = 1;
        if (fwrite(buffer, 1, (size_t)count, out) != (size_t)count || fflush(out) != 0) {
            result = error_set(err, ERROR_RESOURCE, "write the log: %s", strerror(errno));
            break;
        }
    }
    close(fd);
    return result;
}

/* The attempt asked for, as the store has it; false: there is none. */
static bool attempt_ended(const struct logs *logs, const json_t *trial, bool *ended)
{
    size_t i;
    json_t *attempt;
    json_array_foreach(json_object_get(trial, "attempts"), i, attempt)
    {
        if (json_get_integer(attempt, "attempt", 0) == logs->attempt) {
            *ended = strcmp(json_get_string(attempt, "outcome", ""), "running") != 0;
            return true;
        }
    }
    return false;
}

static json_t *ask_trial(const struct logs *logs, struct error *err)
{
    json_t *body = json_pack("{s:s?, s:I}", "sweep", logs->sweep, "trial", (json_int_t)logs->trial);
    json_t *trial = query_ask(&logs->query, "show", body, err);
    json_decref(body);
    return trial;
}

/* Finds the sweep's id and the attempt, and from them the files. */
static int find_files(struct logs *logs, struct error *err)
{
    static const char *const names[] = {"stdout", "stderr"};
    json_t *sweep = query_sweep(&logs->query, logs->sweep, err);
    json_t *trial = sweep != NULL ? ask_trial(logs, err) : NULL;
    int result = trial != NULL ? 0 : -1;
    if (trial != NULL) {
        const json_t *attempts = json_object_get(trial, "attempts");
        const json_t *newest = json_array_get(attempts, json_array_size(attempts) - 1);
        bool ended;
        logs->attempt = logs->attempt == 0 ? json_get_integer(newest, "attempt", 0) : logs->attempt;
        if (!attempt_ended(logs, trial, &ended)) {
            result = logs->attempt == 0 ? error_set(err, ERROR_USAGE, "trial %lld has not started yet",
                                                    (long long)logs->trial)
                                        : error_set(err, ERROR_USAGE, "trial %lld has no attempt %lld",
                                                    (long long)logs->trial, (long long)logs->attempt);
        }
    }
    for (int i = 0; result == 0 && i < 2; i++) {
        struct text path;
        text_init(&path);
        text_printf(&path, "%s.files/%s/trial-%06lld/attempt-%lld/%s", query_database(&logs->query),
                    json_get_string(sweep, "id", ""), (long long)logs->trial, (long long)logs->attempt,
                    names[i]);
        logs->paths[i] = text_steal(&path);
        result = logs->paths[i] != NULL ? 0 : error_set(err, ERROR_MEMORY, "no memory for a path");
    }
    json_decref(trial);
    json_decref(sweep);
    return result;
}

/* Until the attempt has ended and nothing more came. */
static int follow(struct logs *logs, struct error *err)
{
    for (;;) {
        bool ended = true;
        json_t *trial = ask_trial(logs, err);
        if (trial == NULL) {
            return -1;
        }
        attempt_ended(logs, trial, &ended);
        json_decref(trial);
        int out = copy_new(logs, 0, err);
        int errors = out >= 0 ? copy_new(logs, 1, err) : -1;
        if (out < 0 || errors < 0) {
            return -1;
        }
        if (ended) {
            return 0;
        }
        usleep(FOLLOW_MS * 1000);
    }
}

static int print_logs(struct logs *logs)
{
    struct error err = {0};
    int result = find_files(logs, &err);
    bool kept = result == 0 && (file_exists(logs->paths[0]) || file_exists(logs->paths[1]));
    if (result == 0 && !kept && !logs->follow) {
        fprintf(stderr,
                "rung logs: attempt %lld of trial %lld printed nothing that was kept (%s); rung show has its "
                "error\n",
                (long long)logs->attempt, (long long)logs->trial, logs->paths[0]);
    } else if (result == 0 && logs->follow) {
        result = follow(logs, &err);
    } else if (result == 0) {
        result = copy_new(logs, 0, &err) < 0 || copy_new(logs, 1, &err) < 0 ? -1 : 0;
    }
    free(logs->paths[0]);
    free(logs->paths[1]);
    return result == 0 ? EXIT_DONE : command_fail("logs", &err);
}

int command_logs(int argc, char **argv)
{
    struct logs logs = {0};
    int code;
    options_start();
    while ((code = options_next("logs", argc, argv, options_table)) != -1) {
        if (code == 'h') {
            fputs(usage, stdout);
            return EXIT_DONE;
        }
        if (code == 'f') {
            logs.follow = true;
        } else if (code == OPTION_DB) {
            logs.query.db = optarg;
        } else if (code == OPTION_ATTEMPT && query_integer(optarg, &logs.attempt) && logs.attempt > 0) {
            continue;
        } else {
            return code == OPTION_ATTEMPT
                       ? command_usage_error("logs", "--attempt '%s': a number from 1 up", optarg)
                       : EXIT_USAGE;
        }
    }
    int count = argc - optind;
    if (count < 1 || count > 2) {
        return command_usage_error("logs", "SWEEP and TRIAL are expected, found %d arguments", count);
    }
    logs.sweep = count == 2 ? argv[optind] : NULL;
    if (!query_integer(argv[argc - 1], &logs.trial)) {
        return command_usage_error("logs", "TRIAL '%s': a number from 0 up", argv[argc - 1]);
    }
    return print_logs(&logs);
}
