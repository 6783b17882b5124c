/* Planning the features of a table from its training rows; see data_features.h. */
#include "worker/training/data_columns.h"
#include "worker/training/data_features.h"
#include "worker/training/data_messages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers from here on are not all told apart in double precision. */
#define INTEGERS_EXACT 9007199254740992.0 /* 2^53 */
/* With more rows than this, texts that are all different are names of the rows. */
#define NAMES_LEAST 100

struct fit {
    struct features *features;
    struct table *table;
    const struct feature_options *options;
    const int64_t *rows;
    int64_t train_rows, all_rows;
    double *value; /* (train_rows) one column's numbers */
    struct misfits misfits;
    struct mentions empty, constant, index, names, counting; /* columns by what is said of them */
    struct mentions imputed, imputed_later, rounded, rare, unseen, numbered;
};

static int no_memory(const struct fit *fit, struct error *err)
{
    return error_set(err, ERROR_MEMORY, "%s: no memory for its features", fit->table->label);
}

/* Room for one more entry of `size` bytes in an array that grows by doubling. */
static void *grow(void *array, int64_t count, int64_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    int64_t wanted = *capacity ? *capacity * 2 : 64;
    void *more = realloc(array, (size_t)wanted * size);
    if (more)
        *capacity = wanted;
    return more;
}

static struct feature *add_feature(struct features *features, enum feature_kind kind, int64_t column)
{
    struct feature *more =
        grow(features->feature, features->count, &features->capacity, sizeof *features->feature);
    if (!more)
        return NULL;
    features->feature = more;
    struct feature *feature = &features->feature[features->count++];
    *feature = (struct feature){.kind = kind, .column = column};
    return feature;
}

/* The training rows' numbers into fit->value. */
struct gathered {
    int64_t count;
    double low, high;
    bool integers;
};

static struct gathered gather(struct fit *fit, const struct column *column)
{
    const double *number = column->number + fit->table->first;
    struct gathered gathered = {0, INFINITY, -INFINITY, true};
    for (int64_t i = 0; i < fit->train_rows; i++) {
        double x = number[fit->rows[i]];
        if (isnan(x))
            continue;
        gathered.low = x < gathered.low ? x : gathered.low;
        gathered.high = x > gathered.high ? x : gathered.high;
        gathered.integers = gathered.integers && x == floor(x);
        fit->value[gathered.count++] = x;
    }
    return gathered;
}

static int64_t count_missing_later(const struct fit *fit, const struct column *column)
{
    int64_t missing = 0;
    for (int64_t i = fit->train_rows; i < fit->all_rows; i++)
        missing += isnan(column->number[fit->table->first + fit->rows[i]]) != 0;
    return missing;
}

static int fit_numbers(struct fit *fit, int64_t c, bool gaps, struct error *err)
{
    const struct column *column = &fit->table->columns[c];
    struct gathered gathered = gather(fit, column);
    int64_t missing = fit->train_rows - gathered.count;
    bool varies = gathered.low < gathered.high;
    if (gathered.count == 0 || (!varies && missing == 0)) {
        mentions_add(gathered.count ? &fit->constant : &fit->empty, "%.30s", column->name);
        return 0;
    }
    if (gathered.integers && (gathered.high >= INTEGERS_EXACT || gathered.low <= -INTEGERS_EXACT))
        mentions_add(&fit->rounded, "%.30s", column->name);
    if (varies) {
        struct feature *feature = add_feature(fit->features, FEATURE_NUMBER, c);
        if (!feature)
            return no_memory(fit, err);
        if (scaling_fit(&feature->scaling, fit->options->preprocess, fit->value, gathered.count, err) < 0)
            return error_prefix(err, "%s: column \"%.80s\"", fit->table->label, column->name);
    }
    int64_t later = gaps && missing == 0 ? count_missing_later(fit, column) : 0;
    if (later)
        mentions_add(&fit->imputed_later, "%.30s (%lld)", column->name, (long long)later);
    if (missing == 0)
        return 0;
    mentions_add(&fit->imputed, "%.30s (%lld)", column->name, (long long)missing);
    return add_feature(fit->features, FEATURE_MISSING, c) ? 0 : no_memory(fit, err);
}

static int add_one_hot(struct fit *fit, int64_t c, const struct tally *tally, struct error *err)
{
    int32_t *entry = tally_by_text(tally, &fit->table->columns[c]);
    int failed = entry ? 0 : -1;
    for (int64_t i = 0; i < tally->kinds && !failed; i++) {
        struct feature *feature = add_feature(fit->features, FEATURE_CATEGORY, c);
        failed = feature ? 0 : -1;
        if (feature)
            feature->entry = entry[i];
    }
    free(entry);
    return failed ? no_memory(fit, err) : 0;
}

static int add_numbering(struct fit *fit, int64_t c, const struct tally *tally, struct error *err)
{
    struct features *features = fit->features;
    struct numbering *more = grow(features->numbering, features->numbering_count,
                                  &features->numbering_capacity, sizeof *features->numbering);
    if (!more)
        return no_memory(fit, err);
    features->numbering = more;
    if (numbering_init(&more[features->numbering_count], tally, fit->table, c) < 0)
        return no_memory(fit, err);
    features->numbering_count++;
    return 0;
}

static int plan_texts(struct fit *fit, int64_t c, const struct tally *tally, struct error *err)
{
    const char *name = fit->table->columns[c].name;
    bool many = tally->kinds > fit->options->max_categories;
    if (tally->kinds < 2) {
        mentions_add(&fit->constant, "%.30s", name);
        return 0;
    }
    /* Every text a row's own: nothing that training learns of one holds for another row. */
    if (tally->repeated == 0 && (many || tally->present > NAMES_LEAST)) {
        mentions_add(&fit->names, "%.30s", name);
        return 0;
    }
    if (tally->unseen)
        mentions_add(&fit->unseen, "%.30s (%lld)", name, (long long)tally->unseen);
    if (many) {
        mentions_add(&fit->numbered, "%.30s (%lld)", name, (long long)tally->kinds);
        return add_numbering(fit, c, tally, err);
    }
    if (tally->rare)
        mentions_add(&fit->rare, "%.30s (%lld)", name, (long long)tally->rare);
    return add_one_hot(fit, c, tally, err);
}

static int fit_texts(struct fit *fit, int64_t c, struct error *err)
{
    struct column *column = &fit->table->columns[c];
    struct tally tally;
    if (column_make_texts(fit->table, column, err) < 0)
        return -1;
    if (tally_init(&tally, fit->table, column, fit->rows, fit->train_rows, fit->all_rows) < 0)
        return no_memory(fit, err);
    int failed = plan_texts(fit, c, &tally, err);
    tally_release(&tally);
    return failed;
}

static int fit_column(struct fit *fit, int64_t c, struct error *err)
{
    struct column *column = &fit->table->columns[c];
    struct column_summary summary = column_summarise(fit->table, column, fit->table->first);
    enum column_use use = column_use(&summary);
    bool gaps = summary.missing + summary.doubtful > 0;
    bool counts = use == COLUMN_NUMBERS && column_counts_rows(fit->table, column);
    if (use == COLUMN_EMPTY) {
        mentions_add(&fit->empty, "%.30s", column->name);
        return 0;
    }
    if (counts && column_is_unnamed(fit->table, c)) {
        mentions_add(&fit->index, "%.30s", column->name);
        return 0;
    }
    if (use == COLUMN_TEXTS)
        return fit_texts(fit, c, err);
    if (summary.texts) {
        misfits_add_numbers(&fit->misfits, fit->table, c);
        return 0;
    }
    if (counts && summary.numbers > NAMES_LEAST)
        mentions_add(&fit->counting, "%.30s", column->name);
    return fit_numbers(fit, c, gaps, err);
}

/* What was decided; released either way. */
static void tell(struct fit *fit, json_t *notes)
{
    char many[80], rare[80];
    snprintf(many, sizeof many, "of more than %lld different texts (data.max_categories)",
             (long long)fit->options->max_categories);
    snprintf(rare, sizeof rare, "with texts that fewer than %d training rows have", CATEGORY_ROWS);
    struct {
        struct mentions *listing;
        const char *done, *why, *remedy;
    } said[] = {
        {&fit->empty, "dropped", "without values", ""},
        {&fit->constant, "dropped", "constant in training", ""},
        {&fit->index, "dropped", "that only count the rows", ""},
        {&fit->names, "dropped", "of texts that are all different",
         "; what rows have in common (a title, a prefix) would be worth a column of its own"},
        {&fit->counting, "kept", "that may only count the rows", "; if so, data.drop leaves them out"},
        {&fit->imputed, "filled in", "with numbers missing in training, and one more feature each says where",
         ""},
        {&fit->imputed_later, "filled in", "with numbers missing, though not in training", ""},
        {&fit->rounded, "rounded", "of integers beyond 2^53 to double precision",
         "; a letter before them makes them texts"},
        {&fit->numbered, "embedded", many, ""},
        {&fit->unseen, "found", "with texts that no training row has, taken for none of the known", ""},
        {&fit->rare, "found", rare, ""},
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        mentions_note(said[i].listing, fit->table->label, said[i].done, said[i].why, said[i].remedy, notes);
}

/* Why there is nothing to learn from, since no note will say so. */
static int refuse_nothing(const struct fit *fit, struct error *err)
{
    const struct {
        const struct mentions *listing;
        const char *what;
    } reasons[] = {
        {&fit->empty, "without values"},
        {&fit->constant, "constant in training"},
        {&fit->index, "counting the rows"},
        {&fit->names, "of texts that are all different"},
    };
    struct text text;
    text_init(&text);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].listing->count)
            text_printf(&text, "; %lld %s: %s%s", (long long)reasons[i].listing->count, reasons[i].what,
                        reasons[i].listing->names.data ? reasons[i].listing->names.data : "",
                        reasons[i].listing->count > MENTIONS_NAMED ? ", ..." : "");
    error_set(err, ERROR_USAGE, "%s: no column is left to learn from (of %lld, the target among them)%s",
              fit->table->label, (long long)fit->table->column_count, text.data ? text.data : "");
    text_release(&text);
    return -1;
}

static int fit_columns(struct fit *fit, struct error *err)
{
    const struct table *table = fit->table;
    int failed = 0;
    for (int64_t c = 0; c < table->column_count && !failed; c++)
        if (!fit->options->excluded || !fit->options->excluded[c])
            failed = fit_column(fit, c, err);
    if (!failed)
        failed = misfits_report(&fit->misfits, table, err);
    if (!failed && fit->features->count + fit->features->numbering_count == 0)
        failed = refuse_nothing(fit, err);
    return failed;
}

int features_fit(struct features *features, struct table *table, const struct feature_options *options,
                 const int64_t *rows, int64_t train_rows, int64_t all_rows, json_t *notes, struct error *err)
{
    memset(features, 0, sizeof *features);
    features->preprocess = options->preprocess;
    features->missing = options->missing;
    struct fit fit = {.features = features,
                      .table = table,
                      .options = options,
                      .rows = rows,
                      .train_rows = train_rows,
                      .all_rows = all_rows};
    fit.value = malloc((size_t)train_rows * sizeof *fit.value);
    if (!fit.value)
        return no_memory(&fit, err);
    misfits_init(&fit.misfits);
    int failed = fit_columns(&fit, err);
    misfits_release(&fit.misfits);
    free(fit.value);
    tell(&fit, failed ? NULL : notes);
    if (failed)
        features_release(features);
    return failed;
}

int feature_options_read(struct feature_options *options, const json_t *data, struct error *err)
{
    *options = (struct feature_options){.max_categories = json_get_integer(data, "max_categories", 32),
                                        .missing = json_object_get(data, "missing")};
    if (options->max_categories < 2)
        return error_set(err, ERROR_USAGE, "data.max_categories: found %lld, accepted 2 or more",
                         (long long)options->max_categories);
    const char *wanted = json_get_string(data, "preprocess", preprocess_names[0]);
    for (int i = 0; preprocess_names[i]; i++)
        if (!strcmp(preprocess_names[i], wanted)) {
            options->preprocess = (enum preprocess)i;
            return 0;
        }
    return error_set(err, ERROR_USAGE,
                     "data.preprocess: found '%.80s', accepted standard, quantile, robust or none", wanted);
}
