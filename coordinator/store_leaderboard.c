/* The leaderboard: one SQL query, shaped into JSON rows. */
#include "base/text.h"
#include "coordinator/store.h"
#include "coordinator/store_internal.h"
#include "coordinator/where.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL-terminated lists of the names that a statement selects for a sweep, and of the types each has. */
struct names {
    char **words, **types;
    size_t count;
};

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->words[i]);
        free(names->types[i]);
    }
    free(names->words);
    free(names->types);
}

static int names_load(struct names *names, struct store *store, enum statement statement,
                      const char *sweep_id, struct error *err)
{
    struct cursor cursor;
    int result;
    cursor_start(&cursor, store, statement);
    cursor_put_static(&cursor, sweep_id);
    while ((result = cursor_step(&cursor, err)) == 1) {
        char **words = reallocarray(names->words, names->count + 2, sizeof *words);
        names->words = words != NULL ? words : names->words;
        char **types = reallocarray(names->types, names->count + 2, sizeof *types);
        names->types = types != NULL ? types : names->types;
        char *word = cursor_get_text(&cursor), *type = cursor_get_text(&cursor);
        if (words == NULL || types == NULL || word == NULL || type == NULL) {
            free(word);
            free(type);
            result = error_set(err, ERROR_MEMORY, "no memory for the names of sweep %s", sweep_id);
            break;
        }
        names->types[names->count] = type;
        names->words[names->count++] = word;
        names->types[names->count] = names->words[names->count] = NULL;
    }
    cursor_end(&cursor);
    return result;
}

/* --where and --sort, compiled against the names that the sweep has. */
struct filter {
    struct where where, sort;
};

static int filter_compile(struct filter *filter, struct store *store, const char *sweep_id,
                          const struct leaderboard_query *query, struct error *err)
{
    if (query->where == NULL && query->sort == NULL) {
        return 0;
    }
    struct names parameters = {0}, metrics = {0}, derived = {0};
    int result = -1;
    if (names_load(&parameters, store, STATEMENT_NAMES_OF_PARAMETERS, sweep_id, err) == 0 &&
        names_load(&metrics, store, STATEMENT_NAMES_OF_METRICS, sweep_id, err) == 0 &&
        names_load(&derived, store, STATEMENT_NAMES_OF_DERIVED, sweep_id, err) == 0) {
        struct where_names names = {.parameters = (const char *const *)parameters.words,
                                    .metrics = (const char *const *)metrics.words,
                                    .derived = (const char *const *)derived.words,
                                    .parameter_types = (const char *const *)parameters.types,
                                    .derived_types = (const char *const *)derived.types};
        int first = SQL_LEADERBOARD_FIRST_FREE;
        result = query->where == NULL ? 0 : where_compile(&filter->where, query->where, &names, first, err);
        if (result == 0 && query->sort != NULL) {
            first += (int)filter->where.value_count;
            result = where_compile_sort(&filter->sort, query->sort, &names, first, err);
        }
    }
    names_release(&parameters);
    names_release(&metrics);
    names_release(&derived);
    return result;
}

static void put_values(struct cursor *cursor, const struct where *where)
{
    for (size_t i = 0; i < where->value_count; i++) {
        const struct where_value *value = &where->values[i];
        if (value->kind == WHERE_REAL) {
            cursor_put_real(cursor, value->real);
        } else {
            cursor_put_static(cursor, value->text);
        }
    }
}

static json_t *integer_or_null(struct cursor *cursor)
{
    bool null = cursor_next_is_null(cursor);
    int64_t value = cursor_get_integer(cursor);
    return null ? json_null() : json_integer(value);
}

static json_t *number_or_null(struct cursor *cursor)
{
    double value = cursor_get_real(cursor);
    return isnan(value) ? json_null() : json_number(value);
}

static json_t *string_or_null(struct cursor *cursor)
{
    const char *value = cursor_get_static(cursor);
    return value == NULL ? json_null() : json_string(value);
}

static json_t *object_or_empty(struct cursor *cursor)
{
    json_t *value = cursor_get_json(cursor);
    return value == NULL ? json_object() : value;
}

/* The row in the order of keys that people see; NULL without memory. */
static json_t *board_row(struct cursor *cursor, const char *sweep_name)
{
    json_t *row = json_object();
    int failed = json_object_set_new(row, "rank", integer_or_null(cursor));
    failed |= json_object_set_new(row, "sweep", json_string(sweep_name));
    failed |= json_object_set_new(row, "trial", integer_or_null(cursor));
    failed |= json_object_set_new(row, "state", string_or_null(cursor));
    failed |= json_object_set_new(row, "reason", string_or_null(cursor));
    failed |= json_object_set_new(row, "objective", number_or_null(cursor));
    failed |= json_object_set_new(row, "resource", integer_or_null(cursor));
    failed |= json_object_set_new(row, "parameters", object_or_empty(cursor));
    failed |= json_object_set_new(row, "derived", object_or_empty(cursor));
    failed |= json_object_set_new(row, "metrics", object_or_empty(cursor));
    failed |= json_object_set_new(row, "seconds", number_or_null(cursor));
    failed |= json_object_set_new(row, "worker", string_or_null(cursor));
    failed |= json_object_set_new(row, "device", string_or_null(cursor));
    failed |= json_object_set_new(row, "attempts", integer_or_null(cursor));
    if (failed != 0) {
        json_decref(row);
        return NULL;
    }
    return row;
}

static void append_order(struct text *sql, const struct filter *filter)
{
    text_append(sql, " ORDER BY ");
    if (filter->sort.sql != NULL) {
        text_append(sql, filter->sort.sql);
        text_append(sql, ", ");
    }
    text_append(sql, "rank NULLS LAST, trial");
}

static char *board_sql(bool best, const struct leaderboard_query *query, const struct filter *filter)
{
    static const char *const shown[] = {SQL_SHOWN(SQL_REPORT_LAST, "ranked"),
                                        SQL_SHOWN(SQL_REPORT_BEST, "ranked")};
    static const char *const choose[] = {SQL_CHOSEN(SQL_REPORT_LAST), SQL_CHOSEN(SQL_REPORT_BEST)};
    static const char *const shown_chosen[] = {SQL_SHOWN(SQL_REPORT_LAST, "chosen"),
                                               SQL_SHOWN(SQL_REPORT_BEST, "chosen")};
    struct text sql;
    text_init(&sql);
    text_append(&sql, SQL_RANKED);
    text_append(&sql, query->top > 0 ? choose[best] : shown[best]);
    if (filter->where.sql != NULL) {
        text_append(&sql, " WHERE ");
        text_append(&sql, filter->where.sql);
    }
    append_order(&sql, filter);
    if (query->top > 0) {
        text_printf(&sql, " LIMIT %lld)", (long long)query->top);
        text_append(&sql, shown_chosen[best]);
        append_order(&sql, filter);
    }
    return text_steal(&sql);
}

/* ?3, the metric's path, is in the query only for objective `best`; values of the filter start behind it. */
static void put_all(struct cursor *cursor, const struct sweep_record *sweep, const struct sweep_goal *goal,
                    const struct filter *filter)
{
    cursor_put_static(cursor, sweep->id);
    cursor_put_integer(cursor, goal->maximize ? -1 : 1);
    if (goal->best) {
        struct text path;
        text_init(&path);
        text_printf(&path, "$.\"%s\"", goal->metric);
        cursor_put_text(cursor, path.failed ? "$" : path.data);
        text_release(&path);
    } else if (filter->where.value_count + filter->sort.value_count > 0) {
        cursor_put_static(cursor, NULL);
    }
    put_values(cursor, &filter->where);
    put_values(cursor, &filter->sort);
}

static json_t *board_rows(struct store *store, const struct sweep_record *sweep,
                          const struct leaderboard_query *query, const struct filter *filter,
                          struct error *err)
{
    struct sweep_goal goal;
    struct cursor cursor = {0};
    sweep_goal_read(&goal, sweep->normalised);
    /* No JSON path can name such a metric: show the last report. */
    goal.best = goal.best && strpbrk(goal.metric, "\"\\") == NULL;
    char *sql = board_sql(goal.best, query, filter);
    json_t *rows = json_array();
    int result = -1;
    if (sql == NULL || rows == NULL) {
        error_set(err, ERROR_MEMORY, "no memory for the leaderboard");
    } else if (cursor_prepare(&cursor, store, sql, err) == 0) {
        put_all(&cursor, sweep, &goal, filter);
        while ((result = cursor_step(&cursor, err)) == 1) {
            if (json_array_append_new(rows, board_row(&cursor, sweep->name)) != 0) {
                result = error_set(err, ERROR_MEMORY, "no memory for the leaderboard");
                break;
            }
        }
    }
    if (cursor.store != NULL) {
        cursor_end(&cursor);
    }
    free(sql);
    if (result != 0) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}

/* Where each point was trained with k seeds, which rows are as good as the best within its standard error,
 * sd / sqrt(k): "within_one_se". */
static int rows_mark(struct store *store, const struct sweep_record *sweep, json_t *rows, struct error *err)
{
    const struct leaderboard_query first = {.top = 1};
    const struct filter none = {0};
    struct sweep_goal goal;
    char sd_name[300];
    double best_value = NAN, sd = NAN, value;
    size_t i;
    json_t *row;
    int64_t seeds = json_get_integer(json_object_get(sweep->normalised, "train"), "replicates", 1);
    sweep_goal_read(&goal, sweep->normalised);
    if (seeds < 2 || goal.metric[0] == '\0') {
        return 0;
    }
    json_t *best = board_rows(store, sweep, &first, &none, err);
    if (best == NULL) {
        return -1;
    }
    snprintf(sd_name, sizeof sd_name, "%.280s_sd", goal.metric);
    json_number_get(json_object_get(json_array_get(best, 0), "objective"), &best_value);
    json_number_get(json_object_get(json_object_get(json_array_get(best, 0), "metrics"), sd_name), &sd);
    double error = isfinite(sd) ? sd / sqrt((double)seeds) : 0;
    json_array_foreach(rows, i, row)
    {
        bool near =
            json_number_get(json_object_get(row, "objective"), &value) && fabs(value - best_value) <= error;
        json_object_set_new(row, "within_one_se", json_boolean(near));
    }
    json_decref(best);
    return 0;
}

json_t *store_leaderboard(struct store *store, const char *sweep_id, const struct leaderboard_query *query,
                          struct error *err)
{
    struct sweep_record sweep;
    struct filter filter = {0};
    json_t *rows = NULL;
    /* One read transaction: names, sweep and rows are of one moment. */
    if (store_begin(store, false, err) != 0) {
        return NULL;
    }
    int found = store_find_sweep(store, sweep_id, &sweep, err);
    if (found == 0) {
        store_no_sweep(store, sweep_id, err);
    }
    if (found == 1 && filter_compile(&filter, store, sweep.id, query, err) == 0) {
        rows = board_rows(store, &sweep, query, &filter, err);
        if (rows != NULL && rows_mark(store, &sweep, rows, err) != 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    store_end(store, false, NULL);
    where_release(&filter.where);
    where_release(&filter.sort);
    if (found == 1) {
        struct record record = {.type = RECORD_SWEEP, .sweep = sweep};
        record_release(&record);
    }
    return rows;
}
