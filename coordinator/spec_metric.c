/* `metric`: what trials are ranked by. */
#include "coordinator/spec_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METRIC_EXAMPLE "{name: validation_loss, goal: minimize}"
#define TIE_METRIC "validation_loss"

/* Bigger is better for these, whatever stands before them in the name. */
static bool is_score(const char *name)
{
    static const char *const scores[] = {"accuracy", "f1", "auc", "r2", NULL};
    for (size_t i = 0; scores[i]; i++) {
        if (strstr(name, scores[i])) {
            return true;
        }
    }
    return false;
}

static void copy(struct reader *reader, char **target, const char *text)
{
    *target = strdup(text);
    reader->failed = reader->failed || !*target;
}

/* val_acc, accuracy, valid-loss: the end of the name under our prefix; NULL: nothing near. */
static const char *nearest_metric(const char *name, const char *const *names)
{
    char candidate[100];
    const char *end = strpbrk(name, "_-/");
    end = end && strncmp(name, "val", 3) == 0 ? end + 1 : name;
    snprintf(candidate, sizeof candidate, "validation_%.60s", strcmp(end, "acc") == 0 ? "accuracy" : end);
    const char *nearest = word_is_in(candidate, names) ? NULL : nearest_word(name, names);
    return nearest ? nearest : nearest_word(candidate, names);
}

static void problem_metric(struct reader *reader, const struct node *node, const char *name)
{
    struct text text;
    const char *nearest = nearest_metric(name, reader->options->metric_names);
    text_init(&text);
    words_join(&text, reader->options->metric_names);
    problem_found(reader, node, "metric.name", "%s%s%s%s", text.data ? text.data : "",
                  nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
    text_release(&text);
}

static void read_metric_name(struct reader *reader, const struct node *metric)
{
    const char *const *names = reader->options->metric_names;
    const struct node *node = node_find(metric, "name");
    const char *name;
    if (!node) {
        problem_at(reader, metric, "metric.name", "found nothing, accepted the name of a metric, such as %s",
                   METRIC_EXAMPLE);
        return;
    }
    if (!read_string(reader, node, "metric.name", &name)) {
        return;
    }
    if (names && !word_is_in(name, names)) {
        problem_metric(reader, node, name);
        return;
    }
    if (name[0] == '\0') {
        problem_found(reader, node, "metric.name", "the name of a metric");
        return;
    }
    copy(reader, &reader->spec->metric, name);
    /* An accuracy has few values and many ties; the loss behind it tells them apart. */
    if (strstr(name, "accuracy") && strncmp(name, "validation_", 11) == 0 &&
        (!names || word_is_in(TIE_METRIC, names))) {
        copy(reader, &reader->spec->tie_metric, TIE_METRIC);
    }
}

/* What is looked for the wrong way round costs the whole sweep: it is said before all else. */
static void put_last_note_first(struct reader *reader, size_t notes_before)
{
    json_t *notes = reader->spec->notes, *last = json_array_get(notes, notes_before);
    if (last) {
        json_incref(last);
        json_array_remove(notes, notes_before);
        reader->failed |= json_array_insert_new(notes, 0, last) != 0;
    }
}

static void read_goal(struct reader *reader, const struct node *metric)
{
    static const char *const goals[] = {"minimize", "maximize", NULL};
    const struct node *node = node_find(metric, "goal");
    const char *name = reader->spec->metric;
    size_t notes_before = json_array_size(reader->spec->notes);
    if (node) {
        reader->spec->maximize = read_choice(reader, node, "metric.goal", goals) == 1;
    } else if (name && is_score(name)) {
        note_at(reader, metric, "metric.goal",
                "goal is left out, so %s is minimized; write goal: maximize to look for the highest", name);
        put_last_note_first(reader, notes_before);
    }
    if (node && name && is_score(name) && !reader->spec->maximize && node->kind == NODE_STRING &&
        strcmp(node->text, "minimize") == 0) {
        note_at(reader, node, "metric.goal", "%s is minimized: the sweep looks for the lowest", name);
    }
}

void read_metric(struct reader *reader, const struct node *metric)
{
    static const char *const known[] = {"name", "goal", "objective", "impute", "impute_while_running", NULL};
    static const char *const later[] = {"target", "resource", NULL};
    static const char *const objectives[] = {"last", "best", NULL};
    if (!metric) {
        note_at(reader, reader->tree.root, "metric",
                "no metric is named, so trials run unranked; write metric: %s", METRIC_EXAMPLE);
        return;
    }
    const char *meant = metric->kind == NODE_STRING && reader->options->metric_names
                            ? nearest_metric(metric->text, reader->options->metric_names)
                            : NULL;
    if (meant) {
        problem_found(reader, metric, "metric", "a map, such as {name: %s, goal: %s}", meant,
                      is_score(meant) ? "maximize" : "minimize");
        return;
    }
    if (!read_map(reader, metric, "metric", METRIC_EXAMPLE)) {
        return;
    }
    check_keys(reader, metric, "metric", known, later, UNKNOWN_IGNORED);
    read_metric_name(reader, metric);
    read_goal(reader, metric);
    const struct node *objective = node_find(metric, "objective");
    if (objective && read_choice(reader, objective, "metric.objective", objectives) == 1) {
        reader->spec->objective = OBJECTIVE_BEST;
    }
}
