/* Columns of a listing, its cells, and its machine-readable forms. */
#include "cli/listing.h"

#include "base/clock.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool listing_format_parse(const char *name, enum listing_format *format)
{
    static const char *const names[] = {
        [LISTING_TABLE] = "table", [LISTING_JSON] = "json", [LISTING_CSV] = "csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *format = (enum listing_format)i;
            return true;
        }
    }
    return false;
}

void listing_init(struct listing *listing)
{
    *listing = (struct listing){0};
}

void listing_release(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free(listing->columns[i].path);
        free(listing->columns[i].heading);
    }
    free(listing->columns);
    listing_init(listing);
}

void listing_add(struct listing *listing, const char *path, const char *heading, enum listing_style style)
{
    struct listing_column *grown = reallocarray(listing->columns, listing->count + 1, sizeof *grown);
    if (grown == NULL) {
        listing->failed = true;
        return;
    }
    listing->columns = grown;
    struct listing_column *column = &grown[listing->count++];
    *column = (struct listing_column){
        .path = strdup(path), .heading = strdup(heading != NULL ? heading : path), .style = style};
    listing->failed = listing->failed || column->path == NULL || column->heading == NULL;
}

void listing_add_key(struct listing *listing, const char *object, const char *key, bool prefixed,
                     enum listing_style style)
{
    struct text path;
    text_init(&path);
    text_printf(&path, "%s.%s", object, key);
    if (path.failed) {
        listing->failed = true;
    } else {
        listing_add(listing, path.data, prefixed ? path.data : key, style);
    }
    text_release(&path);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void listing_add_keys(struct listing *listing, const json_t *rows, const char *object, bool prefixed)
{
    json_t *all = json_object();
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        json_object_update(all, json_object_get(row, object));
    }
    const char **names = calloc(json_object_size(all) + 1, sizeof *names);
    if (all == NULL || names == NULL) {
        listing->failed = true;
    } else {
        const char *name;
        json_t *value;
        size_t count = 0;
        json_object_foreach(all, name, value)
        {
            names[count++] = name;
        }
        qsort(names, count, sizeof *names, compare_names);
        for (size_t k = 0; k < count; k++) {
            listing_add_key(listing, object, names[k], prefixed, LISTING_VALUE);
        }
    }
    free(names);
    json_decref(all);
}

const json_t *listing_value(const json_t *row, const char *path)
{
    const json_t *value = json_object_get(row, path);
    const char *dot = strchr(path, '.');
    if (value != NULL || dot == NULL) {
        return value;
    }
    return json_object_get(json_object_getn(row, path, (size_t)(dot - path)), dot + 1);
}

/* The rounded number in the form that all numbers have here: 1e-05, 3.0. */
static void append_rounded(struct text *text, double value, const char *format)
{
    char rounded[NUMBER_SIZE], shortest[NUMBER_SIZE];
    snprintf(rounded, sizeof rounded, format, value);
    text_append(text, number_format(strtod(rounded, NULL), shortest));
}

/* 0.00342, 0.25, 12.3, 1234: as exact as anyone compares durations. */
static void append_seconds(struct text *text, double seconds)
{
    if (seconds < 99.95) {
        append_rounded(text, seconds, "%.3g");
    } else {
        text_printf(text, "%.0f", seconds);
    }
}

static void append_printable(struct text *text, const char *string)
{
    for (const char *c = string; *c != '\0'; c++) {
        bool control = (unsigned char)*c < 0x20 || *c == 0x7F;
        text_append_bytes(text, control ? (*c == '\n' || *c == '\t' ? " " : "?") : c, 1);
    }
}

/* A score over several seeds: 0.9722 ± 0.0031. */
static void append_score(struct text *text, const json_t *mean, const json_t *deviation)
{
    listing_append(text, mean, LISTING_VALUE);
    double value;
    if (json_is_string(deviation)) { /* not finite */
        text_append(text, " \xC2\xB1 ");
        append_printable(text, json_string_value(deviation));
    } else if (json_number_get(deviation, &value) && value > 0) {
        text_append(text, " \xC2\xB1 ");
        append_rounded(text, value, "%.2g");
    }
}

void listing_append(struct text *text, const json_t *value, enum listing_style style)
{
    char time[32];
    double mean;
    if (value == NULL || json_is_null(value)) {
        text_append(text, "-");
    } else if (style == LISTING_TIME && json_is_integer(value)) {
        text_append(text, clock_format_local(json_integer_value(value), time, sizeof time));
    } else if (style == LISTING_SECONDS && json_is_number(value)) {
        append_seconds(text, json_number_value(value));
    } else if (json_is_real(value)) {
        append_rounded(text, json_real_value(value), style == LISTING_BRIEF ? "%.4g" : "%.6g");
    } else if (json_is_string(value)) {
        append_printable(text, json_string_value(value));
    } else if (json_number_get(json_object_get(value, "mean"), &mean)) {
        append_score(text, json_object_get(value, "mean"), json_object_get(value, "sd"));
    } else {
        json_append(text, value);
    }
}

static void append_quoted(struct text *text, const char *string)
{
    if (strpbrk(string, "\",\r\n") == NULL) {
        text_append(text, string);
        return;
    }
    text_append(text, "\"");
    for (const char *c = string; *c != '\0'; c++) {
        text_append_bytes(text, c, 1);
        if (*c == '"') {
            text_append(text, "\"");
        }
    }
    text_append(text, "\"");
}

static void append_csv_cell(struct text *text, const json_t *value)
{
    if (value == NULL || json_is_null(value)) {
        return;
    }
    if (json_is_string(value)) {
        append_quoted(text, json_string_value(value));
        return;
    }
    char *canonical = json_canonical(value);
    text->failed = text->failed || canonical == NULL;
    append_quoted(text, canonical != NULL ? canonical : "");
    free(canonical);
}

int listing_csv(const struct listing *listing, const json_t *rows, struct text *text, struct error *err)
{
    for (size_t i = 0; i < listing->count; i++) {
        text_append(text, i > 0 ? "," : "");
        append_quoted(text, listing->columns[i].heading);
    }
    text_append(text, "\n");
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        for (size_t i = 0; i < listing->count; i++) {
            text_append(text, i > 0 ? "," : "");
            append_csv_cell(text, listing_value(row, listing->columns[i].path));
        }
        text_append(text, "\n");
    }
    return listing->failed || text->failed ? error_set(err, ERROR_MEMORY, "no memory for the table") : 0;
}

json_t *listing_rows(const struct listing *listing, const json_t *rows)
{
    json_t *reduced = json_array();
    int failed = reduced == NULL || listing->failed;
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        json_t *object = json_object();
        for (size_t i = 0; i < listing->count; i++) {
            const json_t *value = listing_value(row, listing->columns[i].path);
            failed |= json_object_set_new(object, listing->columns[i].heading,
                                          value != NULL ? json_incref((json_t *)value) : json_null());
        }
        failed |= json_array_append_new(reduced, object);
    }
    if (failed != 0) {
        json_decref(reduced);
        return NULL;
    }
    return reduced;
}
