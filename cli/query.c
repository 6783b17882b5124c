/* Questions of the commands, and printing of answers. */
#include "cli/query.h"

#include "base/json.h"
#include "cli/command.h"
#include "coordinator/store.h"
#include "coordinator/store_lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int query_option(struct query_options *options, const char *command, int code, const char *value)
{
    switch (code) {
    case QUERY_DB:
        options->db = value;
        return 0;
    case QUERY_ENDPOINT:
        options->live = true;
        options->client.endpoint = value;
        return 0;
    case QUERY_CONFIG:
        options->client.config = value;
        return 0;
    case QUERY_KEY:
        options->client.server_key = value;
        return 0;
    case QUERY_INSECURE:
        options->client.insecure = true;
        return 0;
    case QUERY_FORMAT:
        if (listing_format_parse(value, &options->format)) {
            return 0;
        }
        command_usage_error(command, "--format '%s': table, json or csv", value);
        return -1;
    default:
        return 1;
    }
}

int query_text_check(const char *command, const char *option, const char *value)
{
    json_t *text = json_string(value);
    int result = text != NULL ? 0 : command_usage_error(command, "%s: the value is not UTF-8 text", option);
    json_decref(text);
    return result;
}

const char *query_database(const struct query_options *options)
{
    const char *variable = getenv("RUNG_DB");
    return options->db != NULL ? options->db : variable != NULL && variable[0] != '\0' ? variable : "rung.db";
}

/* Adds "live" to sweeps: it has not ended, and a coordinator serves it. A database has one coordinator at a
 * time, and so has a lock. */
static void mark_live(json_t *sweeps, bool served)
{
    size_t i;
    json_t *sweep;
    json_array_foreach(sweeps, i, sweep)
    {
        bool ended = !json_is_null(json_object_get(sweep, "ended_ms"));
        json_object_set_new(sweep, "live", json_boolean(served && !ended));
    }
}

json_t *query_ask(const struct query_options *options, const char *query, json_t *body, struct error *err)
{
    /* Without its body the question would be another one. */
    if (body == NULL && strcmp(query, "list") != 0) {
        error_set(err, ERROR_MEMORY, "no memory for the question");
        return NULL;
    }
    if (options->live) {
        json_t *answer = client_query(&options->client, query, body, err);
        if (answer != NULL && query_order(query, answer) != 0) {
            error_set(err, ERROR_MEMORY, "no memory for the answer");
            json_decref(answer);
            return NULL;
        }
        mark_live(strcmp(query, "list") == 0 ? answer : NULL, true);
        return answer;
    }
    struct store *store = store_open(query_database(options), STORE_READ, NULL, err);
    json_t *answer = store != NULL ? store_answer(store, NULL, query, body, err) : NULL;
    store_close(store);
    if (answer != NULL && strcmp(query, "list") == 0) {
        mark_live(answer, store_lock_is_held(query_database(options)));
    }
    return answer;
}

json_t *query_sweep(const struct query_options *options, const char *asked, struct error *err)
{
    json_t *sweeps = query_ask(options, "list", NULL, err);
    json_t *found = NULL;
    size_t i;
    json_t *sweep;
    json_array_foreach(sweeps, i, sweep)
    {
        bool is_id = asked != NULL && strcmp(json_get_string(sweep, "id", ""), asked) == 0;
        bool is_name = asked == NULL || strcmp(json_get_string(sweep, "name", ""), asked) == 0;
        if (is_id || (is_name && found == NULL)) {
            found = sweep;
        }
    }
    if (sweeps != NULL && found == NULL) {
        const char *where = options->live ? "the coordinator" : query_database(options);
        if (asked == NULL) {
            error_set(err, ERROR_USAGE, "%s has no sweep yet", where);
        } else {
            error_set(err, ERROR_USAGE, "%s has no sweep %.100s; rung list shows them", where, asked);
        }
    }
    json_incref(found);
    json_decref(sweeps);
    return found;
}

/* A full disk or a closed pipe shows only when the buffer goes out. */
static int put_out(const char *command, const char *text)
{
    if (fputs(text, stdout) < 0 || fflush(stdout) != 0) {
        fprintf(stderr, "rung %s: write the result: %s\n", command, strerror(errno));
        return EXIT_RESOURCE;
    }
    return EXIT_DONE;
}

int query_print_json(const char *command, const json_t *value)
{
    char *pretty = json_pretty(value);
    if (pretty == NULL) {
        return command_fail(command, &(struct error){ERROR_MEMORY, "no memory for the result"});
    }
    int result = put_out(command, pretty);
    if (result == EXIT_DONE && (pretty[0] == '\0' || pretty[strlen(pretty) - 1] != '\n')) {
        result = put_out(command, "\n");
    }
    free(pretty);
    return result;
}

int query_print(const struct query_options *options, const char *command, const struct listing *shown,
                const struct listing *all, const json_t *rows)
{
    struct text text;
    struct error err = {0};
    size_t left_out = 0;
    if (options->format == LISTING_JSON) {
        return query_print_json(command, rows);
    }
    text_init(&text);
    int result = options->format == LISTING_CSV
                     ? listing_csv(all, rows, &text, &err)
                     : listing_text(shown, rows, terminal_width(STDOUT_FILENO), &text, &left_out, &err);
    int code =
        result == 0 ? put_out(command, text.data != NULL ? text.data : "") : command_fail(command, &err);
    if (code == EXIT_DONE && left_out > 0) {
        struct text note;
        text_init(&note);
        bool chosen = strcmp(command, "leaderboard") == 0;
        listing_append_left_out(&note, shown, left_out,
                                chosen ? "--columns, --format csv or a wider terminal"
                                       : "--format csv or a wider terminal",
                                terminal_width(STDERR_FILENO));
        fputs(note.data != NULL ? note.data : "", stderr);
        text_release(&note);
    }
    text_release(&text);
    return code;
}

bool query_integer(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}
