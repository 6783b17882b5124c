/* The train settings: what a point over a train object over the defaults comes to, and what is refused. */
#include "base/files.h"
#include "worker/training/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static json_t *parse(const char *text)
{
    struct error err = {0};
    json_t *value = text ? json_parse(text, strlen(text), &err) : NULL;
    if (text && !value)
        fail_msg("%s: %s", text, err.message);
    return value;
}

static struct training_settings read_settings(const char *train_text, const char *point_text)
{
    struct training_settings settings;
    struct error err = {0};
    json_t *train = parse(train_text), *point = parse(point_text);
    if (training_settings_read(&settings, train, point, &err) < 0)
        fail_msg("%s", err.message);
    json_decref(train);
    json_decref(point);
    return settings;
}

/* The message of a refusal must have all of these words. */
static void refused(const char *train_text, const char *point_text, const char *key, const char *found)
{
    struct training_settings settings;
    struct error err = {0};
    json_t *train = parse(train_text), *point = parse(point_text);
    assert_int_equal(training_settings_read(&settings, train, point, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    if (strncmp(err.message, key, strlen(key)) || !strstr(err.message, found))
        fail_msg("message \"%s\" lacks \"%s\" or \"%s\"", err.message, key, found);
    json_decref(train);
    json_decref(point);
}

static void defaults(void **state)
{
    (void)state;
    struct training_settings s = read_settings("{}", NULL);
    assert_int_equal(s.model, MODEL_MLP);
    assert_int_equal(s.hidden_count, 1);
    assert_int_equal(s.hidden[0], 128);
    assert_int_equal(s.activation, ACTIVATION_RELU);
    assert_true(s.dropout == 0);
    assert_int_equal(s.init, INIT_DEFAULT);
    assert_int_equal(s.optimizer, OPTIMIZER_ADAMW);
    assert_true(s.learning_rate == 0.001);
    assert_true(s.momentum == 0.9);
    assert_false(s.nesterov);
    assert_true(s.weight_decay == 0.01);
    assert_true(s.beta1 == 0.9 && s.beta2 == 0.999 && s.epsilon == 1e-8);
    assert_int_equal(s.batch_size, 32);
    assert_int_equal(s.micro_batch, 0);
    assert_int_equal(s.epochs, 10);
    assert_int_equal(s.schedule, SCHEDULE_CONSTANT);
    assert_int_equal(s.rule, SCALING_NONE);
    assert_true(s.warmup_epochs == 0 && s.base_batch_size == 0);
    assert_int_equal(s.seed, -1);
}

static void point_over_train_over_default(void **state)
{
    (void)state;
    struct training_settings s =
        read_settings("{\"batch_size\": 64, \"epochs\": 27, \"hidden\": [64, 32], \"lr_scaling\": "
                      "{\"base_batch_size\": 16, "
                      "\"warmup_epochs\": 2}}",
                      "{\"batch_size\": 256, \"hidden\": 48, \"lr_scaling.warmup_epochs\": 0.5, "
                      "\"learning_rate\": 0.25, \"seed\": 11}");
    assert_int_equal(s.batch_size, 256);
    assert_int_equal(s.epochs, 27);
    assert_int_equal(s.hidden_count, 1); /* one integer is a list of one */
    assert_int_equal(s.hidden[0], 48);
    assert_true(s.warmup_epochs == 0.5);
    assert_true(s.base_batch_size == 16);
    assert_true(s.learning_rate == 0.25);
    assert_int_equal(s.seed, 11);
}

static void optimizer_decides_decay_and_rule(void **state)
{
    (void)state;
    struct training_settings s =
        read_settings("{\"lr_scaling\": {\"base_batch_size\": 32}}", "{\"optimizer\": \"sgd\"}");
    assert_true(s.weight_decay == 0);
    assert_int_equal(s.rule, SCALING_LINEAR);
    s = read_settings("{\"lr_scaling\": {\"base_batch_size\": 32}, \"optimizer\": \"sgd\"}",
                      "{\"optimizer\": \"adamw\"}");
    assert_true(s.weight_decay == 0.01);
    assert_int_equal(s.rule, SCALING_SQRT);
    s = read_settings("{\"lr_scaling\": {\"rule\": \"linear\"}}", NULL);
    assert_int_equal(s.rule, SCALING_NONE); /* nothing to scale from */
    s = read_settings("{\"lr_scaling\": {\"rule\": \"power\", \"power\": 0.75, \"base_batch_size\": 8}}",
                      NULL);
    assert_int_equal(s.rule, SCALING_POWER);
    assert_true(s.power == 0.75);
}

static void a_linear_model_has_no_hidden_layer(void **state)
{
    (void)state;
    struct training_settings s = read_settings("{\"model\": \"linear\", \"hidden\": [64]}", NULL);
    assert_int_equal(s.model, MODEL_LINEAR);
    assert_int_equal(s.hidden_count, 0);
    s = read_settings("{\"hidden\": []}", NULL);
    assert_int_equal(s.hidden_count, 0);
}

/* What a choice's default is, where it depends on another. */
static void model_and_optimizer_decide_defaults(void **state)
{
    (void)state;
    struct training_settings s = read_settings("{\"model\": \"resnet\", \"hidden\": [9]}", NULL);
    assert_int_equal(s.model, MODEL_RESNET);
    assert_int_equal(s.norm, NORM_BATCH);
    assert_int_equal(s.hidden_count, 0);
    assert_true(s.width == 128 && s.blocks == 2 && s.expansion == 2);
    assert_int_equal(read_settings("{\"model\": \"resnet\", \"norm\": \"none\"}", NULL).norm, NORM_NONE);
    assert_int_equal(read_settings("{}", NULL).norm, NORM_NONE);
    assert_int_equal(read_settings("{\"model\": \"linear\", \"norm\": \"batch\"}", NULL).norm, NORM_NONE);
    s = read_settings("{\"optimizer\": \"lamb\"}", NULL);
    assert_true(s.weight_decay == 0.01 && s.epsilon == 1e-6);
    s = read_settings("{\"optimizer\": \"lars\"}", NULL);
    assert_true(s.weight_decay == 1e-4 && s.momentum == 0.9);
    s = read_settings("{\"optimizer\": \"adam\"}", NULL);
    assert_true(s.weight_decay == 0 && s.epsilon == 1e-8);
    assert_true(read_settings("{\"epochs\": 10}", NULL).step_epochs == 4);
    assert_int_equal(read_settings("{\"precision\": \"fp16\"}", NULL).precision, PRECISION_FP16);
    assert_int_equal(read_settings("{\"loss\": \"huber\"}", NULL).loss, LOSS_HUBER);
    assert_int_equal(read_settings("{\"schedule\": \"wsd\"}", NULL).schedule, SCHEDULE_WSD);
}

static void whole_reals_are_integers(void **state)
{
    (void)state;
    assert_int_equal(read_settings("{}", "{\"batch_size\": 64.0}").batch_size, 64);
}

static void refusals_name_key_and_value(void **state)
{
    (void)state;
    refused("{}", "{\"batch_size\": 0}", "batch_size", "found 0");
    refused("{}", "{\"batch_size\": 1.5}", "batch_size", "an integer");
    refused("{}", "{\"batch_size\": \"64\"}", "batch_size", "found \"64\"");
    refused("{}", "{\"learning_rate\": 0}", "learning_rate", "above 0");
    refused("{}", "{\"dropout\": 1}", "dropout", "below 1");
    refused("{}", "{\"hidden\": [64, 0]}", "hidden", "found 0");
    refused("{}", "{\"hidden\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}", "hidden", "at most 16");
    refused("{\"optimizer\": \"adagrad\"}", NULL, "optimizer", "sgd | adam | adamw | lamb | lars");
    refused("{\"norm\": \"group\"}", NULL, "norm", "none | layer | batch");
    refused("{\"norm_batch\": 1}", NULL, "norm_batch", "found 1");
    refused("{\"label_smoothing\": 1}", NULL, "label_smoothing", "below 1");
    refused("{\"clip_norm\": 0}", NULL, "clip_norm", "above 0");
    refused("{\"precision\": \"fp8\"}", NULL, "precision", "bf16 | fp16");
    refused("{}", "{\"replicates\": 2}", "replicates", "every trial");
    refused("{\"nesterov\": 1}", NULL, "nesterov", "true or false");
    refused("{\"nesterov\": true, \"momentum\": 0, \"optimizer\": \"sgd\"}", NULL, "nesterov", "momentum");
    refused("{\"lr_scaling\": {\"rule\": \"power\", \"base_batch_size\": 8}}", NULL, "lr_scaling.power",
            "missing");
    refused("{}", "{\"learning_rat\": 0.1}", "learning_rat", "learning_rate?");
    refused("{}", "{\"data.validation\": 0.1}", "data.validation", "every trial");
}

/* Every default must pass the table's own check: the reader meets defaults through it. */
static void table_is_consistent(void **state)
{
    (void)state;
    for (const struct setting *s = train_settings; s->name; s++) {
        assert_ptr_equal(setting_find(train_settings, s->name), s);
        assert_non_null(s->help);
        assert_true(s->type != SETTING_CHOICE || s->choices);
        if (!s->fallback)
            continue;
        json_t *value = parse(s->fallback);
        if (s->type == SETTING_NUMBER || s->type == SETTING_INTEGER)
            assert_true(json_number_value(value) >= s->minimum && json_number_value(value) <= s->maximum);
        bool is_choice = s->type != SETTING_CHOICE;
        for (int i = 0; s->type == SETTING_CHOICE && s->choices[i]; i++)
            is_choice = is_choice || strcmp(json_string_value(value), s->choices[i]) == 0;
        assert_true(is_choice);
        json_decref(value);
    }
    assert_null(setting_find(train_settings, "learning"));
}

/* docs/training.md has a row for each setting, with its default and its meaning. */
static void page_has_the_table(void **state)
{
    (void)state;
    struct error err = {0};
    char *page = file_read(RUNG_SOURCE_DIR "/docs/training.md", 0, NULL, &err);
    assert_non_null(page);
    for (const struct setting *s = train_settings; s->name; s++) {
        char start[80], end[300];
        snprintf(start, sizeof start, "\n| `%s` |", s->name);
        snprintf(end, sizeof end, "| %s | %s | %s |\n",
                 s->required   ? "required"
                 : s->fallback ? s->fallback
                               : "",
                 s->searchable ? "yes" : "", s->help);
        const char *row = strstr(page, start);
        const char *tail = row ? strstr(row, end) : NULL;
        if (!tail || strchr(row + 1, '\n') + 1 != tail + strlen(end))
            fail_msg("docs/training.md lacks the row of %s that ends in %s", s->name, end);
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(point_over_train_over_default),
        cmocka_unit_test(optimizer_decides_decay_and_rule),
        cmocka_unit_test(a_linear_model_has_no_hidden_layer),
        cmocka_unit_test(model_and_optimizer_decide_defaults),
        cmocka_unit_test(whole_reals_are_integers),
        cmocka_unit_test(refusals_name_key_and_value),
        cmocka_unit_test(table_is_consistent),
        cmocka_unit_test(page_has_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
