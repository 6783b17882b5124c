/* rung status, pause, resume, stop: a word with a live coordinator. */
#include "cli/command.h"

#include "base/json.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/final_table.h"
#include "cli/listing.h"
#include "cli/options.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_ENDPOINT "tcp://127.0.0.1:7155"
#define WORKERS_SHOWN 16

enum { OPTION_NOW = 1000, OPTION_CONFIG, OPTION_KEY, OPTION_INSECURE, OPTION_FORMAT };

static const struct option options_table[] = {{"now", no_argument, NULL, OPTION_NOW},
                                              {"config", required_argument, NULL, OPTION_CONFIG},
                                              {"server-key", required_argument, NULL, OPTION_KEY},
                                              {"insecure", no_argument, NULL, OPTION_INSECURE},
                                              {"format", required_argument, NULL, OPTION_FORMAT},
                                              {"help", no_argument, NULL, 'h'},
                                              {NULL, 0, NULL, 0}};

struct operator_word {
    const char *name, *what;
    enum message_type type;
};

static const struct operator_word status_word = {"status", "Shows the state of the coordinator's sweep.",
                                                 MESSAGE_STATUS};
static const struct operator_word pause_word = {
    "pause", "Starts no more trials until 'rung resume'; running ones go on.", MESSAGE_PAUSE};
static const struct operator_word resume_word = {"resume", "Goes on after 'rung pause'.", MESSAGE_RESUME};
static const struct operator_word stop_word = {
    "stop", "Ends the sweep: no new trials, running ones finish;\nwith --now they checkpoint and end.",
    MESSAGE_STOP};

static void print_usage(const struct operator_word *word)
{
    printf("usage: rung %s [ENDPOINT] [OPTION]...\n%s\n"
           "ENDPOINT is tcp://HOST:PORT, ipc://PATH or @FILE; default RUNG_ENDPOINT, else\n" DEFAULT_ENDPOINT
           ".\n"
           "\n",
           word->name, word->what);
    if (word->type == MESSAGE_STOP)
        puts("  --now             do not wait for running trials");
    puts("  --format F        table (default) or json\n"
         "  --config DIR      folder of the keys (default ~/.config/rung)\n"
         "  --server-key KEY  the coordinator's public key (default: that folder's)\n"
         "  --insecure        the coordinator was started with --insecure");
}

static void append_field(struct text *text, const char *name, const char *value)
{
    text_printf(text, "%-8s %s", name, value);
}

static void append_counts(struct text *text, const json_t *status)
{
    static const char *const counted[] = {"waiting", "running", "paused",    "completed",
                                          "stopped", "failed",  "cancelled", NULL};
    const json_t *trials = json_object_get(status, "trials");
    int64_t total = json_get_integer(trials, "total", -1);
    append_field(text, "trials", "");
    text_printf(text, "%" PRId64, json_get_integer(trials, "proposed", 0));
    if (total >= 0)
        text_printf(text, " of %" PRId64, total);
    for (size_t i = 0; counted[i]; i++) {
        int64_t count = json_get_integer(trials, counted[i], 0);
        if (count > 0)
            text_printf(text, ", %" PRId64 " %s", count, counted[i]);
    }
    text_printf(text, "; %.0f epochs trained", json_get_number(status, "resource_done", 0));
}

/* Takes the text. */
static void print_wrapped(struct text *line)
{
    struct text text;
    text_init(&text);
    text_wrap(&text, line->data ? line->data : "", terminal_width(STDOUT_FILENO), 9);
    fputs(text.data ? text.data : "", stdout);
    text_release(&text);
    text_release(line);
}

static void print_overview(const json_t *status)
{
    struct text line;
    const json_t *best = json_object_get(status, "best");
    printf("%-8s %s (%s), %s%s\n", "sweep", json_get_string(status, "name", ""),
           json_get_string(status, "sweep", ""), json_get_string(status, "state", ""),
           json_is_true(json_object_get(status, "refitting")) ? ", training the winner again" : "");
    text_init(&line);
    append_counts(&line, status);
    print_wrapped(&line);
    if (json_is_object(best))
        printf("%-8s %.6g (trial %" PRId64 " at %" PRId64 ")\n", "best",
               json_get_number(best, "objective", 0), json_get_integer(best, "trial", 0),
               json_get_integer(best, "resource", 0));
    int64_t slots = json_get_integer(status, "slots", 0);
    printf("%-8s %" PRId64 ", with %" PRId64 " slot%s, %" PRId64 " busy\n", "workers",
           json_get_integer(status, "workers", 0), slots, slots == 1 ? "" : "s",
           json_get_integer(status, "busy_slots", 0));
    size_t index;
    json_t *note;
    json_array_foreach(json_object_get(status, "notes"), index, note)
    {
        text_init(&line);
        append_field(&line, "note", json_is_string(note) ? json_string_value(note) : "");
        print_wrapped(&line);
    }
}

/* Those that are there first, as many as fit a screen. */
static json_t *worker_rows(const json_t *workers, size_t *left_out)
{
    json_t *rows = json_array(), *worker;
    size_t index;
    *left_out = 0;
    for (int there = 1; there >= 0; there--) {
        json_array_foreach(workers, index, worker)
        {
            if (json_is_true(json_object_get(worker, "connected")) != (there == 1))
                continue;
            if (json_array_size(rows) == WORKERS_SHOWN) {
                ++*left_out;
                continue;
            }
            json_t *row = json_copy(worker);
            double silent = json_get_number(worker, "last_seen_seconds", 0);
            json_object_set_new(row, "silent", json_integer((json_int_t)silent));
            json_object_set_new(row, "there", json_string(there ? "connected" : "gone"));
            json_array_append_new(rows, row);
        }
    }
    return rows;
}

static int print_workers(const json_t *workers, struct error *err)
{
    static const char *const columns[][2] = {
        {"name", "worker"},     {"there", "state"},           {"busy", "busy"}, {"slots", "slots"},
        {"devices", "devices"}, {"silent", "silent for (s)"}, {"host", "host"}};
    struct listing listing;
    struct text text;
    size_t more;
    if (json_array_size(workers) == 0)
        return 0;
    json_t *rows = worker_rows(workers, &more);
    text_init(&text);
    listing_init(&listing);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        listing_add(&listing, columns[i][0], columns[i][1], LISTING_VALUE);
    int result = listing_text(&listing, rows, terminal_width(STDOUT_FILENO), &text, NULL, err);
    if (result == 0)
        printf("\n%s", text.data);
    if (more > 0)
        printf("(and %zu more: --format json)\n", more);
    listing_release(&listing);
    text_release(&text);
    json_decref(rows);
    return result;
}

static int print_final(const json_t *status, struct error *err)
{
    struct text text;
    json_t *row = json_pack("{s:O?, s:I}", "final", json_object_get(status, "final"), "best_trial",
                            (json_int_t)json_get_integer(json_object_get(status, "best"), "trial", 0));
    text_init(&text);
    int result = final_append(&text, row, err);
    if (result == 0 && text.size > 0)
        printf("\n%s", text.data);
    text_release(&text);
    json_decref(row);
    return result;
}

static int print_status(const char *command, const json_t *status)
{
    struct error err = {0};
    print_overview(status);
    if (print_workers(json_object_get(status, "worker_list"), &err) != 0 || print_final(status, &err) != 0)
        return command_fail(command, &err);
    return EXIT_DONE;
}

static int ask(const struct operator_word *word, const struct client *client, bool now, bool as_json)
{
    struct error err = {0};
    struct message request;
    message_init(&request, word->type);
    request.now = now;
    json_t *status = client_ask(client, &request, &err);
    if (!status)
        return command_fail(word->name, &err);
    int result = as_json ? query_print_json(word->name, status) : print_status(word->name, status);
    json_decref(status);
    return result;
}

static int command_operator(const struct operator_word *word, int argc, char **argv)
{
    struct client client = {0};
    bool now = false, as_json = false;
    int code;
    options_start();
    while ((code = options_next(word->name, argc, argv, options_table)) != -1) {
        switch (code) {
        case 'h':
            print_usage(word);
            return EXIT_DONE;
        case OPTION_CONFIG:
            client.config = optarg;
            break;
        case OPTION_KEY:
            client.server_key = optarg;
            break;
        case OPTION_INSECURE:
            client.insecure = true;
            break;
        case OPTION_FORMAT:
            as_json = strcmp(optarg, "json") == 0;
            if (!as_json && strcmp(optarg, "table") != 0)
                return command_usage_error(word->name, "--format is table or json, not '%s'", optarg);
            break;
        case OPTION_NOW:
            now = true;
            if (word->type == MESSAGE_STOP)
                break;
            return command_usage_error(word->name, "--now is an option of 'rung stop'");
        default:
            return EXIT_USAGE;
        }
    }
    if (argc - optind > 1)
        return command_usage_error(word->name, "one ENDPOINT at a time; found also '%s'", argv[optind + 1]);
    client.endpoint = optind < argc ? argv[optind] : getenv("RUNG_ENDPOINT") ? NULL : DEFAULT_ENDPOINT;
    return ask(word, &client, now, as_json);
}

int command_status(int argc, char **argv)
{
    return command_operator(&status_word, argc, argv);
}

int command_pause(int argc, char **argv)
{
    return command_operator(&pause_word, argc, argv);
}

int command_resume(int argc, char **argv)
{
    return command_operator(&resume_word, argc, argv);
}

int command_stop(int argc, char **argv)
{
    return command_operator(&stop_word, argc, argv);
}
