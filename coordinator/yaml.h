/* YAML as a tree of nodes with their places. yaml.c is the only user of libyaml; yaml_scalar.c holds the
 * rules of YAML 1.1 scalars.
 *
 * Scalars resolve as in PyYAML's safe_load, except that a plain scalar which is a number in the usual sense
 * (1e-3, 1e5,
 * -.5) is a number. Aliases share nodes; merge keys (<<) are already merged; several documents, unknown tags,
 * repeated keys, keys that are no scalars, and trees beyond the limits below are refused. A tree owns its
 * nodes. */
#ifndef RUNG_COORDINATOR_YAML_H
#define RUNG_COORDINATOR_YAML_H

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define YAML_DEPTH_LIMIT 64       /* lists and maps inside each other */
#define YAML_SIZE_LIMIT (1 << 20) /* bytes of a file */
#define YAML_KEY_LIMIT 2000       /* keys of one map: looking one up walks them */
#define YAML_NODE_LIMIT 200000    /* nodes with every alias written out: what a walk may meet */

enum node_kind { NODE_NULL, NODE_BOOLEAN, NODE_INTEGER, NODE_NUMBER, NODE_STRING, NODE_LIST, NODE_MAP };

/* Plain scalars whose meaning surprises people; the spec notes each form once. */
enum node_form {
    FORM_USUAL,
    FORM_BARE_EXPONENT, /* 1e-3: a number here, a string for PyYAML */
    FORM_BOOLEAN_WORD,  /* yes, no, on, off */
    FORM_OCTAL,         /* 010 is 8 */
    FORM_UNDERSCORE,    /* 1_000 is 1000 */
    FORM_SEXAGESIMAL,   /* 1:30 is 90 */
    FORM_TILDE,         /* ~ is null */
    FORM_HUGE_INTEGER,  /* beyond 64 bits: a number */
    FORM_COUNT,
};

struct node {
    enum node_kind kind;
    enum node_form form;
    bool quoted;        /* a string in quotes, or tagged !!str */
    const char *origin; /* NULL: the file; else what to name instead of a place ("--set ..."); borrowed */
    int line, column;   /* from 1; columns count characters */
    char *text;         /* scalars: as written, NUL-terminated */
    bool boolean;
    bool negative; /* NODE_INTEGER is +-magnitude */
    uint64_t magnitude;
    double number;              /* NODE_INTEGER and NODE_NUMBER */
    struct node **items;        /* NODE_LIST */
    struct node_entry *entries; /* NODE_MAP */
    size_t count;
};

struct node_entry {
    struct node *key; /* a scalar; its text is the name */
    struct node *value;
};

struct yaml_tree {
    struct node *root; /* NULL: the file is empty */
    struct node **nodes;
    size_t count, capacity;
};

/* Where problems of the text itself go; parsing may go on after one. */
typedef void (*yaml_report_f)(void *user, const char *origin, int line, int column, const char *message);

/* Adds the nodes of one text to `tree` (start with {0}) and sets its root. 0 (problems may have been reported
 * all the same), or -1: broken syntax (reported), or no memory (err, not reported). `tree` is to be released
 * in either case. */
int yaml_parse(struct yaml_tree *tree, const char *text, size_t size, const char *origin,
               yaml_report_f report, void *user, struct error *err);
void yaml_release(struct yaml_tree *tree);

/* A new node owned by the tree, or NULL without memory. */
struct node *yaml_node_create(struct yaml_tree *tree, enum node_kind kind);
/* Append to a list or map of this tree; -1 without memory. */
int node_append(struct node *list, struct node *item);
int node_insert(struct node *map, struct node *key, struct node *value);
/* A tree's nodes from JSON, with `origin` for places; NULL without memory. */
struct node *yaml_from_json(struct yaml_tree *tree, const json_t *value, const char *origin);

/* The value of a key, or NULL. */
struct node *node_find(const struct node *map, const char *key);
/* New reference; NULL without memory. Infinities and NaN become their strings; whole numbers stay numbers. */
json_t *node_to_json(const struct node *node);
/* False when the node is no integer, or does not fit. */
bool node_integer(const struct node *node, int64_t *value);

/* Resolves a plain scalar's text: sets kind, form and the value (yaml_scalar.c). */
void node_resolve_plain(struct node *node);
/* Gives a scalar the meaning of a tag ("int", "float", "bool", "null", "str"); false when the text does not
 * fit it. */
bool node_resolve_tag(struct node *node, const char *tag);

#endif
