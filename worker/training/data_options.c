/* Reading the train.data object; see data_options.h. */
#include "worker/training/data_options.h"

#include <stdlib.h>
#include <string.h>

/* The index of a string among `words`, 0 when the key is absent; -1 with err for anything else. */
static int read_word(const json_t *data, const char *key, const char *const *words, struct error *err)
{
    const json_t *value = json_object_get(data, key);
    /* YAML makes a boolean of `header: true`. */
    const char *text = json_is_true(value)    ? "true"
                       : json_is_false(value) ? "false"
                                              : json_string_value(value);
    if (!value || json_is_null(value))
        return 0;
    for (int i = 0; text && words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    char *found = json_canonical(value);
    error_set(err, ERROR_USAGE, "data.%s: found %s, accepted %s, %s, %s, ...", key, found ? found : "?",
              words[0], words[1], words[2]);
    free(found);
    return -1;
}

static int read_share(const json_t *data, const char *key, double least, double fallback, double *share,
                      struct error *err)
{
    *share = json_get_number(data, key, fallback);
    if (*share >= least && *share < 1)
        return 0;
    return error_set(err, ERROR_USAGE, "data.%s: found %g, accepted a share %s 0 and below 1", key, *share,
                     least > 0 ? "above" : "of at least");
}

static int read_split(struct options *options, uint64_t seed, struct error *err)
{
    const json_t *data = options->data;
    struct split_options *split = &options->split;
    bool own_test = options->test.path != NULL;
    split->seed = seed;
    if (read_share(data, "validation", 1e-12, 0.2, &split->validation, err) < 0 ||
        read_share(data, "test", 0, own_test ? 0 : 0.2, &split->test, err) < 0)
        return -1;
    if (own_test && split->test > 0)
        return error_set(err, ERROR_USAGE,
                         "data.test_path and data.test: found both, accepted one: the test rows are those of "
                         "the file, or a share of %s",
                         options->path.label);
    if (split->validation + split->test < 1)
        return 0;
    return error_set(err, ERROR_USAGE, "data.validation + data.test: found %g, accepted less than 1",
                     split->validation + split->test);
}

/* One file: where it lies, and what it is called. */
static struct source source_of(const json_t *data, const char *key, const char *file, struct source form)
{
    const char *written = json_get_string(data, key, NULL);
    form.path = file && written ? file : written;
    form.label = written;
    return form;
}

static int read_sources(struct options *options, const struct data_files *files, struct error *err)
{
    static const char *const delimiters[] = {"auto", "comma", "semicolon", "tab", "blanks",
                                             ",",    ";",     "\t",        " ",   NULL};
    static const char bytes[] = {0, ',', ';', '\t', ' ', ',', ';', '\t', ' '};
    static const char *const formats[] = {"auto", "csv", "idx", "npy", "libsvm", NULL};
    static const struct data_files nowhere;
    const json_t *data = options->data;
    files = files ? files : &nowhere;
    int delimiter = read_word(data, "delimiter", delimiters, err);
    int format = delimiter < 0 ? -1 : read_word(data, "format", formats, err);
    if (format < 0)
        return -1;
    struct source form = {
        .format = (enum data_format)format, .delimiter = bytes[delimiter], .rules = &options->rules};
    options->path = source_of(data, "path", files->path, form);
    options->test = source_of(data, "test_path", files->test_path, form);
    form.format = FORMAT_AUTO; /* labels of IDX images may be a text, and the other way round */
    options->labels = source_of(data, "labels", files->labels, form);
    options->test_labels = source_of(data, "test_labels", files->test_labels, form);
    if (!options->path.path && files->path)
        options->path.path = options->path.label = files->path;
    if (!options->path.path)
        return error_set(err, ERROR_USAGE, "data.path: missing, expected the path of a table");
    const json_t *target = json_object_get(data, "target");
    if (options->labels.path && target && !json_is_null(target))
        return error_set(err, ERROR_USAGE,
                         "data.labels and data.target: found both, accepted one: the labels are in a file of "
                         "their own, or a column of %s",
                         options->path.label);
    if (!options->test_labels.path)
        return 0;
    if (!options->test.path)
        return error_set(err, ERROR_USAGE,
                         "data.test_labels: found without data.test_path, whose rows it has the labels of");
    if (json_is_array(target))
        return error_set(err, ERROR_USAGE,
                         "data.test_labels and a list as data.target: found both, accepted one: the test "
                         "rows' labels are in a file of their own, or one-hot columns of %s",
                         options->test.label);
    return 0;
}

static int read_words(struct options *options, struct error *err)
{
    static const char *const headers[] = {"auto", "true", "false", NULL};
    static const char *const tasks[] = {"auto", "classification", "regression", NULL};
    int header = read_word(options->data, "header", headers, err);
    int task = header < 0 ? -1 : read_word(options->data, "task", tasks, err);
    options->header = header == 0 ? HEADER_AUTO : header == 1 ? HEADER_YES : HEADER_NO;
    options->task = (enum task_request)task;
    options->deduplicate = json_get_boolean(options->data, "deduplicate", false);
    return task < 0 ? -1 : 0;
}

int data_options_read(struct options *options, const json_t *data, const struct data_files *files,
                      uint64_t seed, struct error *err)
{
    memset(options, 0, sizeof *options);
    options->data = data;
    if (read_sources(options, files, err) < 0 || read_words(options, err) < 0 ||
        read_split(options, seed, err) < 0 || feature_options_read(&options->features, data, err) < 0)
        return -1;
    return cell_rules_init(&options->rules, json_object_get(data, "missing"), err);
}

void data_options_release(struct options *options)
{
    cell_rules_release(&options->rules);
}
