/* --set key=value: puts a value into the tree before it is read. Keys are dotted; a name that has dots itself
 * is found by taking, at each map, the longest existing key that fits. */
#include "coordinator/spec_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct node *node_at(struct reader *reader, enum node_kind kind, const char *origin)
{
    struct node *node = yaml_node_create(&reader->tree, kind);
    if (node) {
        node->origin = origin;
    } else {
        reader->failed = true;
    }
    return node;
}

static struct node *scalar_at(struct reader *reader, enum node_kind kind, const char *origin,
                              const char *text, size_t size)
{
    struct node *node = node_at(reader, kind, origin);
    if (node && !(node->text = strndup(text, size))) {
        reader->failed = true;
        return NULL;
    }
    return node;
}

/* The value of an override as nodes of the reader's tree; NULL when reported. */
static struct node *parse_value(struct reader *reader, const char *origin, const char *text)
{
    struct node *root = reader->tree.root;
    struct error err = {0};
    int status = yaml_parse(&reader->tree, text, strlen(text), origin, problem_report, reader, &err);
    struct node *value = reader->tree.root;
    reader->tree.root = root;
    if (status != 0) {
        reader->failed = reader->failed || err.code == ERROR_MEMORY;
        return NULL;
    }
    return value ? value : scalar_at(reader, NODE_NULL, origin, "", 0);
}

/* The entry whose key is `path`, or its longest beginning before a dot; NULL: none. */
static struct node_entry *longest_entry(struct node *map, const char *path)
{
    struct node_entry *best = NULL;
    for (size_t i = 0; i < map->count; i++) {
        const char *key = map->entries[i].key->text;
        size_t length = strlen(key);
        if (strncmp(path, key, length) == 0 && (path[length] == '\0' || path[length] == '.') &&
            (!best || length > strlen(best->key->text))) {
            best = &map->entries[i];
        }
    }
    return best;
}

/* Where a new key ends in `path`: at the first dot; below `parameters` before the last word when that word
 * belongs to a distribution, so that parameters.lr_scaling.power.value names the parameter lr_scaling.power.
 */
static size_t new_key_length(const char *path, bool in_parameters)
{
    static const char *const words[] = {"values", "value", "min", "max",          "step", "log",
                                        "mu",     "sigma", "q",   "distribution", NULL};
    const char *last = strrchr(path, '.');
    if (!in_parameters) {
        return strcspn(path, ".");
    }
    return last && word_is_in(last + 1, words) ? (size_t)(last - path) : strlen(path);
}

/* Aliased maps are shared: what is changed is copied first. */
static struct node *copy_map(struct reader *reader, const struct node *map)
{
    struct node *copy = node_at(reader, NODE_MAP, map->origin);
    if (!copy) {
        return NULL;
    }
    copy->line = map->line;
    copy->column = map->column;
    for (size_t i = 0; i < map->count; i++) {
        if (node_insert(copy, map->entries[i].key, map->entries[i].value) != 0) {
            reader->failed = true;
            return NULL;
        }
    }
    return copy;
}

static void insert_new(struct reader *reader, struct node *map, const char *path, struct node *value,
                       bool in_parameters, const char *origin)
{
    size_t length = new_key_length(path, in_parameters);
    struct node *key = scalar_at(reader, NODE_STRING, origin, path, length);
    struct node *inner = value;
    if (path[length] == '.') {
        inner = node_at(reader, NODE_MAP, origin);
        if (inner) {
            insert_new(reader, inner, path + length + 1, value,
                       !in_parameters && strncmp(path, "parameters.", 11) == 0, origin);
        }
    }
    if (!key || !inner || node_insert(map, key, inner) != 0) {
        reader->failed = true;
    }
}

static void set(struct reader *reader, struct node *map, const char *path, struct node *value,
                const char *origin)
{
    bool in_parameters = false;
    for (;;) {
        struct node_entry *entry = longest_entry(map, path);
        if (!entry) {
            insert_new(reader, map, path, value, in_parameters, origin);
            return;
        }
        size_t length = strlen(entry->key->text);
        if (path[length] == '\0') {
            entry->value = value;
            return;
        }
        if (entry->value->kind != NODE_MAP && entry->value->kind != NODE_NULL) {
            char found[FOUND_SIZE];
            problem_at(reader, value, NULL, "%s is %s, not a map with keys below it", entry->key->text,
                       node_found(entry->value, found));
            return;
        }
        entry->value = copy_map(reader, entry->value);
        if (!entry->value) {
            return;
        }
        in_parameters = map == reader->tree.root && strcmp(entry->key->text, "parameters") == 0;
        map = entry->value;
        path += length + 1;
    }
}

/* Its length; 0: it is none. Without empty parts, and text: it becomes a key of JSON. */
static size_t key_length(const char *override)
{
    const char *equals = strchr(override, '=');
    size_t length = equals ? (size_t)(equals - override) : 0;
    char *repaired = utf8_repair(override, length);
    bool good = length > 0 && override[0] != '.' && override[length - 1] != '.' && repaired &&
                strncmp(repaired, override, length) == 0 && !strstr(repaired, "..");
    free(repaired);
    return good ? length : 0;
}

static void apply(struct reader *reader, const char *override, const char *origin)
{
    size_t length = key_length(override);
    if (length == 0) {
        struct node where = {.origin = origin};
        problem_at(reader, &where, NULL, "accepted key=value with a dotted key, such as train.epochs=9");
        return;
    }
    char *path = strndup(override, length);
    struct node *value = path ? parse_value(reader, origin, override + length + 1) : NULL;
    if (!path) {
        reader->failed = true;
    } else if (value) {
        set(reader, reader->tree.root, path, value, origin);
    }
    free(path);
}

void apply_overrides(struct reader *reader)
{
    const char *const *overrides = reader->options->overrides;
    size_t count = 0;
    while (overrides && overrides[count]) {
        count++;
    }
    reader->origins = calloc(count + 1, sizeof(*reader->origins));
    if (!reader->origins) {
        reader->failed = true;
        return;
    }
    for (size_t i = 0; i < count && !reader->failed; i++) {
        struct text origin;
        text_init(&origin);
        text_printf(&origin, "--set %s", overrides[i]);
        reader->origins[reader->origin_count++] = text_steal(&origin);
        text_release(&origin);
        if (reader->origins[i]) {
            apply(reader, overrides[i], reader->origins[i]);
        } else {
            reader->failed = true;
        }
    }
}
