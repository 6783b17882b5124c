/* rung status, pause, resume, stop: a word with a live coordinator. */
#include "cli/command.h"

#include "base/json.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ENDPOINT "tcp://127.0.0.1:7155"

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
    "stop", "Ends the sweep: no new trials, running ones finish; with --now they checkpoint and end.",
    MESSAGE_STOP};

static void print_usage(const struct operator_word *word)
{
    printf("usage: rung %s [ENDPOINT] [OPTION]...\n%s\n"
           "ENDPOINT is tcp://HOST:PORT, ipc://PATH or @FILE; default RUNG_ENDPOINT, else " DEFAULT_ENDPOINT
           "\n\n",
           word->name, word->what);
    if (word->type == MESSAGE_STOP)
        puts("  --now             do not wait for running trials");
    puts("  --format F        table (default) or json\n"
         "  --config DIR      folder of the keys (default ~/.config/rung)\n"
         "  --server-key KEY  the coordinator's public key (default: the one in that folder)\n"
         "  --insecure        the coordinator was started with --insecure");
}

static void print_final(const json_t *final)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *) final, name, value)
    {
        double mean, sd;
        if (strncmp(name, "test_", 5) == 0 && json_number_get(json_object_get(value, "mean"), &mean) &&
            json_number_get(json_object_get(value, "sd"), &sd))
            printf("%-11s %s %.5g +- %.2g\n", "winner", name, mean, sd);
    }
}

static void print_status(const json_t *status)
{
    static const char *const counted[] = {"waiting", "running", "paused",    "completed",
                                          "stopped", "failed",  "cancelled", NULL};
    const json_t *trials = json_object_get(status, "trials");
    const json_t *best = json_object_get(status, "best");
    int64_t total = json_get_integer(trials, "total", -1);
    printf("%-11s %s (%s)\n%-11s %s\n%-11s %" PRId64, "sweep", json_get_string(status, "name", ""),
           json_get_string(status, "sweep", ""), "state", json_get_string(status, "state", ""), "trials",
           json_get_integer(trials, "proposed", 0));
    if (total >= 0)
        printf(" of %" PRId64, total);
    for (size_t i = 0; counted[i]; i++) {
        int64_t count = json_get_integer(trials, counted[i], 0);
        if (count > 0)
            printf(", %" PRId64 " %s", count, counted[i]);
    }
    printf("\n%-11s %" PRId64 ", slots %" PRId64 " (%" PRId64 " busy)\n", "workers",
           json_get_integer(status, "workers", 0), json_get_integer(status, "slots", 0),
           json_get_integer(status, "busy_slots", 0));
    if (json_is_object(best))
        printf("%-11s %.6g (trial %" PRId64 " at %" PRId64 ")\n", "best",
               json_get_number(best, "objective", 0), json_get_integer(best, "trial", 0),
               json_get_integer(best, "resource", 0));
    print_final(json_object_get(status, "final"));
    size_t index;
    json_t *note;
    json_array_foreach(json_object_get(status, "notes"), index, note)
    {
        if (json_is_string(note))
            printf("%-11s %s\n", "note", json_string_value(note));
    }
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
    char *text = as_json ? json_pretty(status) : NULL;
    if (text)
        puts(text);
    else
        print_status(status);
    free(text);
    json_decref(status);
    return EXIT_DONE;
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
