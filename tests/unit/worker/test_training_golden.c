/* Trained steps against PyTorch's (golden.py): losses, learning rates and final weights, whole batches and
 * micro batches of 3. Compiled for float32 and for float64. */
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
#define TOLERANCE 1e-5 /* some 12 steps of float32 rounding */
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

static struct training_settings golden_settings(const json_t *golden, int64_t micro_batch)
{
    const json_t *hidden = json_object_get(golden, "hidden");
    int64_t rows = json_get_integer(golden, "rows", 0), batch = json_get_integer(golden, "batch_size", 0);
    struct training_settings settings = {
        .model = json_array_size(hidden) > 0 ? MODEL_MLP : MODEL_LINEAR,
        .hidden_count = (int)json_array_size(hidden),
        .learning_rate = number(golden, "learning_rate"),
        .momentum = number(golden, "momentum"),
        .weight_decay = number(golden, "weight_decay"),
        .beta1 = number(golden, "beta1"),
        .beta2 = number(golden, "beta2"),
        .epsilon = number(golden, "epsilon"),
        .nesterov = json_get_boolean(golden, "nesterov", false),
        .batch_size = batch,
        .micro_batch = micro_batch,
        .epochs = json_get_integer(golden, "epochs", 0),
    };

    settings.warmup_epochs = number(golden, "warmup_steps") / ceil((double)rows / (double)batch);
    for (int i = 0; i < settings.hidden_count; i++)
        settings.hidden[i] = json_integer_value(json_array_get(hidden, (size_t)i));
    if (strcmp(json_get_string(golden, "activation", ""), "gelu") == 0)
        settings.activation = ACTIVATION_GELU;
    if (strcmp(json_get_string(golden, "optimizer", ""), "adamw") == 0)
        settings.optimizer = OPTIMIZER_ADAMW;
    if (strcmp(json_get_string(golden, "schedule", ""), "cosine") == 0)
        settings.schedule = SCHEDULE_COSINE;
    return settings;
}

/* Our place of element i of the model's tensor number `tensor` in PyTorch's order: weight, bias, weight, ...
 */
static real *place(const struct training_bed *bed, size_t tensor, int64_t i)
{
    const struct parameter *parameter = &bed->model.list[tensor];
    real *values = bed->memory.blocks.parameters + parameter->at;

    if (parameter->kind == PARAMETER_WEIGHT)
        return values + i % parameter->rows * parameter->columns + i / parameter->rows;
    return values + i;
}

static double tensor_value(const json_t *tensors, size_t tensor, size_t i)
{
    return json_number_value(json_array_get(json_array_get(tensors, tensor), i));
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

static void check(const char *name, int64_t micro_batch)
{
    json_t *golden = golden_load(name);
    const json_t *xs = json_object_get(golden, "x"), *ys = json_object_get(golden, "y");
    const json_t *initial = json_object_get(golden, "initial"), *final = json_object_get(golden, "final");
    int64_t rows = json_get_integer(golden, "rows", 0), features = json_get_integer(golden, "features", 0);
    int64_t outputs = json_get_integer(golden, "outputs", 0);
    struct training_settings settings = golden_settings(golden, micro_batch);
    float x[1000], y[100];
    int32_t label[100];
    struct training_bed bed;

    assert_true(rows * features <= 1000 && rows <= 100 && rows > 0);
    for (size_t i = 0; i < json_array_size(xs); i++)
        x[i] = (float)json_number_value(json_array_get(xs, i));
    for (size_t i = 0; i < json_array_size(ys); i++) {
        y[i] = (float)json_number_value(json_array_get(ys, i));
        label[i] = (int32_t)json_integer_value(json_array_get(ys, i));
    }
    bed_init(&bed, &settings,
             &(struct bed_rows){.rows = rows,
                                .features = features,
                                .classes = outputs,
                                .x = x,
                                .label = outputs ? label : NULL,
                                .y = outputs ? NULL : y},
             1);
    assert_int_equal(json_array_size(initial), bed.model.parameter_count);
    for (size_t t = 0; t < json_array_size(initial); t++)
        for (size_t i = 0; i < json_array_size(json_array_get(initial, t)); i++)
            *place(&bed, t, (int64_t)i) = (real)tensor_value(initial, t, i);
    run_steps(&bed, golden, name);
    for (size_t t = 0; t < json_array_size(final); t++)
        for (size_t i = 0; i < json_array_size(json_array_get(final, t)); i++)
            close_to(*place(&bed, t, (int64_t)i), tensor_value(final, t, i), name, "final weight", i);
    bed_release(&bed);
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
    assert_true(cases >= 7);
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
