/* YAML text to a tree of nodes, over libyaml's events. Nested values are built by recursion, at most
 * YAML_DEPTH_LIMIT deep; aliases share nodes, and what a walk over them would meet is counted. */
#include "coordinator/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct anchor {
    char *name;
    struct node *node; /* NULL while it is still being read: an alias inside itself */
    size_t size;       /* nodes it stands for */
};

struct builder {
    yaml_parser_t parser;
    struct yaml_tree *tree;
    const char *text;
    size_t size;
    const char *origin;
    yaml_report_f report;
    void *user;
    struct error *err;
    struct anchor *anchors;
    size_t anchor_count;
    size_t expanded; /* nodes so far, with aliases written out */
    int depth;
};

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_MEMORY, "no memory to read YAML");
}

static int fault(struct builder *builder, const yaml_mark_t *mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fault(struct builder *builder, const yaml_mark_t *mark, const char *format, ...)
{
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    builder->report(builder->user, builder->origin, (int)mark->line + 1, (int)mark->column + 1, message);
    return error_set(builder->err, ERROR_USAGE, "%s", message);
}

/* Line and column of a byte, for faults of the encoding, which libyaml gives by offset only. */
static yaml_mark_t mark_of_offset(const struct builder *builder, size_t offset)
{
    yaml_mark_t mark = {offset, 0, 0};
    for (size_t i = 0; i < offset && i < builder->size; i++) {
        if (builder->text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if (((unsigned char)builder->text[i] & 0xC0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

static bool is_tab_at(const struct builder *builder, const yaml_mark_t *mark)
{
    const char *line = builder->text, *end = builder->text + builder->size;
    for (size_t i = 0; i < mark->line && line; i++) {
        line = memchr(line, '\n', (size_t)(end - line));
        line = line ? line + 1 : NULL;
    }
    while (line && line < end && *line == ' ') {
        line++;
    }
    return line && line < end && *line == '\t';
}

static int syntax_fault(struct builder *builder)
{
    const yaml_parser_t *parser = &builder->parser;
    if (parser->error == YAML_MEMORY_ERROR) {
        return no_memory(builder->err);
    }
    if (parser->error == YAML_READER_ERROR) {
        yaml_mark_t mark = mark_of_offset(builder, parser->problem_offset);
        return fault(builder, &mark, "not valid UTF-8 text: %s", parser->problem);
    }
    if (is_tab_at(builder, &parser->problem_mark)) {
        return fault(builder, &parser->problem_mark,
                     "found a tab, accepted blanks: a tab cannot indent YAML");
    }
    if (parser->context) {
        return fault(builder, &parser->problem_mark, "not valid YAML: %s %s (line %zu)", parser->problem,
                     parser->context, parser->context_mark.line + 1);
    }
    return fault(builder, &parser->problem_mark, "not valid YAML: %s", parser->problem);
}

static int next_event(struct builder *builder, yaml_event_t *event)
{
    return yaml_parser_parse(&builder->parser, event) ? 0 : syntax_fault(builder);
}

static struct node *create_at(struct builder *builder, enum node_kind kind, const yaml_mark_t *mark)
{
    struct node *node = yaml_node_create(builder->tree, kind);
    if (!node) {
        no_memory(builder->err);
        return NULL;
    }
    node->origin = builder->origin;
    node->line = (int)mark->line + 1;
    node->column = (int)mark->column + 1;
    return node;
}

static int count_nodes(struct builder *builder, size_t count, const yaml_mark_t *mark)
{
    builder->expanded += count;
    if (builder->expanded > YAML_NODE_LIMIT) {
        return fault(builder, mark, "too large: more than 200000 values once every alias is written out");
    }
    return 0;
}

/* ---- anchors ---- */

static int anchor_open(struct builder *builder, const yaml_char_t *name, size_t *index)
{
    *index = SIZE_MAX;
    if (!name) {
        return 0;
    }
    struct anchor *anchors = realloc(builder->anchors, (builder->anchor_count + 1) * sizeof(*anchors));
    if (!anchors) {
        return no_memory(builder->err);
    }
    builder->anchors = anchors;
    char *copy = strdup((const char *)name);
    if (!copy) {
        return no_memory(builder->err);
    }
    *index = builder->anchor_count;
    anchors[builder->anchor_count++] = (struct anchor){.name = copy, .size = builder->expanded};
    return 0;
}

static void anchor_close(struct builder *builder, size_t index, struct node *node)
{
    if (index != SIZE_MAX) {
        struct anchor *anchor = &builder->anchors[index];
        anchor->node = node;
        anchor->size = builder->expanded - anchor->size + 1;
    }
}

static struct node *resolve_alias(struct builder *builder, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    for (size_t i = builder->anchor_count; i-- > 0;) {
        const struct anchor *anchor = &builder->anchors[i];
        if (strcmp(anchor->name, name) != 0) {
            continue;
        }
        if (!anchor->node) {
            fault(builder, &event->start_mark, "alias *%.80s stands inside what it names", name);
            return NULL;
        }
        return count_nodes(builder, anchor->size, &event->start_mark) == 0 ? anchor->node : NULL;
    }
    fault(builder, &event->start_mark, "alias *%.80s has no anchor &%.80s before it", name, name);
    return NULL;
}

/* ---- scalars ---- */

#define TAG_PREFIX "tag:yaml.org,2002:"

static int resolve_scalar(struct builder *builder, struct node *node, const yaml_event_t *event)
{
    const char *tag = (const char *)event->data.scalar.tag;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (event->data.scalar.plain_implicit) {
        node_resolve_plain(node);
    } else if (event->data.scalar.quoted_implicit || !tag || strcmp(tag, "!") == 0) {
        node->kind = NODE_STRING;
    } else if (strncmp(tag, TAG_PREFIX, strlen(TAG_PREFIX)) != 0 ||
               !node_resolve_tag(node, tag + strlen(TAG_PREFIX))) {
        return fault(
            builder, &event->start_mark,
            "found \"%.40s\" under the tag %.60s, accepted the tags !!str, !!int, !!float, !!bool and "
            "!!null where they fit",
            node->text, tag);
    }
    return 0;
}

static struct node *build_scalar(struct builder *builder, const yaml_event_t *event)
{
    struct node *node = create_at(builder, NODE_STRING, &event->start_mark);
    if (!node) {
        return NULL;
    }
    if (memchr(event->data.scalar.value, '\0', event->data.scalar.length)) {
        fault(builder, &event->start_mark, "found a NUL character, accepted text without it");
        return NULL;
    }
    node->text = strdup((const char *)event->data.scalar.value);
    if (!node->text) {
        no_memory(builder->err);
        return NULL;
    }
    return resolve_scalar(builder, node, event) == 0 ? node : NULL;
}

/* ---- lists and maps ---- */

static struct node *build(struct builder *builder, yaml_event_t *event);

static struct node *build_list(struct builder *builder, const yaml_mark_t *mark)
{
    struct node *list = create_at(builder, NODE_LIST, mark);
    while (list) {
        yaml_event_t event;
        if (next_event(builder, &event) != 0) {
            return NULL;
        }
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            break;
        }
        struct node *item = build(builder, &event);
        yaml_event_delete(&event);
        if (!item) {
            return NULL;
        }
        if (node_append(list, item) != 0) {
            no_memory(builder->err);
            return NULL;
        }
    }
    return list;
}

/* Own keys win over merged ones, and of several merged maps the first. */
static int merge_map(struct builder *builder, struct node *map, const struct node *source,
                     const yaml_mark_t *mark)
{
    for (size_t i = 0; i < source->count; i++) {
        if (!node_find(map, source->entries[i].key->text) &&
            node_insert(map, source->entries[i].key, source->entries[i].value) != 0) {
            return no_memory(builder->err);
        }
    }
    return count_nodes(builder, source->count, mark);
}

static int merge(struct builder *builder, struct node *map, const struct node *key, const struct node *value)
{
    yaml_mark_t mark = {0, (size_t)key->line - 1, (size_t)key->column - 1};
    if (value->kind == NODE_MAP) {
        return merge_map(builder, map, value, &mark);
    }
    for (size_t i = 0; value->kind == NODE_LIST && i < value->count; i++) {
        if (value->items[i]->kind != NODE_MAP) {
            return fault(builder, &mark,
                         "found a list with other things than maps under <<, accepted a map or "
                         "a list of maps");
        }
        if (merge_map(builder, map, value->items[i], &mark) != 0) {
            return -1;
        }
    }
    return value->kind == NODE_LIST ? 0 : fault(builder, &mark, "found a scalar under <<, accepted a map");
}

/* Repeated keys are reported and the first kept, so that the rest of the file is still checked. */
static int add_entry(struct builder *builder, struct node *map, struct node *key, struct node *value)
{
    const struct node *before = NULL;
    if (map->count >= YAML_KEY_LIMIT) {
        yaml_mark_t mark = {0, (size_t)key->line - 1, (size_t)key->column - 1};
        return fault(builder, &mark, "too large: more than 2000 keys in one map");
    }
    for (size_t i = 0; i < map->count && !before; i++) {
        before = strcmp(map->entries[i].key->text, key->text) == 0 ? map->entries[i].key : NULL;
    }
    if (before) {
        char message[200];
        snprintf(message, sizeof message, "the key \"%.80s\" is repeated (first in line %d)", key->text,
                 before->line);
        builder->report(builder->user, builder->origin, key->line, key->column, message);
        return 0;
    }
    return node_insert(map, key, value) == 0 ? 0 : no_memory(builder->err);
}

static struct node *build_key(struct builder *builder, yaml_event_t *event)
{
    if (event->type != YAML_SCALAR_EVENT && event->type != YAML_ALIAS_EVENT) {
        fault(builder, &event->start_mark, "found a list or map as a key, accepted a name");
        return NULL;
    }
    struct node *key = build(builder, event);
    if (key && (key->kind == NODE_LIST || key->kind == NODE_MAP)) {
        fault(builder, &event->start_mark, "found a list or map as a key, accepted a name");
        return NULL;
    }
    return key;
}

static int build_entry(struct builder *builder, struct node *map, yaml_event_t *event, struct node *merges)
{
    struct node *key = build_key(builder, event);
    yaml_event_t value_event;
    if (!key || next_event(builder, &value_event) != 0) {
        return -1;
    }
    struct node *value = build(builder, &value_event);
    yaml_event_delete(&value_event);
    if (!value) {
        return -1;
    }
    if (strcmp(key->text, "<<") == 0 && !key->quoted) {
        return node_insert(merges, key, value) == 0 ? 0 : no_memory(builder->err);
    }
    return add_entry(builder, map, key, value);
}

static struct node *build_map(struct builder *builder, const yaml_mark_t *mark)
{
    struct node *map = create_at(builder, NODE_MAP, mark);
    struct node merges = {.kind = NODE_MAP}; /* done last: a merge never beats a key of the map's own */
    bool good = map != NULL;
    while (good) {
        yaml_event_t event;
        if (next_event(builder, &event) != 0) {
            good = false;
            break;
        }
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            break;
        }
        good = build_entry(builder, map, &event, &merges) == 0;
        yaml_event_delete(&event);
    }
    for (size_t i = 0; good && i < merges.count; i++) {
        good = merge(builder, map, merges.entries[i].key, merges.entries[i].value) == 0;
    }
    free(merges.entries);
    return good ? map : NULL;
}

static int check_collection_tag(struct builder *builder, const yaml_event_t *event)
{
    bool list = event->type == YAML_SEQUENCE_START_EVENT;
    const char *tag = (const char *)(list ? event->data.sequence_start.tag : event->data.mapping_start.tag);
    if (tag && strcmp(tag, "!") != 0 && strcmp(tag, list ? TAG_PREFIX "seq" : TAG_PREFIX "map") != 0) {
        return fault(builder, &event->start_mark,
                     "found the tag %.60s, accepted lists and maps without a tag", tag);
    }
    return 0;
}

static struct node *build_collection(struct builder *builder, const yaml_event_t *event)
{
    if (check_collection_tag(builder, event) != 0) {
        return NULL;
    }
    if (builder->depth >= YAML_DEPTH_LIMIT) {
        fault(builder, &event->start_mark, "more than 64 lists and maps inside each other");
        return NULL;
    }
    builder->depth++;
    struct node *node = event->type == YAML_SEQUENCE_START_EVENT ? build_list(builder, &event->start_mark)
                                                                 : build_map(builder, &event->start_mark);
    builder->depth--;
    return node;
}

static struct node *build(struct builder *builder, yaml_event_t *event)
{
    const yaml_char_t *name = NULL;
    size_t anchor;
    if (event->type == YAML_ALIAS_EVENT) {
        return resolve_alias(builder, event);
    }
    if (event->type == YAML_SCALAR_EVENT) {
        name = event->data.scalar.anchor;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        name = event->data.sequence_start.anchor;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        name = event->data.mapping_start.anchor;
    }
    if (count_nodes(builder, 1, &event->start_mark) != 0 || anchor_open(builder, name, &anchor) != 0) {
        return NULL;
    }
    struct node *node =
        event->type == YAML_SCALAR_EVENT ? build_scalar(builder, event) : build_collection(builder, event);
    if (node) {
        anchor_close(builder, anchor, node);
    }
    return node;
}

/* ---- the document ---- */

static int build_document(struct builder *builder)
{
    for (;;) {
        yaml_event_t event;
        int status = 0;
        if (next_event(builder, &event) != 0) {
            return -1;
        }
        yaml_event_type_t type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT && builder->tree->root) {
            status =
                fault(builder, &event.start_mark,
                      "found a second document (---), accepted one: put each sweep into a file of its own");
        } else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                   type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT) {
            builder->tree->root = build(builder, &event);
            status = builder->tree->root ? 0 : -1;
        }
        yaml_event_delete(&event);
        if (status != 0 || type == YAML_STREAM_END_EVENT) {
            return status;
        }
    }
}

int yaml_parse(struct yaml_tree *tree, const char *text, size_t size, const char *origin,
               yaml_report_f report, void *user, struct error *err)
{
    struct builder builder = {.tree = tree,
                              .text = text,
                              .size = size,
                              .origin = origin,
                              .report = report,
                              .user = user,
                              .err = err};
    tree->root = NULL;
    if (size > YAML_SIZE_LIMIT) {
        report(user, origin, 1, 1, "too large: more than 1 MiB");
        return error_set(err, ERROR_USAGE, "too large: more than 1 MiB");
    }
    if (!yaml_parser_initialize(&builder.parser)) {
        return no_memory(err);
    }
    yaml_parser_set_input_string(&builder.parser, (const unsigned char *)text, size);
    int status = build_document(&builder);
    yaml_parser_delete(&builder.parser);
    for (size_t i = 0; i < builder.anchor_count; i++) {
        free(builder.anchors[i].name);
    }
    free(builder.anchors);
    if (status != 0) {
        tree->root = NULL;
    }
    return status;
}
