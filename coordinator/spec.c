/* Specs as a whole: from a file, from memory, from the store; and their release. */
#include "coordinator/spec.h"

#include "base/files.h"
#include "coordinator/spec_reader.h"

#include <stdlib.h>
#include <string.h>

static const struct spec_options no_options;

/* The parts that stand before anything is read; -1 without memory. */
static int spec_init(struct spec *spec, const char *file, const char *folder, const char *text, size_t size)
{
    *spec = (struct spec){.run_cap = -1, .devices_per_trial = 1, .max_retries = 1};
    spec->file = strdup(file);
    spec->folder = folder ? strdup(folder) : path_folder(file);
    spec->text = malloc(size + 1);
    spec->train = json_object();
    spec->train_given = json_object();
    spec->notes = json_array();
    if (!spec->file || !spec->folder || !spec->text || !spec->train || !spec->train_given || !spec->notes) {
        return -1;
    }
    memcpy(spec->text, text, size);
    spec->text[size] = '\0';
    return 0;
}

void spec_release(struct spec *spec)
{
    free(spec->name);
    free(spec->description);
    free(spec->file);
    free(spec->folder);
    free(spec->text);
    free(spec->metric);
    free(spec->tie_metric);
    space_release(&spec->space);
    json_decref(spec->train);
    json_decref(spec->train_given);
    json_decref(spec->normalised);
    json_decref(spec->notes);
    *spec = (struct spec){0};
}

static void reader_init(struct reader *reader, struct spec *spec, const struct spec_options *options)
{
    *reader = (struct reader){.spec = spec, .options = options ? options : &no_options};
    reader->settings = reader->options->train_settings;
}

static void reader_release(struct reader *reader)
{
    problems_release(reader);
    yaml_release(&reader->tree);
    for (size_t i = 0; i < reader->origin_count; i++) {
        free(reader->origins[i]);
    }
    free(reader->origins);
}

/* What became of the reading: 0 with the normalised object made, or -1 with every problem told and the spec
 * released. */
static int finish(struct reader *reader, char **problems, struct error *err)
{
    struct spec *spec = reader->spec;
    int status = 0;
    if (!reader->failed && reader->problem_count == 0) {
        spec->normalised = spec_normalise(spec);
        reader->failed = !spec->normalised;
    }
    char *lines = reader->problem_count > 0 && !reader->failed ? problems_text(reader) : NULL;
    reader->failed = reader->failed || (reader->problem_count > 0 && !lines);
    if (reader->failed) {
        status = error_set(err, ERROR_MEMORY, "no memory to read the spec");
    } else if (lines) {
        status = error_set(err, ERROR_USAGE, "%s", lines);
    }
    if (problems) {
        *problems = lines;
    } else {
        free(lines);
    }
    reader_release(reader);
    if (status != 0) {
        spec_release(spec);
    }
    return status;
}

int spec_parse(struct spec *spec, const char *text, size_t size, const char *file,
               const struct spec_options *options, char **problems, struct error *err)
{
    struct reader reader;
    struct error yaml_err = {0};
    reader_init(&reader, spec, options);
    if (spec_init(spec, file, strcmp(file, "-") == 0 ? "." : NULL, text, size) != 0) {
        reader.failed = true;
    } else if (yaml_parse(&reader.tree, text, size, NULL, problem_report, &reader, &yaml_err) == 0) {
        read_spec(&reader);
    } else {
        reader.failed = reader.failed || yaml_err.code == ERROR_MEMORY;
    }
    return finish(&reader, problems, err);
}

int spec_load(struct spec *spec, const char *path, const struct spec_options *options, char **problems,
              struct error *err)
{
    size_t size;
    struct error file_err = {0};
    char *text = file_read(path, 0, &size, &file_err);
    if (problems) {
        *problems = NULL;
    }
    if (!text) {
        /* The spec is an argument: a wrong path is wrong usage. */
        return error_set(err, file_err.code == ERROR_RESOURCE ? ERROR_USAGE : file_err.code, "%s",
                         file_err.message);
    }
    int status = spec_parse(spec, text, size, path, options, problems, err);
    free(text);
    return status;
}

int spec_restore(struct spec *spec, const json_t *normalised, const struct spec_options *options,
                 struct error *err)
{
    struct reader reader;
    if (!json_is_object(normalised)) {
        return error_set(
            err, ERROR_RESOURCE,
            "the database is damaged: the sweep's spec is missing; use a copy, or begin anew with "
            "another --name");
    }
    const json_t *source = json_object_get(normalised, "source");
    json_t *schema = json_copy((json_t *)normalised);
    reader_init(&reader, spec, options);
    reader.restoring = true;
    if (spec_init(spec, json_get_string(source, "file", "stored spec"),
                  json_get_string(source, "folder", "."), "", 0) != 0 ||
        !schema) {
        reader.failed = true;
    } else {
        json_object_del(schema, "source");
        json_object_del(schema, "train_given");
        reader.tree.root = yaml_from_json(&reader.tree, schema, "stored spec");
        reader.failed = !reader.tree.root;
    }
    json_decref(schema);
    if (!reader.failed) {
        read_spec(&reader);
    }
    if (!reader.failed && json_object_get(normalised, "train_given")) {
        json_decref(spec->train_given);
        spec->train_given = json_deep_copy(json_object_get(normalised, "train_given"));
        reader.failed = !spec->train_given;
    }
    return finish(&reader, NULL, err);
}
