/* A table of settings: name, type, range, default. worker/training describes its `train` keys with one, the
 * spec reader checks YAML against it, docs/ is made from it. */
#ifndef RUNG_BASE_SETTING_H
#define RUNG_BASE_SETTING_H

#include <stdbool.h>

enum setting_type {
    SETTING_INTEGER, /* minimum..maximum */
    SETTING_NUMBER,  /* minimum..maximum */
    SETTING_BOOLEAN,
    SETTING_STRING,
    SETTING_CHOICE,            /* one of `choices` */
    SETTING_INTEGER_OR_CHOICE, /* one of `choices`, or minimum..maximum */
    SETTING_INTEGER_LIST, /* integers within minimum..maximum, perhaps none; one integer is a list of one */
    SETTING_PATH,         /* made absolute against the spec's folder; must be readable */
    SETTING_SCALAR,       /* string, integer or null: e.g. a column's name or index */
    SETTING_SCALAR_LIST,  /* the same, or a list of strings and integers */
    SETTING_VALUE_LIST,   /* string, number or null, or a list of strings and numbers: texts of cells */
};

struct setting {
    const char *name; /* dotted when nested: "data.validation", "lr_scaling.rule" */
    enum setting_type type;
    double minimum, maximum;
    bool minimum_open; /* the bound itself is excluded */
    bool maximum_open;
    const char *const *choices; /* NULL-terminated */
    const char *fallback;       /* default as JSON text ("0.001", "[128]"); NULL: absent unless given */
    bool required;
    bool searchable;  /* may be a parameter of the space */
    bool shapes;      /* changes the shape of the model or the step (lanes must agree) */
    const char *help; /* one line */
};

/* The entry called `name`, or NULL. The table ends with an entry whose name is NULL. */
const struct setting *setting_find(const struct setting *table, const char *name);

#endif
