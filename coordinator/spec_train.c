/* `train`: the settings of the built-in trainer, given nested or dotted, against the caller's table. */
#include "coordinator/spec_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_SIZE 200

/* Puts a value under its dotted name into nested objects; takes `value`. */
static void put_nested(struct reader *reader, json_t *object, const char *name, json_t *value)
{
    const char *dot;
    char part[KEY_SIZE];
    while ((dot = strchr(name, '.'))) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - name), name);
        json_t *inner = json_object_get(object, part);
        if (!inner) {
            inner = json_object();
            json_object_set_new(object, part, inner);
        }
        object = inner;
        name = dot + 1;
    }
    if (!value || json_object_set_new(object, name, value) != 0) {
        reader->failed = true;
    }
}

static const json_t *get_nested(const json_t *object, const char *name)
{
    const char *dot;
    char part[KEY_SIZE];
    while ((dot = strchr(name, '.')) && object) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - name), name);
        object = json_object_get(object, part);
        name = dot + 1;
    }
    return object ? json_object_get(object, name) : NULL;
}

/* Do settings live below this name ("data" of data.path)? */
static bool is_group(const struct reader *reader, const char *name)
{
    size_t length = strlen(name);
    for (const struct setting *setting = reader->settings; setting->name; setting++) {
        if (strncmp(setting->name, name, length) == 0 && setting->name[length] == '.') {
            return true;
        }
    }
    return false;
}

/* What may stand at this level: "path, target, ..." below data; NULL-terminated, free() the array and each.
 */
static void problem_unknown(struct reader *reader, const struct node *key, const char *group,
                            const char *name)
{
    const char **names = setting_names(reader, false);
    const char *ours = setting_synonym(name);
    const char *nearest = names && ours && word_is_in(ours, names) ? ours
                          : names                                  ? nearest_word(name, names)
                                                                   : NULL;
    const char *own = nearest_word(key->text, names ? names : (const char *const[]){NULL});
    struct text text;
    text_init(&text);
    size_t length = strlen(group);
    for (size_t i = 0; names && names[i]; i++) {
        const char *end = strchr(names[i], '.');
        bool inside = length == 0 || (strncmp(names[i], group, length) == 0 && names[i][length] == '.');
        const char *rest = inside && length > 0 ? names[i] + length + 1 : names[i];
        int size = (int)(length == 0 && end ? (size_t)(end - names[i]) : strlen(rest));
        bool repeated = i > 0 && length == 0 && end && strncmp(names[i - 1], names[i], (size_t)size + 1) == 0;
        if (inside && !repeated) {
            text_printf(&text, "%s%.*s", text.size > 0 ? ", " : "", size, rest);
        }
    }
    nearest = nearest ? nearest : own;
    if (nearest && !get_nested(reader->spec->train, nearest)) {
        put_nested(reader, reader->spec->train, nearest, json_null()); /* misspelt is not left out, too */
    }
    if (nearest && length > 0 && strncmp(nearest, group, length) == 0 && nearest[length] == '.') {
        nearest += length + 1;
    }
    char where[KEY_SIZE + 8];
    snprintf(where, sizeof where, "train%s%s", length ? "." : "", group);
    problem_at(reader, key, where, "found \"%.60s\"%s%s%s, accepted %s", key->text,
               nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "",
               text.data ? text.data : "");
    text_release(&text);
    free(names);
}

static void read_level(struct reader *reader, const struct node *map, const char *group);

/* A parameter's values replace the setting in each trial: one that is set, above all by --set, does nothing.
 */
static void note_overridden(struct reader *reader, const struct node *value, const char *name)
{
    const struct node *parameters = node_find(reader->tree.root, "parameters");
    char key[KEY_SIZE + 8];
    if (parameters && parameters->kind == NODE_MAP && node_find(parameters, name)) {
        snprintf(key, sizeof key, "train.%.*s", KEY_SIZE - 1, name);
        note_at(reader, value, key, "this value is never used: parameters.%s has those of each trial", name);
    }
}

static void read_entry(struct reader *reader, const struct node_entry *entry, const char *group)
{
    char name[KEY_SIZE], key[KEY_SIZE + 8];
    snprintf(name, sizeof name, "%s%s%.90s", group, *group ? "." : "", entry->key->text);
    snprintf(key, sizeof key, "train.%s", name);
    const struct setting *setting = setting_find(reader->settings, name);
    if (setting && get_nested(reader->spec->train, name)) {
        problem_at(reader, entry->key, key, "is given twice, nested and dotted");
    } else if (setting) {
        json_t *value = setting_read(reader, setting, entry->value, key);
        /* A refused value is kept as null, so that it does not count as left out. */
        put_nested(reader, reader->spec->train, name, value ? value : json_null());
        note_overridden(reader, entry->value, name);
    } else if (!is_group(reader, name)) {
        problem_unknown(reader, entry->key, group, name);
    } else if (entry->value->kind == NODE_MAP) {
        if (!get_nested(reader->spec->train, name)) {
            put_nested(reader, reader->spec->train, name, json_object()); /* `final: {}` is given, too */
        }
        read_level(reader, entry->value, name);
    } else if (entry->value->kind != NODE_NULL) {
        problem_found(reader, entry->value, key, "a map of settings");
    }
}

static void read_level(struct reader *reader, const struct node *map, const char *group)
{
    for (size_t i = 0; i < map->count; i++) {
        read_entry(reader, &map->entries[i], group);
    }
}

/* What a scalar has to be only its help can say. */
static void problem_left_out(struct reader *reader, const struct node *where, const char *key,
                             const struct setting *setting)
{
    if ((setting->type == SETTING_SCALAR || setting->type == SETTING_SCALAR_LIST) && setting->help) {
        problem_at(reader, where, key, "found nothing, expected the %s", setting->help);
        return;
    }
    struct text text;
    text_init(&text);
    problem_at(reader, where, key, "found nothing, accepted %s", setting_accepted(setting, &text));
    text_release(&text);
}

static void fill_defaults(struct reader *reader, const struct node *where, const struct node *parameters)
{
    for (const struct setting *setting = reader->settings; setting->name; setting++) {
        char key[KEY_SIZE];
        if (get_nested(reader->spec->train, setting->name)) {
            continue;
        }
        if (setting->required && !(setting->searchable && node_find(parameters, setting->name))) {
            snprintf(key, sizeof key, "train.%s", setting->name);
            problem_left_out(reader, where, key, setting);
        } else if (setting->fallback) {
            struct error err;
            put_nested(reader, reader->spec->train, setting->name,
                       json_parse(setting->fallback, strlen(setting->fallback), &err));
        }
    }
}

/* A user's own program is refused with one error, not two. */
static bool names_program(const struct node *root)
{
    return node_find(root, "program") || node_find(root, "command");
}

void read_train(struct reader *reader, const struct node *root)
{
    const struct node *train = node_find(root, "train");
    const char *example = "{data: {path: data.csv, target: label}}";
    if (!train) {
        if (reader->settings && !names_program(root)) {
            problem_at(reader, root, "train",
                       "found nothing to run, accepted a map for the built-in trainer, such as %s", example);
        }
        return;
    }
    if (!read_map(reader, train, "train", example)) {
        return;
    }
    json_decref(reader->spec->train_given);
    reader->spec->train_given = node_to_json(train);
    if (!reader->settings) {
        json_decref(reader->spec->train);
        reader->spec->train = json_deep_copy(reader->spec->train_given);
        reader->failed = reader->failed || !reader->spec->train;
        return;
    }
    read_level(reader, train, "");
    fill_defaults(reader, train, node_find(root, "parameters"));
    reader->failed = reader->failed || !reader->spec->train_given;
}
