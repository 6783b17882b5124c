/* May a stored sweep go on under another spec? Everything that decides what trials are and how they are
 * compared must be the same; the answer names each difference. */
#include "coordinator/spec_reader.h"

#include <string.h>

/* How much, where and under which words may change; where the files lie may too. */
static const char *const free_keys[] = {"run_cap", "resources",   "description", "max_retries",
                                        "source",  "train_given", NULL};

static void append_value(struct text *text, const json_t *value)
{
    if (value) {
        json_append(text, value);
    } else {
        text_append(text, "nothing");
    }
}

static void difference(struct text *text, const char *path, const json_t *stored, const json_t *next)
{
    text_printf(text, "%s%s: stored ", text->size > 0 ? "; " : "", path);
    append_value(text, stored);
    text_append(text, ", now ");
    append_value(text, next);
}

static void compare_values(struct text *text, const char *path, const json_t *stored, const json_t *next);

static void compare_key(struct text *text, const char *path, const char *key, const json_t *stored,
                        const json_t *next)
{
    struct text inner;
    text_init(&inner);
    text_printf(&inner, "%s%s%s", path, *path ? "." : "", key);
    compare_values(text, inner.data ? inner.data : key, json_object_get(stored, key),
                   json_object_get(next, key));
    text->failed = text->failed || inner.failed;
    text_release(&inner);
}

static void compare_objects(struct text *text, const char *path, const json_t *stored, const json_t *next)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)stored, key, value)
    {
        compare_key(text, path, key, stored, next);
    }
    json_object_foreach((json_t *)next, key, value)
    {
        if (!json_object_get(stored, key)) {
            compare_key(text, path, key, stored, next);
        }
    }
}

static void compare_values(struct text *text, const char *path, const json_t *stored, const json_t *next)
{
    if (json_is_object(stored) && json_is_object(next)) {
        compare_objects(text, path, stored, next);
    } else if (!json_equal((json_t *)stored, (json_t *)next)) {
        difference(text, path, stored, next);
    }
}

/* The data may lie elsewhere as long as the spec names it by the same words; its content is checked by its
 * hash. */
static void forget_moved_data(json_t *stored, json_t *next)
{
    const json_t *stored_data = json_object_get(json_object_get(stored, "train_given"), "data");
    const json_t *next_data = json_object_get(json_object_get(next, "train_given"), "data");
    static const char *const files[] = {"path", "labels", "test_path", "test_labels"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const json_t *path = json_object_get(stored_data, files[i]);
        if (path && json_equal((json_t *)path, json_object_get(next_data, files[i]))) {
            json_object_del(json_object_get(json_object_get(stored, "train"), "data"), files[i]);
            json_object_del(json_object_get(json_object_get(next, "train"), "data"), files[i]);
        }
    }
}

/* The settings of the trainer differ though the spec gives the same: their defaults, or the settings there
 * are, have changed. */
static bool differs_in_train_only(json_t *before, json_t *after)
{
    json_object_del(before, "train");
    json_object_del(after, "train");
    return json_equal(before, after);
}

int spec_compare(const json_t *stored, const json_t *next, bool seed_given, struct error *err)
{
    struct text text;
    bool is_same_spec = false;
    json_t *given = json_object_get(stored, "train_given"),
           *next_given = json_object_get(next, "train_given");
    json_t *before = json_deep_copy(stored), *after = json_deep_copy(next);
    text_init(&text);
    if (!before || !after) {
        text.failed = true;
    } else {
        forget_moved_data(before, after);
        for (size_t i = 0; free_keys[i]; i++) {
            json_object_del(before, free_keys[i]);
            json_object_del(after, free_keys[i]);
        }
        if (!seed_given) {
            json_object_del(before, "seed");
            json_object_del(after, "seed");
        }
        compare_objects(&text, "", before, after);
        is_same_spec = text.size > 0 && json_is_object(given) && json_equal(given, next_given) &&
                       differs_in_train_only(before, after);
    }
    json_decref(before);
    json_decref(after);
    int status = 0;
    if (text.failed) {
        status = error_set(err, ERROR_MEMORY, "no memory to compare specs");
    } else if (is_same_spec) {
        status =
            error_set(err, ERROR_USAGE,
                      "this rung's trainer has other settings or defaults than the one that the sweep began "
                      "with; what it found stays readable, but begin it again under another --name: %s",
                      text.data);
    } else if (text.size > 0) {
        status = error_set(err, ERROR_USAGE, "the stored sweep was made from another spec: %s", text.data);
    }
    text_release(&text);
    return status;
}
