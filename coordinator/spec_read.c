/* The top level of a spec: which keys there are, the small ones, and the order in which sections are read. */
#include "coordinator/spec_reader.h"

#include "base/files.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define NAME_LIMIT 64

static const char *const known_keys[] = {"name",    "description", "method",      "metric",
                                         "run_cap", "seed",        "parameters",  "early_terminate",
                                         "train",   "resources",   "max_retries", NULL};
/* Weights & Biases' own that mean nothing here. */
static const char *const silent_keys[] = {"apiVersion", "kind",   "controller", "job",
                                          "image_uri",  "entity", "project",    NULL};
static const char *const later_keys[] = {"program", "command",    "metrics",     "scheduler",        "points",
                                         "unique",  "replicates", "constraints", "checkpoint_every", NULL};

static void check_top_key(struct reader *reader, const struct node *key)
{
    const char *name = key->text;
    if (word_is_in(name, known_keys) || word_is_in(name, silent_keys)) {
        return;
    }
    if (word_is_in(name, later_keys)) {
        problem_at(reader, key, name, "is not available in this version%s",
                   strcmp(name, "program") == 0 || strcmp(name, "command") == 0
                       ? ": trials are run by the built-in trainer, see train:"
                       : "");
        return;
    }
    for (const struct setting *setting = reader->settings; setting && setting->name; setting++) {
        size_t length = strcspn(setting->name, ".");
        if (strcmp(name, setting->name) == 0 ||
            (strncmp(name, setting->name, length) == 0 && !name[length])) {
            problem_at(reader, key, name, "is a setting of the trainer, accepted under train:");
            return;
        }
    }
    const char *near_silent = nearest_word(name, silent_keys);
    if (near_silent && !nearest_word(name, known_keys)) {
        problem_word(reader, key, "unknown key", name, silent_keys);
    } else if (nearest_word(name, known_keys)) {
        problem_word(reader, key, "unknown key", name, known_keys);
    } else {
        note_at(reader, key, name, "unknown key, ignored");
    }
}

/* None that a command would take for an option, or a shell for a folder. */
static bool is_sweep_name(const char *name)
{
    size_t length = strlen(name);
    return name[0] != '-' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && length >= 1 &&
           length <= NAME_LIMIT && strspn(name, NAME_LETTERS) == length;
}

/* The file's stem as a name: "a b.yaml" is "a-b". */
static char *stem_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;
    const char *dot = strrchr(base, '.');
    size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);
    char *name = strcmp(file, "-") == 0 || length == 0
                     ? strdup("sweep")
                     : strndup(base, length > NAME_LIMIT ? NAME_LIMIT : length);
    for (char *c = name; c && *c; c++) {
        if (!strchr(NAME_LETTERS, *c)) {
            *c = '-';
        }
    }
    if (name && !is_sweep_name(name)) {
        name[0] = 'x';
    }
    return name;
}

static void read_name(struct reader *reader, const struct node *root)
{
    struct spec *spec = reader->spec;
    const struct node *node = node_find(root, "name");
    const char *given = reader->options->name;
    struct node option = {.kind = NODE_STRING, .origin = "--name", .text = (char *)given};
    if (given) {
        node = &option;
    }
    bool scalar = node && node->kind != NODE_LIST && node->kind != NODE_MAP && node->kind != NODE_NULL;
    if (node && (!scalar || !is_sweep_name(node->text))) {
        problem_found(reader, node, given ? NULL : "name", "1 to 64 of letters, digits, . _ -, not - first");
    }
    spec->name = node && scalar ? strdup(node->text) : stem_name(spec->file);
    node = node_find(root, "description");
    if (node && node->kind != NODE_LIST && node->kind != NODE_MAP) {
        spec->description = node->kind == NODE_NULL ? NULL : strdup(node->text);
        reader->failed = reader->failed || (node->kind != NODE_NULL && !spec->description);
    } else if (node) {
        problem_found(reader, node, "description", "text");
    }
    reader->failed = reader->failed || !spec->name;
}

/* Returns whether the method brings successive halving with it. */
static bool read_method(struct reader *reader, const struct node *root)
{
    static const char *const methods[] = {"random", "grid", "successive_halving", NULL};
    static const char *const later[] = {"sobol", "tpe", "bayes", "cmaes", "custom", "hyperband", NULL};
    const struct node *node = node_find(root, "method");
    reader->spec->sampler = &random_sampler;
    if (!node) {
        problem_at(reader, root, "method", "found nothing, accepted random, grid or successive_halving");
        return false;
    }
    if (node->kind == NODE_STRING && word_is_in(node->text, later)) {
        problem_later(reader, node, "method", node->text, methods);
        return false;
    }
    if (node->kind == NODE_STRING && strcmp(node->text, "asha") == 0) {
        problem_at(reader, node, "method",
                   "found \"asha\", which is a stopping rule: write method: random and early_terminate: "
                   "{type: asha}");
        return false;
    }
    int method = read_choice(reader, node, "method", methods);
    reader->spec->sampler = method == 1 ? &grid_sampler : &random_sampler;
    return method == 2;
}

static void read_seed(struct reader *reader, const struct node *root)
{
    struct spec *spec = reader->spec;
    const struct node *node = node_find(root, "seed");
    if (!node) {
        /* 32 bits: short enough to be typed again. */
        char hex[9];
        random_hex(hex, 4);
        spec->seed = strtoull(hex, NULL, 16);
        return;
    }
    spec->seed_given = true;
    char *end = NULL;
    if (node->kind == NODE_INTEGER && !node->negative) {
        spec->seed = node->magnitude;
    } else if (node->kind == NODE_STRING && isdigit((unsigned char)node->text[0]) &&
               strlen(node->text) <= 20) {
        struct node whole = {.text = node->text};
        node_resolve_plain(&whole);
        spec->seed = strtoull(node->text, &end, 10);
        if (*end != '\0' || whole.kind != NODE_INTEGER) {
            problem_found(reader, node, "seed", "an integer from 0 to 18446744073709551615");
        }
    } else {
        problem_found(reader, node, "seed", "an integer from 0 to 18446744073709551615");
    }
}

static void read_counts(struct reader *reader, const struct node *root)
{
    static const char *const known[] = {"devices_per_trial", NULL};
    static const char *const later[] = {"trials_per_device", "memory", NULL};
    struct spec *spec = reader->spec;
    const struct node *cap = node_find(root, "run_cap"), *retries = node_find(root, "max_retries");
    const struct node *resources = node_find(root, "resources");
    if (cap) {
        read_integer(reader, cap, "run_cap", 1, 1e9, &spec->run_cap);
    }
    if (retries) {
        read_integer(reader, retries, "max_retries", 0, 1000, &spec->max_retries);
    }
    if (!resources || !read_map(reader, resources, "resources", "{devices_per_trial: 1}")) {
        return;
    }
    check_keys(reader, resources, "resources", known, later, UNKNOWN_REFUSED);
    const struct node *devices = node_find(resources, "devices_per_trial");
    if (devices) {
        /* The trainer of this version uses one device; to accept more would leave the others idle. */
        read_integer(reader, devices, "resources.devices_per_trial", 1, 1, &spec->devices_per_trial);
    }
}

/* Checks of the method against the space; only a space without errors has a size. */
static void check_size(struct reader *reader, const struct node *root, size_t problems_before)
{
    struct spec *spec = reader->spec;
    const struct node *method = node_find(root, "method");
    spec->stopping.trials = spec->run_cap;
    if (reader->problem_count > problems_before) {
        return;
    }
    if (spec->sampler == &grid_sampler) {
        const char *obstacle = space_grid_obstacle(&spec->space);
        int64_t size = obstacle ? -1 : space_grid_size(&spec->space);
        if (obstacle) {
            problem_at(
                reader, node_find(node_find(root, "parameters"), obstacle), "parameters",
                "a grid cannot take %s, which is continuous, accepted values, integers from min to max, or a "
                "step",
                obstacle);
        } else if (size >= 0 && (spec->run_cap < 0 || size < spec->run_cap)) {
            spec->stopping.trials = size;
        }
    } else if (spec->run_cap < 0 && method) {
        note_at(reader, method, "run_cap", "random search without run_cap goes on until it is stopped");
    }
}

static void note_form(struct reader *reader, const struct node *node)
{
    static const char *const meanings[FORM_COUNT] = {
        [FORM_BARE_EXPONENT] =
            "%s is taken as the number it looks like; YAML 1.1 readers take it for text (1.0e-3 is "
            "a number for all)",
        [FORM_BOOLEAN_WORD] = "%s is a truth value in YAML 1.1; put it in quotes if you mean the word",
        [FORM_OCTAL] = "%s is an octal number in YAML 1.1",
        [FORM_UNDERSCORE] = "%s is a number in YAML 1.1: underscores are left out",
        [FORM_SEXAGESIMAL] = "%s is a number in base 60 in YAML 1.1; put it in quotes if you mean a time",
        [FORM_TILDE] = "%s is null in YAML",
        [FORM_HUGE_INTEGER] = "%s is beyond 64 bits and is taken as a real number",
    };
    if (node->form == FORM_USUAL || (reader->forms_noted & (1u << node->form))) {
        return;
    }
    reader->forms_noted |= 1u << node->form;
    char message[300];
    const char *meaning = meanings[node->form];
    const char *rest = strstr(meaning, "%s") + 2;
    snprintf(message, sizeof message, "%.60s%s", node->text, rest);
    note_at(reader, node, "", "%s", message);
}

static void note_forms(struct reader *reader, const struct node *node)
{
    note_form(reader, node);
    for (size_t i = 0; node->kind == NODE_LIST && i < node->count; i++) {
        note_forms(reader, node->items[i]);
    }
    for (size_t i = 0; node->kind == NODE_MAP && i < node->count; i++) {
        note_forms(reader, node->entries[i].value);
    }
}

void read_spec(struct reader *reader)
{
    struct node *root = reader->tree.root;
    if (!root || root->kind != NODE_MAP) {
        struct node start = {.line = 1, .column = 1};
        problem_at(reader, root ? root : &start, NULL,
                   "found %s, accepted a map with the keys method, parameters, train, ...",
                   !root || root->kind == NODE_NULL ? "an empty file"
                   : root->kind == NODE_LIST        ? "a list"
                                                    : "text");
        return;
    }
    apply_overrides(reader);
    if (reader->failed) {
        return; /* the tree may have holes */
    }
    note_forms(reader, root);
    for (size_t i = 0; i < root->count; i++) {
        check_top_key(reader, root->entries[i].key);
    }
    read_name(reader, root);
    bool halving_method = read_method(reader, root);
    read_metric(reader, node_find(root, "metric"));
    read_seed(reader, root);
    read_counts(reader, root);
    read_train(reader, root);
    size_t problems_before = reader->problem_count;
    read_parameters(reader, root);
    check_size(reader, root, problems_before);
    read_stopping(reader, root, halving_method);
    reader->spec->stopping.maximize = reader->spec->maximize;
    reader->spec->stopping.tie_minimize = true;
}
