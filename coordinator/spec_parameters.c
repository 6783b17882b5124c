/* `parameters`: names against the settings, one distribution each, sorted by name. */
#include "coordinator/spec_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *setting_synonym(const char *name)
{
    static const struct {
        const char *theirs, *ours;
    } words[] = {
        {"lr", "learning_rate"},
        {"wd", "weight_decay"},
        {"bs", "batch_size"},
        {"layers", "hidden"},
        {"hidden_size", "hidden"},
        {"hidden_layers", "hidden"},
        {"hidden_layer_sizes", "hidden"},
        {"l2", "weight_decay"},
        {"eps", "epsilon"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(name, words[i].theirs) == 0) {
            return words[i].ours;
        }
    }
    return NULL;
}

static void problem_name(struct reader *reader, const struct node *key)
{
    const struct setting *setting = setting_find(reader->settings, key->text);
    const char **names = setting_names(reader, true);
    if (!names) {
        return;
    }
    const char *ours = setting_synonym(key->text);
    const char *nearest = ours && word_is_in(ours, names) ? ours : nearest_word(key->text, names);
    /* The names are listed once; a file with one foreign name has more of them. */
    struct text text;
    text_init(&text);
    if (reader->names_listed) {
        text_append(&text, "one of the names above");
    } else {
        words_join(&text, names);
    }
    reader->names_listed = true;
    const char *accepted = text.data ? text.data : "nothing";
    if (setting) {
        problem_at(reader, key, "parameters", "%s cannot be searched (set it under train:), accepted %s",
                   key->text, accepted);
    } else {
        problem_at(reader, key, "parameters", "found \"%.60s\", which is no train setting%s%s%s, accepted %s",
                   key->text, nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "",
                   accepted);
    }
    text_release(&text);
    free(names);
}

static bool is_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-";
    return name[0] && strchr(letters, name[0]) && strspn(name, all) == strlen(name) && strlen(name) <= 128;
}

/* Nothing is added to the space for a name that cannot stand there. */
static void read_entry(struct reader *reader, const struct node_entry *entry)
{
    struct space *space = &reader->spec->space;
    const char *name = entry->key->text;
    const struct setting *setting = reader->settings ? setting_find(reader->settings, name) : NULL;
    if (!is_name(name)) {
        problem_at(reader, entry->key, "parameters",
                   "found the name \"%.60s\", accepted letters, digits, _ . - (the first a letter or _)",
                   name);
        return;
    }
    if (reader->settings && (!setting || !setting->searchable)) {
        problem_name(reader, entry->key);
    }
    struct parameter *parameter = &space->parameters[space->count];
    parameter->name = strdup(name);
    if (!parameter->name) {
        reader->failed = true;
        return;
    }
    space->count++;
    read_parameter(reader, parameter, entry->value, setting);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct parameter *)a)->name, ((const struct parameter *)b)->name);
}

void read_parameters(struct reader *reader, const struct node *root)
{
    static const char example[] = "{learning_rate: {min: 0.001, max: 0.1}}";
    const struct node *parameters = node_find(root, "parameters");
    struct space *space = &reader->spec->space;
    if (!parameters || (parameters->kind == NODE_MAP && parameters->count == 0)) {
        problem_at(reader, parameters ? parameters : root, "parameters",
                   "found nothing to search, accepted a map of parameters, such as %s", example);
        return;
    }
    if (!read_map(reader, parameters, "parameters", example)) {
        return;
    }
    space->parameters = calloc(parameters->count, sizeof(*space->parameters));
    if (!space->parameters) {
        reader->failed = true;
        return;
    }
    for (size_t i = 0; i < parameters->count && !reader->failed; i++) {
        read_entry(reader, &parameters->entries[i]);
    }
    qsort(space->parameters, space->count, sizeof(*space->parameters), compare_names);
    reader->failed |= space_prepare(space) != 0;
}
