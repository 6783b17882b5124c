/* Inside the spec reader: what its files share while one spec is read. Not for other users.
 *
 * A reader collects every problem and note with its place; the read_* functions report and go on, so that all
 * errors of a file are listed at once. Without memory `failed` is set and the rest is skipped. */
#ifndef RUNG_COORDINATOR_SPEC_READER_H
#define RUNG_COORDINATOR_SPEC_READER_H

#include "base/text.h"
#include "coordinator/spec.h"
#include "coordinator/yaml.h"

struct problem {
    const char *origin; /* as in struct node */
    int line, column;
    char *message;
};

struct reader {
    struct spec *spec;
    const struct spec_options *options;
    const struct setting *settings; /* options->train_settings; NULL: names and values go unchecked */
    struct yaml_tree tree;
    char **origins; /* "--set key=value", named by nodes */
    size_t origin_count;
    struct problem *problems;
    size_t problem_count, dropped_count;
    unsigned forms_noted; /* a bit for each node_form */
    bool restoring;       /* from the store: files need not be there, nothing is noted */
    bool names_listed;    /* the names of settings stand in a problem */
    bool failed;          /* no memory */
};

#define FOUND_SIZE 80
/* A node as messages show it: "text" in quotes, numbers as written, "a list", "nothing". Returns buffer. */
const char *node_found(const struct node *node, char buffer[FOUND_SIZE]);

/* spec_problems.c: problems and notes. `key` is dotted, or NULL. */
void problem_at(struct reader *reader, const struct node *where, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "key: found WHERE, accepted ..." */
void problem_found(struct reader *reader, const struct node *where, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "key: found "word", accepted a, b or c (did you mean b?)". */
void problem_word(struct reader *reader, const struct node *where, const char *key, const char *word,
                  const char *const *accepted);
void note_at(struct reader *reader, const struct node *where, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* For yaml_parse: user is the reader. */
void problem_report(void *user, const char *origin, int line, int column, const char *message);
/* All problems as lines, in the order of the file; NULL without memory. */
char *problems_text(struct reader *reader);
void problems_release(struct reader *reader);
/* "a, b or c" appended. */
void words_join(struct text *text, const char *const *words);

/* spec_value.c: one value each; false when reported. A bound of -INFINITY or INFINITY is none. */
bool read_integer(struct reader *reader, const struct node *node, const char *key, double minimum,
                  double maximum, int64_t *value);
bool read_number(struct reader *reader, const struct node *node, const char *key, const char *accepted,
                 double *value);
bool read_string(struct reader *reader, const struct node *node, const char *key, const char **value);
bool read_boolean(struct reader *reader, const struct node *node, const char *key, bool *value);
/* Index into the NULL-terminated words, or -1. */
int read_choice(struct reader *reader, const struct node *node, const char *key, const char *const *words);
/* Is it a map? Reported, with an example, when not. */
bool read_map(struct reader *reader, const struct node *node, const char *key, const char *example);

enum unknown_keys {
    UNKNOWN_REFUSED, /* each is an error */
    UNKNOWN_IGNORED, /* a near miss of a known key is an error, any other is noted, as W&B does */
};
/* Keys of `map` outside `known`; `later` (or NULL) are names that a later version takes. `key`: the map's
 * own, or NULL. */
void check_keys(struct reader *reader, const struct node *map, const char *key, const char *const *known,
                const char *const *later, enum unknown_keys unknown);
void problem_later(struct reader *reader, const struct node *where, const char *key, const char *found,
                   const char *const *available);
bool word_is_in(const char *word, const char *const *words);

/* spec_setting.c: a value against the setting it belongs to. New reference in the setting's own type (reals
 * for numbers, a list for a list); NULL when reported. */
json_t *setting_read(struct reader *reader, const struct setting *setting, const struct node *node,
                     const char *key);
bool setting_takes(const struct setting *setting, double number);               /* within its range */
const char *setting_accepted(const struct setting *setting, struct text *text); /* "a number > 0" */
/* Names of the settings (those that can be searched, or all), NULL-terminated; free() the array only. */
const char **setting_names(struct reader *reader, bool searchable);
/* Our name for one that people bring from elsewhere, too far from it for the edit distance (lr); NULL: none.
 */
const char *setting_synonym(const char *name);

/* The sections. A node may be NULL where the section may be left out. */
void read_metric(struct reader *reader, const struct node *metric);
void read_train(struct reader *reader, const struct node *root);
void read_parameters(struct reader *reader, const struct node *root);
void read_parameter(struct reader *reader, struct parameter *parameter, const struct node *map,
                    const struct setting *setting); /* spec_distribution.c; parameter->name is set */
void read_stopping(struct reader *reader, const struct node *root, bool halving_method);

/* spec_override.c: applies options->overrides to the tree. */
void apply_overrides(struct reader *reader);
/* spec_read.c: everything, from the tree's root. */
void read_spec(struct reader *reader);
/* spec_normalise.c */
json_t *spec_normalise(const struct spec *spec);

#endif
