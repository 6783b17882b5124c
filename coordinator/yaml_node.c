/* Nodes: making, owning, looking up, and from and to JSON. */
#include "coordinator/yaml.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node *yaml_node_create(struct yaml_tree *tree, enum node_kind kind)
{
    if (tree->count == tree->capacity) {
        size_t capacity = tree->capacity ? 2 * tree->capacity : 64;
        struct node **nodes = realloc(tree->nodes, capacity * sizeof(*nodes));
        if (!nodes) {
            return NULL;
        }
        tree->nodes = nodes;
        tree->capacity = capacity;
    }
    struct node *node = calloc(1, sizeof(*node));
    if (node) {
        node->kind = kind;
        tree->nodes[tree->count++] = node;
    }
    return node;
}

int node_append(struct node *list, struct node *item)
{
    /* Room doubles at every power of two, so no capacity has to be kept. */
    if ((list->count & (list->count - 1)) == 0) {
        struct node **items =
            realloc(list->items, (list->count ? 2 * list->count : 1) * sizeof(struct node *));
        if (!items) {
            return -1;
        }
        list->items = items;
    }
    list->items[list->count++] = item;
    return 0;
}

int node_insert(struct node *map, struct node *key, struct node *value)
{
    if ((map->count & (map->count - 1)) == 0) {
        struct node_entry *entries =
            realloc(map->entries, (map->count ? 2 * map->count : 1) * sizeof(struct node_entry));
        if (!entries) {
            return -1;
        }
        map->entries = entries;
    }
    map->entries[map->count++] = (struct node_entry){key, value};
    return 0;
}

void yaml_release(struct yaml_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->nodes[i]->text);
        free(tree->nodes[i]->items);
        free(tree->nodes[i]->entries);
        free(tree->nodes[i]);
    }
    free(tree->nodes);
    *tree = (struct yaml_tree){0};
}

struct node *node_find(const struct node *map, const char *key)
{
    for (size_t i = 0; map && map->kind == NODE_MAP && i < map->count; i++) {
        if (strcmp(map->entries[i].key->text, key) == 0) {
            return map->entries[i].value;
        }
    }
    return NULL;
}

bool node_integer(const struct node *node, int64_t *value)
{
    if (node->kind != NODE_INTEGER || node->magnitude > (uint64_t)INT64_MAX) {
        return false;
    }
    *value = node->negative ? -(int64_t)node->magnitude : (int64_t)node->magnitude;
    return true;
}

static json_t *list_to_json(const struct node *list)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < list->count; i++) {
        if (json_array_append_new(array, node_to_json(list->items[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *map_to_json(const struct node *map)
{
    json_t *object = json_object();
    for (size_t i = 0; object && i < map->count; i++) {
        if (json_object_set_new(object, map->entries[i].key->text, node_to_json(map->entries[i].value)) !=
            0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

json_t *node_to_json(const struct node *node)
{
    int64_t integer;
    switch (node->kind) {
    case NODE_NULL:
        return json_null();
    case NODE_BOOLEAN:
        return json_boolean(node->boolean);
    case NODE_INTEGER:
        return node_integer(node, &integer) ? json_integer(integer) : json_real(node->number);
    case NODE_NUMBER:
        return json_number(node->number);
    case NODE_STRING:
        return json_string(node->text);
    case NODE_LIST:
        return list_to_json(node);
    case NODE_MAP:
        return map_to_json(node);
    }
    return NULL;
}

static struct node *scalar_from_json(struct yaml_tree *tree, const json_t *value, const char *origin)
{
    struct node *node = yaml_node_create(tree, NODE_NULL);
    char buffer[NUMBER_SIZE];
    const char *text = "null";
    if (!node) {
        return NULL;
    }
    node->origin = origin;
    if (json_is_boolean(value)) {
        node->kind = NODE_BOOLEAN;
        node->boolean = json_is_true(value);
        text = node->boolean ? "true" : "false";
    } else if (json_is_integer(value)) {
        int64_t integer = json_integer_value(value);
        node->kind = NODE_INTEGER;
        node->negative = integer < 0;
        node->magnitude = integer < 0 ? -(uint64_t)integer : (uint64_t)integer;
        node->number = (double)integer;
        snprintf(buffer, sizeof buffer, "%lld", (long long)integer);
        text = buffer;
    } else if (json_is_real(value)) {
        node->kind = NODE_NUMBER;
        node->number = json_real_value(value);
        text = number_format(node->number, buffer);
    } else if (json_is_string(value)) {
        node->kind = NODE_STRING;
        node->quoted = true;
        text = json_string_value(value);
    }
    node->text = strdup(text);
    return node->text ? node : NULL;
}

static struct node *key_from_text(struct yaml_tree *tree, const char *text, const char *origin)
{
    struct node *key = yaml_node_create(tree, NODE_STRING);
    if (key) {
        key->origin = origin;
        key->text = strdup(text);
    }
    return key && key->text ? key : NULL;
}

struct node *yaml_from_json(struct yaml_tree *tree, const json_t *value, const char *origin)
{
    if (!json_is_object(value) && !json_is_array(value)) {
        return scalar_from_json(tree, value, origin);
    }
    struct node *node = yaml_node_create(tree, json_is_object(value) ? NODE_MAP : NODE_LIST);
    if (!node) {
        return NULL;
    }
    node->origin = origin;
    size_t index;
    json_t *item;
    json_array_foreach(value, index, item)
    {
        struct node *child = yaml_from_json(tree, item, origin);
        if (!child || node_append(node, child) != 0) {
            return NULL;
        }
    }
    const char *name;
    json_object_foreach((json_t *)value, name, item)
    {
        struct node *key = key_from_text(tree, name, origin);
        struct node *child = key ? yaml_from_json(tree, item, origin) : NULL;
        if (!child || node_insert(node, key, child) != 0) {
            return NULL;
        }
    }
    return node;
}
