/* Trained steps against PyTorch's (golden.py): losses, learning rates, final weights and running statistics,
 * and the outputs in evaluation mode, in whole batches and in micro batches of 3. Compiled for float32 and
 * for float64. */
#include "training_fixture.h"

#include "base/files.h"
#include "base/json.h"
#include "worker/training/schedule.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER RUNG_SOURCE_DIR "/tests/unit/worker/golden"

#ifdef RUNG_REAL_DOUBLE
#define TOLERANCE 1e-10
#else
#define TOLERANCE 5e-5 /* some 12 steps of float32 rounding, which norms of five columns amplify */
#endif

static json_t *golden_load(const char *name)
{
    struct error err = {0};
    char *path = path_join(FOLDER, name);
    size_t size;
    char *text = file_read(path, 0, &size, &err);
    json_t *golden = text ? json_parse(text, size, &err) : NULL;

    if (!golden)
        fail_msg("%s: %s", path, err.message);
    free(text);
    free(path);
    return golden;
}

static double number(const json_t *golden, const char *key)
{
    return json_get_number(golden, key, NAN);
}

/* Words of the golden files, in the order of the enums of settings.h. */
static const char *const models[] = {"linear", "mlp", "resnet", NULL};
static const char *const activations[] = {"relu", "gelu", "silu", "tanh", NULL};
static const char *const norms[] = {"none", "layer", "batch", NULL};
static const char *const losses[] = {"auto", "cross_entropy", "binary_cross_entropy", "mse", "huber", NULL};
static const char *const optimizers[] = {"sgd", "adam", "adamw", "lamb", "lars", NULL};
static const char *const schedules[] = {"constant", "step", "cosine", "linear", "one_cycle", "wsd", NULL};

static int choice(const json_t *golden, const char *key, const char *const *words)
{
    const char *word = json_get_string(golden, key, "");

    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    fail_msg("%s: no choice '%s'", key, word);
    return -1;
}

static struct training_settings golden_settings(const json_t *golden, int64_t micro_batch)
{
    const json_t *hidden = json_object_get(golden, "hidden");
    int64_t rows = json_get_integer(golden, "rows", 0), batch = json_get_integer(golden, "batch_size", 0);
    struct training_settings settings = {
        .model = (enum model_kind)choice(golden, "model", models),
        .hidden_count = (int)json_array_size(hidden),
        .width = json_get_integer(golden, "width", 0),
        .expansion = json_get_integer(golden, "expansion", 0),
        .blocks = json_get_integer(golden, "blocks", 0),
        .activation = (enum activation)choice(golden, "activation", activations),
        .norm = (enum norm_kind)choice(golden, "norm", norms),
        .norm_batch = json_get_integer(golden, "norm_batch", 0),
        .loss = (enum loss_kind)choice(golden, "loss", losses),
        .huber_delta = number(golden, "huber_delta"),
        .label_smoothing = number(golden, "label_smoothing"),
        .optimizer = (enum optimizer_kind)choice(golden, "optimizer", optimizers),
        .learning_rate = number(golden, "learning_rate"),
        .momentum = number(golden, "momentum"),
        .weight_decay = number(golden, "weight_decay"),
        .beta1 = number(golden, "beta1"),
        .beta2 = number(golden, "beta2"),
        .epsilon = number(golden, "epsilon"),
        .nesterov = json_get_boolean(golden, "nesterov", false),
        .clip_norm = number(golden, "clip_norm"),
        .batch_size = batch,
        .micro_batch = micro_batch,
        .epochs = json_get_integer(golden, "epochs", 0),
        .schedule = (enum schedule_kind)choice(golden, "schedule", schedules),
        .step_epochs = number(golden, "step_epochs"),
        .step_factor = number(golden, "step_factor"),
    };

    settings.warmup_epochs = number(golden, "warmup_steps") / ceil((double)rows / (double)batch);
    for (int i = 0; i < settings.hidden_count; i++)
        settings.hidden[i] = json_integer_value(json_array_get(hidden, (size_t)i));
    if (json_get_boolean(golden, "balanced", false))
        settings.class_weight = CLASS_WEIGHT_BALANCED;
    return settings;
}

/* Our place of element i of a parameter in PyTorch's order: its weights are (outputs, inputs). */
static real *place(const struct training_bed *bed, const struct parameter *parameter, int64_t i)
{
    real *values = bed->memory.blocks.parameters + parameter->at;

    if (parameter->kind == PARAMETER_WEIGHT)
        return values + i % parameter->rows * parameter->columns + i / parameter->rows;
    return values + i;
}

static void close_to(double found, double expected, const char *name, const char *what, size_t at)
{
    if (!(fabs(found - expected) <= TOLERANCE * (1 + fabs(expected))))
        fail_msg("%s: %s %zu is %.12g, PyTorch's %.12g", name, what, at, found, expected);
}

static void run_steps(struct training_bed *bed, const json_t *golden, const char *name)
{
    int64_t rows = json_get_integer(golden, "rows", 0), batch = bed->derived.batch_size;
    const json_t *losses = json_object_get(golden, "losses"),
                 *rates = json_object_get(golden, "learning_rates");
    size_t step = 0;

    for (int64_t epoch = 0; epoch < bed->settings.epochs; epoch++) {
        bed->memory.state->epoch_first = bed->memory.state->step;
        for (int64_t i = 0; i < bed->derived.steps_per_epoch; i++)
            bed->memory.rates[i] = schedule_learning_rate(&bed->settings, &bed->derived, (int64_t)step + i);
        for (int64_t first = 0; first < rows; first += batch, step++) {
            int64_t count = rows - first < batch ? rows - first : batch;
            double rate = schedule_learning_rate(&bed->settings, &bed->derived, (int64_t)step);
            close_to(rate, json_number_value(json_array_get(rates, step)), name, "learning rate of step",
                     step);
            bed->memory.state->loss = 0;
            step_run(&bed->plan, count);
            close_to(bed->memory.state->loss / (double)count, json_number_value(json_array_get(losses, step)),
                     name, "loss of step", step);
        }
    }
    assert_int_equal(step, json_array_size(losses));
}

/* A data set of a golden file, its arrays owned. */
static struct bed_rows golden_rows(const json_t *golden)
{
    const json_t *xs = json_object_get(golden, "x"), *ys = json_object_get(golden, "y");
    const json_t *categories = json_object_get(golden, "categories"),
                 *sizes = json_object_get(golden, "cardinality");
    struct bed_rows rows = {
        .rows = json_get_integer(golden, "rows", 0),
        .features = json_get_integer(golden, "features", 0),
        .categories = (int64_t)json_array_size(sizes),
        .classes = json_get_integer(golden, "outputs", 0),
    };
    int64_t *cardinality = calloc(json_array_size(sizes) + 1, sizeof(*cardinality));

    assert_int_equal(json_array_size(xs), rows.rows * rows.features);
    assert_int_equal(json_array_size(ys), rows.rows);
    assert_int_equal(json_array_size(categories), rows.rows * rows.categories);
    rows.x = calloc(json_array_size(xs), sizeof(*rows.x));
    rows.category = calloc(json_array_size(categories) + 1, sizeof(*rows.category));
    for (size_t i = 0; i < json_array_size(sizes); i++)
        cardinality[i] = json_integer_value(json_array_get(sizes, i));
    for (size_t i = 0; i < json_array_size(xs); i++)
        rows.x[i] = (float)json_number_value(json_array_get(xs, i));
    for (size_t i = 0; i < json_array_size(categories); i++)
        rows.category[i] = (int32_t)json_integer_value(json_array_get(categories, i));
    if (rows.classes > 0)
        rows.label = calloc((size_t)rows.rows, sizeof(*rows.label));
    else
        rows.y = calloc((size_t)rows.rows, sizeof(*rows.y));
    for (size_t i = 0; i < json_array_size(ys); i++)
        if (rows.classes > 0)
            rows.label[i] = (int32_t)json_integer_value(json_array_get(ys, i));
        else
            rows.y[i] = (float)json_number_value(json_array_get(ys, i));
    rows.cardinality = cardinality;
    return rows;
}

static void free_rows(struct bed_rows *rows)
{
    free((void *)rows->cardinality);
    free(rows->x);
    free(rows->category);
    free(rows->label);
    free(rows->y);
}

/* The golden's tensor for a parameter, whole. */
static const json_t *tensor_of(const json_t *tensors, const struct parameter *parameter)
{
    const json_t *tensor = json_object_get(tensors, parameter->name);

    if (json_array_size(tensor) != (size_t)(parameter->rows * parameter->columns))
        fail_msg("PyTorch has no %s of that size", parameter->name);
    return tensor;
}

static void check_outputs(struct training_bed *bed, const json_t *golden, const char *name)
{
    const json_t *outputs = json_object_get(golden, "outputs_after");
    int64_t rows = bed->shape.training_rows;

    step_evaluate(&bed->plan, &bed->plan.rows, 0, rows);
    assert_int_equal(json_array_size(outputs), rows * model_head(&bed->model)->width);
    for (size_t i = 0; i < json_array_size(outputs); i++)
        close_to(model_outputs(&bed->model, &bed->memory.evaluation)[i],
                 json_number_value(json_array_get(outputs, i)), name, "output after training", i);
}

static void check(const char *name, int64_t micro_batch)
{
    json_t *golden = golden_load(name);
    const json_t *initial = json_object_get(golden, "initial"), *final = json_object_get(golden, "final");
    struct training_settings settings = golden_settings(golden, micro_batch);
    struct bed_rows rows = golden_rows(golden);
    struct training_bed bed;

    bed_init(&bed, &settings, &rows, 1);
    assert_int_equal(json_object_size(initial), bed.model.parameter_count);
    for (int p = 0; p < bed.model.parameter_count; p++) {
        const json_t *tensor = tensor_of(initial, &bed.model.list[p]);
        for (size_t i = 0; i < json_array_size(tensor); i++)
            *place(&bed, &bed.model.list[p], (int64_t)i) = (real)json_number_value(json_array_get(tensor, i));
    }
    run_steps(&bed, golden, name);
    for (int p = 0; p < bed.model.parameter_count; p++) {
        const json_t *tensor = tensor_of(final, &bed.model.list[p]);
        for (size_t i = 0; i < json_array_size(tensor); i++)
            close_to(*place(&bed, &bed.model.list[p], (int64_t)i),
                     json_number_value(json_array_get(tensor, i)), name, bed.model.list[p].name, i);
    }
    check_outputs(&bed, golden, name);
    bed_release(&bed);
    free_rows(&rows);
    json_decref(golden);
}

static void each_case(int64_t micro_batch)
{
    DIR *folder = opendir(FOLDER);
    int cases = 0;

    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') {
            check(entry->d_name, micro_batch);
            cases++;
        }
    closedir(folder);
    assert_true(cases >= 28);
}

static void test_steps_are_those_of_pytorch(void **state)
{
    (void)state;
    each_case(0);
}

static void test_micro_batches_change_nothing(void **state)
{
    (void)state;
    each_case(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_those_of_pytorch),
        cmocka_unit_test(test_micro_batches_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
