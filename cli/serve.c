/* Serving a sweep: options, opening, signals, progress, the end. */
#include "cli/serve.h"

#include "base/files.h"
#include "base/json.h"
#include "cli/addresses.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/unranked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void serve_options_init(struct serve_options *options)
{
    memset(options, 0, sizeof(*options));
    const char *db = getenv("RUNG_DB");
    options->db = db && *db ? db : "rung.db";
}

bool serve_option(struct serve_options *options, int code, char *value)
{
    switch (code) {
    case OPTION_DB:
        options->db = value;
        return true;
    case OPTION_NAME:
        options->name = value;
        return true;
    case OPTION_SET:
        /* One place stays NULL: the list's end. More are told by serve_open. */
        if (options->override_count < sizeof(options->overrides) / sizeof(options->overrides[0]) - 1)
            options->overrides[options->override_count] = value;
        options->override_count++;
        return true;
    case OPTION_ENDPOINT_FILE:
        options->endpoint_file = value;
        return true;
    case OPTION_CONFIG:
        options->config = value;
        return true;
    case OPTION_RESUME:
        options->resume = true;
        return true;
    case OPTION_LINGER:
        options->linger = true;
        return true;
    case OPTION_INSECURE:
        options->insecure = true;
        return true;
    case 'q':
        options->quiet = true;
        return true;
    case 'v':
        options->verbose = true;
        return true;
    default:
        return false;
    }
}

/* The spec a stored sweep was made from. */
static int restore_spec(struct serve *serve, const char *sweep_name, struct error *err)
{
    struct store *store = store_open(serve->options->db, STORE_READ, NULL, err);
    if (!store)
        return -1;
    struct sweep_record sweep;
    int found = store_find_sweep(store, sweep_name, &sweep, err);
    store_close(store);
    if (found < 0)
        return -1;
    if (found == 0 && !sweep_name)
        return error_set(err, ERROR_USAGE, "there is no sweep in %s to resume", serve->options->db);
    if (found == 0)
        return error_set(err, ERROR_USAGE,
                         "there is no sweep '%s' in %s (and no such file): rung list --db %s", sweep_name,
                         serve->options->db, serve->options->db);
    int result = cli_restore_spec(sweep.normalised, serve->options->overrides, &serve->spec, err);
    struct record record = {.type = RECORD_SWEEP, .sweep = sweep};
    record_release(&record);
    return result;
}

static int open_spec(struct serve *serve, const char *what, struct error *err)
{
    struct serve_options *options = serve->options;
    if (options->override_count >= sizeof(options->overrides) / sizeof(options->overrides[0]))
        return error_set(err, ERROR_USAGE, "more than 63 --set options; put them into the spec");
    bool stored = options->resume && (!what || (strcmp(what, "-") != 0 && !file_exists(what)));
    if (stored)
        return restore_spec(serve, what, err);
    return cli_load_spec(what, options->overrides, options->name, &serve->spec, err);
}

/* Notes on how a value was read are for `rung check`. */
static void print_warnings(const struct serve *serve)
{
    size_t index;
    json_t *note;
    json_array_foreach(serve->spec.notes, index, note)
    {
        if (strcmp(json_get_string(note, "level", ""), "warning") != 0)
            continue;
        fprintf(stderr, "%s:%d: warning: %s\n", serve->spec.file, (int)json_get_integer(note, "line", 0),
                json_get_string(note, "message", ""));
    }
}

static void request_stop(void *server, int level)
{
    server_request_stop(server, level);
}

struct each {
    struct serve *serve;
    void (*each_f)(void *user, struct serve *serve);
    void *user;
};

static void on_progress(void *user, const struct engine_counts *counts, const struct engine *engine)
{
    (void)engine;
    struct each *each = user;
    progress_update(&each->serve->progress, counts);
    if (each->each_f)
        each->each_f(each->user, each->serve);
}

/* One line: the first address of TCP, as others can use it. */
static int write_endpoint_file(const struct serve *serve, struct error *err)
{
    const char *path = serve->options->endpoint_file;
    if (!path)
        return 0;
    char line[ADDRESS_SIZE + 1], addresses[1][ADDRESS_SIZE];
    const char *address, *best = server_address(serve->server, 0);
    for (size_t i = 0; (address = server_address(serve->server, i)) != NULL; i++) {
        if (strncmp(address, "tcp://", 6) == 0) {
            best = address;
            break;
        }
    }
    addresses_usable(best, addresses, 1);
    int size = snprintf(line, sizeof(line), "%s\n", addresses[0]);
    return file_write(path, line, (size_t)size, 0644, err);
}

static void init_log(struct serve *serve)
{
    serve->log.fd = STDERR_FILENO;
    serve->log.level = serve->options->verbose ? LOG_LEVEL_DEBUG
                       : serve->options->quiet ? LOG_LEVEL_ERROR
                                               : LOG_LEVEL_WARNING;
    serve->log.write_f = progress_log;
    serve->log.user = &serve->progress;
}

int serve_load(struct serve *serve, const char *command, struct serve_options *options, const char *what)
{
    struct error err = {0};
    serve->command = command;
    serve->options = options;
    if (open_spec(serve, what, &err) != 0)
        return command_fail(command, &err);
    progress_init(&serve->progress, serve->spec.metric, &serve->spec.stopping, options->quiet);
    init_log(serve);
    if (!options->quiet)
        print_warnings(serve);
    if (options->insecure)
        fprintf(stderr,
                "rung %s: --insecure: anyone who reaches this address can read and change the sweep\n",
                command);
    else if (security_for_coordinator(&serve->security, options->config, &err) != 0)
        return command_fail(command, &err);
    return 0;
}

static void list_data_files(struct serve *serve)
{
    static const char *const keys[DATA_FILE_KEYS] = {"path", "labels", "test_path", "test_labels"};
    const json_t *data = json_object_get(serve->spec.train, "data");
    size_t count = 0;
    for (size_t i = 0; i < DATA_FILE_KEYS; i++) {
        const char *path = json_get_string(data, keys[i], NULL);
        if (path)
            serve->data_files[count++] = (struct data_file){keys[i], path};
    }
    serve->data_files[count] = (struct data_file){NULL, NULL};
}

int serve_open(struct serve *serve)
{
    struct error err = {0};
    const struct serve_options *options = serve->options;
    struct server_settings settings = {
        .spec = &serve->spec,
        .db = options->db,
        .binds = serve->binds,
        .security = options->insecure ? NULL : &serve->security,
        .own_worker = serve->own_worker,
        .data_files = serve->data_files,
        .baseline = true,
        .resume = options->resume,
        .linger = options->linger,
        .log = &serve->log,
        .progress_f = on_progress,
    };
    struct each *each = calloc(1, sizeof(*each));
    if (!each)
        return EXIT_RESOURCE;
    list_data_files(serve);
    each->serve = serve;
    settings.user = each;
    serve->each = each;
    interrupt_hold(); /* from here on there is something to lose */
    serve->server = server_create(&settings, &err);
    if (!serve->server || write_endpoint_file(serve, &err) != 0)
        return command_fail(serve->command, &err);
    return 0;
}

int serve_run(struct serve *serve, void (*each_f)(void *user, struct serve *serve), void *user)
{
    struct error err = {0};
    serve->each->each_f = each_f;
    serve->each->user = user;
    interrupt_pass(request_stop, serve->server);
    int result = server_run(serve->server, &err);
    interrupt_hold();
    progress_end(&serve->progress);
    if (result < 0)
        return command_fail(serve->command, &err);
    if (result == 1) {
        fprintf(stderr, "rung %s: interrupted; nothing is lost. Go on with: rung %s --resume %s --db %s\n",
                serve->command, serve->command, serve->spec.name, serve->options->db);
        return EXIT_INTERRUPTED;
    }
    /* Without a metric nothing is ranked, and nothing was asked to be. */
    bool good =
        serve->spec.metric ? server_has_ranked_trial(serve->server) : serve->progress.counts.completed > 0;
    if (good)
        return EXIT_DONE;
    if (unranked_explain(serve->command, serve->options->db, server_sweep_id(serve->server),
                         serve->spec.metric, &err) != 0)
        command_fail(serve->command, &err);
    return EXIT_UNRANKED;
}

void serve_print_start(const struct serve *serve)
{
    fprintf(stderr, "sweep %s (%s) in %s, seed %llu\n", serve->spec.name, server_sweep_id(serve->server),
            serve->options->db, (unsigned long long)server_seed(serve->server));
}

void serve_print_attach(const char *bound, const char *before)
{
    char addresses[8][ADDRESS_SIZE];
    size_t count = addresses_usable(bound, addresses, 8);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%srung worker %s\n", before, addresses[i]);
}

void serve_close(struct serve *serve)
{
    server_destroy(serve->server);
    progress_release(&serve->progress);
    security_release(&serve->security);
    spec_release(&serve->spec);
    free(serve->each);
}
