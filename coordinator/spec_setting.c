/* A value against the train setting it belongs to: its type, its range, and what is said when it does not
 * fit. */
#include "coordinator/spec_reader.h"

#include "base/files.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_BOUND 9e15 /* bounds beyond it (2^53) are there for the type, not for people */

bool setting_takes(const struct setting *setting, double number)
{
    return isfinite(number) &&
           (setting->minimum_open ? number > setting->minimum : number >= setting->minimum) &&
           (setting->maximum_open ? number < setting->maximum : number <= setting->maximum);
}

static void append_range(struct text *text, const struct setting *setting)
{
    char buffer[NUMBER_SIZE];
    bool low = setting->minimum > -NO_BOUND, high = setting->maximum < NO_BOUND;
    bool integers = setting->type != SETTING_NUMBER;
    if (low) {
        text_append(text, setting->minimum_open ? " > " : " >= ");
        integers ? text_printf(text, "%.0f", setting->minimum)
                 : text_append(text, number_format(setting->minimum, buffer));
    }
    if (high) {
        text_append(text, low ? " and" : "");
        text_append(text, setting->maximum_open ? " < " : " <= ");
        integers ? text_printf(text, "%.0f", setting->maximum)
                 : text_append(text, number_format(setting->maximum, buffer));
    }
}

const char *setting_accepted(const struct setting *setting, struct text *text)
{
    static const char *const kinds[] = {
        [SETTING_INTEGER] = "an integer",
        [SETTING_NUMBER] = "a number",
        [SETTING_BOOLEAN] = "true or false",
        [SETTING_STRING] = "text",
        [SETTING_CHOICE] = "",
        [SETTING_INTEGER_OR_CHOICE] = "",
        [SETTING_INTEGER_LIST] = "a list of integers",
        [SETTING_PATH] = "the path of a readable file",
        [SETTING_SCALAR] = "text, an integer or null",
        [SETTING_SCALAR_LIST] = "text, an integer or null, or a list of texts and integers",
        [SETTING_VALUE_LIST] = "text, a number or null, or a list of texts and numbers",
    };
    text_append(text, kinds[setting->type]);
    if (setting->type == SETTING_CHOICE) {
        words_join(text, setting->choices);
    } else if (setting->type == SETTING_INTEGER_OR_CHOICE) {
        words_join(text, setting->choices);
        text_append(text, " or an integer");
        append_range(text, setting);
    } else if (setting->type == SETTING_INTEGER || setting->type == SETTING_NUMBER ||
               setting->type == SETTING_INTEGER_LIST) {
        append_range(text, setting);
    }
    return text->data ? text->data : "";
}

static json_t *refuse(struct reader *reader, const struct setting *setting, const struct node *node,
                      const char *key)
{
    struct text text;
    text_init(&text);
    setting_accepted(setting, &text);
    bool in_quotes = node->kind == NODE_STRING && node->quoted && setting->type != SETTING_CHOICE;
    problem_found(reader, node, key, "%s%s", text.data ? text.data : "",
                  in_quotes ? " (without quotes)" : "");
    text_release(&text);
    return NULL;
}

/* 1000.0 and 1e3 are integers where an integer is asked for. */
static bool whole_number(const struct node *node, int64_t *value)
{
    if (node->kind == NODE_NUMBER && fabs(node->number) < NO_BOUND && node->number == floor(node->number)) {
        *value = (int64_t)node->number;
        return true;
    }
    return node_integer(node, value);
}

static json_t *read_integers(struct reader *reader, const struct setting *setting, const struct node *node,
                             const char *key)
{
    const struct node *const single[] = {node};
    const struct node *const *items =
        node->kind == NODE_LIST ? (const struct node *const *)node->items : single;
    size_t count = node->kind == NODE_LIST ? node->count : 1;
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++) {
        int64_t value;
        if (!whole_number(items[i], &value) || !setting_takes(setting, (double)value)) {
            json_decref(array);
            return refuse(reader, setting, items[i], key);
        }
        json_array_append_new(array, json_integer(value));
    }
    return array;
}

static json_t *read_path(struct reader *reader, const struct setting *setting, const struct node *node,
                         const char *key)
{
    if (node->kind != NODE_STRING || node->text[0] == '\0') {
        return refuse(reader, setting, node, key);
    }
    char *folder = realpath(reader->spec->folder, NULL);
    char *path = path_join(folder ? folder : reader->spec->folder, node->text);
    json_t *value = NULL;
    struct stat status;
    errno = 0;
    if (!path) {
        reader->failed = true;
    } else if (!reader->restoring && (access(path, R_OK) != 0 || stat(path, &status) != 0)) {
        problem_found(reader, node, key, "the path of a readable file: %s: %s", path, strerror(errno));
    } else if (!reader->restoring && !S_ISREG(status.st_mode)) {
        problem_found(reader, node, key, "the path of a readable file: %s is %s", path,
                      S_ISDIR(status.st_mode) ? "a folder" : "a device, a pipe or a socket");
    } else {
        value = json_string(path);
        if (!value) {
            problem_at(reader, node, key, "is in a folder whose name is no UTF-8 text: %s", path);
        }
    }
    free(folder);
    free(path);
    return value;
}

/* true and false are words too where a choice has them (header: true). */
static json_t *read_word(struct reader *reader, const struct setting *setting, const struct node *node,
                         const char *key)
{
    const char *boolean = node->boolean ? "true" : "false";
    if (node->kind == NODE_BOOLEAN && word_is_in(boolean, setting->choices)) {
        return json_string(boolean);
    }
    int choice = read_choice(reader, node, key, setting->choices);
    return choice < 0 ? NULL : json_string(setting->choices[choice]);
}

static bool is_scalar(const struct node *node)
{
    int64_t integer;
    return node->kind == NODE_STRING || node->kind == NODE_NULL || node_integer(node, &integer);
}

static bool is_value(const struct node *node)
{
    return is_scalar(node) || node->kind == NODE_NUMBER || node->kind == NODE_INTEGER;
}

static bool is_list_of(const struct node *node, bool (*is_item)(const struct node *item))
{
    bool all = node->kind == NODE_LIST && node->count > 0;
    for (size_t i = 0; i < node->count && all; i++) {
        all = is_item(node->items[i]) && node->items[i]->kind != NODE_NULL;
    }
    return all;
}

json_t *setting_read(struct reader *reader, const struct setting *setting, const struct node *node,
                     const char *key)
{
    int64_t integer;
    switch (setting->type) {
    case SETTING_INTEGER:
        if (whole_number(node, &integer) && setting_takes(setting, (double)integer)) {
            return json_integer(integer);
        }
        break;
    case SETTING_NUMBER:
        if ((node->kind == NODE_NUMBER || node->kind == NODE_INTEGER) &&
            setting_takes(setting, node->number)) {
            return json_real(node->number);
        }
        break;
    case SETTING_BOOLEAN:
        if (node->kind == NODE_BOOLEAN) {
            return json_boolean(node->boolean);
        }
        break;
    case SETTING_STRING:
        if (node->kind == NODE_STRING) {
            return json_string(node->text);
        }
        break;
    case SETTING_SCALAR:
        if (is_scalar(node)) {
            return node_to_json(node);
        }
        break;
    case SETTING_SCALAR_LIST:
        if (is_scalar(node) || is_list_of(node, is_scalar)) {
            return node_to_json(node);
        }
        break;
    case SETTING_VALUE_LIST:
        if (is_value(node) || is_list_of(node, is_value)) {
            return node_to_json(node);
        }
        break;
    case SETTING_CHOICE:
        return read_word(reader, setting, node, key);
    case SETTING_INTEGER_OR_CHOICE:
        if (whole_number(node, &integer) && setting_takes(setting, (double)integer)) {
            return json_integer(integer);
        }
        if (node->kind == NODE_STRING && word_is_in(node->text, setting->choices)) {
            return json_string(node->text);
        }
        break;
    case SETTING_INTEGER_LIST:
        return read_integers(reader, setting, node, key);
    case SETTING_PATH:
        return read_path(reader, setting, node, key);
    }
    return refuse(reader, setting, node, key);
}

const char **setting_names(struct reader *reader, bool searchable)
{
    size_t count = 0;
    for (const struct setting *setting = reader->settings; setting && setting->name; setting++) {
        count++;
    }
    const char **names = calloc(count + 1, sizeof(*names));
    if (!names) {
        reader->failed = true;
        return NULL;
    }
    count = 0;
    for (const struct setting *setting = reader->settings; setting && setting->name; setting++) {
        if (setting->searchable || !searchable) {
            names[count++] = setting->name;
        }
    }
    return names;
}
