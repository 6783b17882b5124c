/* What a good spec means: defaults, inference of distributions, rungs, overrides, notes; and the way through
 * the store. */
#include "tests/unit/coordinator/spec_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TRAIN "train: {data: " FIXTURE_DATA ", epochs: 27}\n"
#define METRIC "metric: {name: validation_accuracy, goal: maximize}\n"
#define PARAMETER "parameters:\n  dropout: {min: 0.0, max: 0.5}\n"
#define WHOLE "method: random\nrun_cap: 81\nseed: 7\n" TRAIN METRIC PARAMETER

static void parse(struct spec *spec, const char *text, const char *const *overrides)
{
    char *problems = NULL;
    if (fixture_parse(spec, text, overrides, &problems) != 0) {
        fail_msg("%s", problems ? problems : "no memory");
    }
    assert_null(problems);
}

static bool has_note(const struct spec *spec, const char *part)
{
    size_t index;
    json_t *note;
    json_array_foreach(spec->notes, index, note)
    {
        if (strstr(json_get_string(note, "message", ""), part)) {
            return true;
        }
    }
    return false;
}

static void assert_json(const json_t *value, const char *canonical)
{
    char *text = json_canonical(value);
    assert_string_equal(text, canonical);
    free(text);
}

static void test_defaults(void **state)
{
    struct spec spec;
    (void)state;
    parse(&spec, "method: random\ntrain: {data: " FIXTURE_DATA "}\n" PARAMETER, NULL);
    assert_string_equal(spec.name, "spec");
    assert_null(spec.metric);
    assert_ptr_equal(spec.sampler, &random_sampler);
    assert_int_equal(spec.run_cap, -1);
    assert_int_equal(spec.devices_per_trial, 1);
    assert_int_equal(spec.max_retries, 1);
    assert_false(spec.seed_given);
    assert_int_equal(spec.stopping.kind, STOPPING_NONE);
    assert_int_equal(spec.stopping.max_iter, 10);
    assert_int_equal(spec.stopping.min_iter, 10);
    assert_int_equal(spec.stopping.trials, -1);
    assert_true(has_note(&spec, "goes on until it is stopped"));
    assert_true(has_note(&spec, "unranked"));
    assert_json(json_object_get(spec.train, "data"), "{\"header\":\"auto\",\"path\":\"" RUNG_SOURCE_DIR
                                                     "/LICENSE\",\"target\":\"label\",\"validation\":0.2}");
    assert_json(json_object_get(spec.train, "hidden"), "[128]");
    assert_null(json_object_get(spec.train, "micro_batch"));
    assert_json(spec.train_given, "{\"data\":{\"path\":\"LICENSE\",\"target\":\"label\"}}");
    spec_release(&spec);
}

static void test_everything_given(void **state)
{
    struct spec spec;
    (void)state;
    parse(
        &spec,
        "name: my.sweep_1\ndescription: tries\nmethod: grid\nseed: 18446744073709551615\nmax_retries: 0\n"
        "metric: {name: validation_accuracy, goal: maximize, objective: best}\n"
        "resources: {devices_per_trial: 1}\nproject: theirs\nentity: me\ncontroller: {type: local}\n"
        "parameters: {batch_size: {min: 1, max: 9, step: 4}, nesterov: {values: [true, false]}}\n"
        "train:\n  data.path: LICENSE\n  data: {target: -1, header: true}\n  hidden: 64\n  learning_rate: 1\n"
        "  epochs: 2e1\n  lr_scaling.power: 1\n",
        NULL);
    assert_string_equal(spec.name, "my.sweep_1");
    assert_string_equal(spec.description, "tries");
    assert_true(spec.seed == UINT64_MAX);
    assert_true(spec.seed_given);
    assert_true(spec.maximize);
    assert_int_equal(spec.objective, OBJECTIVE_BEST);
    assert_string_equal(spec.tie_metric, "validation_loss");
    assert_int_equal(spec.max_retries, 0);
    assert_int_equal(spec.devices_per_trial, 1);
    assert_int_equal(spec.stopping.trials, 6);
    assert_json(spec.train,
                "{\"batch_size\":32,\"data\":{\"header\":\"true\",\"path\":\"" RUNG_SOURCE_DIR
                "/LICENSE\",\"target\":-1,\"validation\":0.2},\"dropout\":0.0,\"epochs\":20,\"hidden\":[64],"
                "\"learning_rate\":1.0,\"lr_scaling\":{\"power\":1.0,\"rule\":\"auto\"},\"model\":\"mlp\","
                "\"nesterov\":false}");
    spec_release(&spec);
}

/* Name, text and what it becomes; bounds by the canonical form of the normalised parameter. */
static const struct {
    const char *name, *text;
    enum distribution distribution;
    const char *normalised;
} distributions[] = {
    {"learning_rate", "{value: 1e-3}", DISTRIBUTION_CONSTANT, "{\"value\":0.001}"},
    {"dropout", "{values: [0, 0.5]}", DISTRIBUTION_CATEGORICAL, "{\"values\":[0,0.5]}"},
    {"batch_size", "{values: [32, 64.0, 1e2]}", DISTRIBUTION_CATEGORICAL, "{\"values\":[32,64,100]}"},
    {"hidden", "{values: [64, [64], []]}", DISTRIBUTION_CATEGORICAL, "{\"values\":[64,[64],[]]}"},
    {"hidden", "{min: 16, max: 64}", DISTRIBUTION_INT_UNIFORM,
     "{\"distribution\":\"int_uniform\",\"max\":64,\"min\":16}"},
    {"batch_size", "{min: 8, max: 64}", DISTRIBUTION_INT_UNIFORM,
     "{\"distribution\":\"int_uniform\",\"max\":64,\"min\":8}"},
    {"batch_size", "{distribution: int_uniform, min: 8.0, max: '64'}", DISTRIBUTION_INT_UNIFORM,
     "{\"distribution\":\"int_uniform\",\"max\":64,\"min\":8}"},
    {"batch_size", "{min: 8, max: 64, step: 8}", DISTRIBUTION_LATTICE, "{\"max\":64,\"min\":8,\"step\":8}"},
    {"batch_size", "{min: 8, max: 512, log: true}", DISTRIBUTION_INT_LOG_UNIFORM,
     "{\"log\":true,\"max\":512,\"min\":8}"},
    {"dropout", "{min: 0, max: 0.5}", DISTRIBUTION_UNIFORM,
     "{\"distribution\":\"uniform\",\"max\":0.5,\"min\":0.0}"},
    {"weight_decay", "{distribution: uniform, min: 0, max: 1}", DISTRIBUTION_UNIFORM,
     "{\"distribution\":\"uniform\",\"max\":1.0,\"min\":0.0}"},
    {"weight_decay", "{min: 0, max: 1}", DISTRIBUTION_INT_UNIFORM,
     "{\"distribution\":\"int_uniform\",\"max\":1,\"min\":0}"},
    {"dropout", "{min: 0.0, max: 0.5, step: 0.25}", DISTRIBUTION_LATTICE,
     "{\"max\":0.5,\"min\":0.0,\"step\":0.25}"},
    {"dropout", "{min: 0, max: 1.0, step: 0.3}", DISTRIBUTION_LATTICE,
     "{\"max\":1.0,\"min\":0.0,\"step\":0.3}"},
    {"learning_rate", "{min: 0.001, max: 0.1, log: true}", DISTRIBUTION_LOG_UNIFORM_VALUES,
     "{\"distribution\":\"log_uniform_values\",\"max\":0.1,\"min\":0.001}"},
    {"learning_rate", "{distribution: log_uniform_values, min: 1e-4, max: 1}",
     DISTRIBUTION_LOG_UNIFORM_VALUES, "{\"distribution\":\"log_uniform_values\",\"max\":1.0,\"min\":0.0001}"},
    {"learning_rate", "{distribution: log_uniform_values, min: '1e-4', max: 0.1}",
     DISTRIBUTION_LOG_UNIFORM_VALUES, "{\"distribution\":\"log_uniform_values\",\"max\":0.1,\"min\":0.0001}"},
    {"weight_decay", "{distribution: normal, mu: 1}", DISTRIBUTION_NORMAL,
     "{\"distribution\":\"normal\",\"mu\":1.0,\"sigma\":1.0}"},
    {"model", "{distribution: categoric, values: [linear, mlp]}", DISTRIBUTION_CATEGORICAL,
     "{\"values\":[\"linear\",\"mlp\"]}"},
    {"dropout", "{min: 0.0, max: 0.5, log: false}", DISTRIBUTION_UNIFORM,
     "{\"distribution\":\"uniform\",\"max\":0.5,\"min\":0.0}"},
};

static void test_distributions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof distributions / sizeof distributions[0]; i++) {
        char text[500];
        struct spec spec;
        snprintf(text, sizeof text, "method: random\n" TRAIN "parameters:\n  %s: %s\n", distributions[i].name,
                 distributions[i].text);
        parse(&spec, text, NULL);
        assert_int_equal(spec.space.count, 1);
        assert_string_equal(spec.space.parameters[0].name, distributions[i].name);
        if (spec.space.parameters[0].distribution != distributions[i].distribution) {
            fail_msg("%s: %s", distributions[i].text,
                     distribution_name(spec.space.parameters[0].distribution));
        }
        assert_json(json_object_get(json_object_get(spec.normalised, "parameters"), distributions[i].name),
                    distributions[i].normalised);
        spec_release(&spec);
    }
}

/* Columns by name or index, cells by text or number; one, or a list of them. */
static void test_values_and_lists_of_them(void **state)
{
    static const struct {
        const char *target, *missing, *canonical_target, *canonical_missing;
    } cases[] = {
        {"y", "-99.5", "\"y\"", "-99.5"},
        {"[p, -1]", "[-99.5, none, 7]", "[\"p\",-1]", "[-99.5,\"none\",7]"},
        {"['0', q]", "['1.50']", "[\"0\",\"q\"]", "[\"1.50\"]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[400];
        struct spec spec;
        snprintf(
            text, sizeof text,
            "method: random\nrun_cap: 3\ntrain: {data: {path: LICENSE, target: %s, missing: %s}}\n" PARAMETER,
            cases[i].target, cases[i].missing);
        parse(&spec, text, NULL);
        const json_t *data = json_object_get(spec.train, "data");
        assert_json(json_object_get(data, "target"), cases[i].canonical_target);
        assert_json(json_object_get(data, "missing"), cases[i].canonical_missing);
        spec_release(&spec);
    }
}

static void test_parameters_are_sorted(void **state)
{
    struct spec spec;
    (void)state;
    parse(&spec,
          "method: random\n" TRAIN "parameters:\n  nesterov: {value: yes}\n  data.validation: {value: 0.3}\n"
          "  batch_size: {value: 8}\n",
          NULL);
    assert_string_equal(spec.space.parameters[0].name, "batch_size");
    assert_string_equal(spec.space.parameters[1].name, "data.validation");
    assert_string_equal(spec.space.parameters[2].name, "nesterov");
    spec_release(&spec);
}

static void test_rungs(void **state)
{
    struct spec spec;
    (void)state;
    parse(&spec, WHOLE "early_terminate: {type: asha, mode: stopping, min_iter: 3, max_iter: 9, eta: 2.5}\n",
          NULL);
    assert_int_equal(spec.stopping.kind, STOPPING_ASHA_STOPPING);
    assert_int_equal(spec.stopping.min_iter, 3);
    assert_int_equal(spec.stopping.max_iter, 9);
    assert_true(spec.stopping.eta == 2.5);
    assert_true(spec.stopping.maximize);
    assert_true(spec.stopping.tie_minimize);
    assert_int_equal(spec.stopping.trials, 81);
    assert_true(has_note(&spec, "before the end of the learning rate's schedule"));
    spec_release(&spec);

    parse(&spec, WHOLE "early_terminate: {type: asha}\n", NULL);
    assert_int_equal(spec.stopping.kind, STOPPING_ASHA_PROMOTION);
    assert_int_equal(spec.stopping.min_iter, 1);
    assert_int_equal(spec.stopping.max_iter, 27);
    assert_true(spec.stopping.eta == 3);
    spec_release(&spec);

    parse(&spec, WHOLE "early_terminate: {type: successive_halving, bracket_size: 27}\n", NULL);
    assert_int_equal(spec.stopping.kind, STOPPING_SUCCESSIVE_HALVING);
    assert_int_equal(spec.stopping.bracket_size, 27);
    spec_release(&spec);

    parse(&spec, "method: successive_halving\nrun_cap: 9\n" TRAIN METRIC PARAMETER, NULL);
    assert_int_equal(spec.stopping.kind, STOPPING_SUCCESSIVE_HALVING);
    assert_ptr_equal(spec.sampler, &random_sampler);
    spec_release(&spec);

    parse(&spec, "method: random\n" TRAIN METRIC "parameters: {epochs: {values: [5, 40]}}\n", NULL);
    assert_int_equal(spec.stopping.max_iter, 40);
    spec_release(&spec);

    parse(&spec,
          "method: grid\nearly_terminate: {type: successive_halving}\n" TRAIN METRIC
          "parameters: {batch_size: {min: 1, max: 9}}\n",
          NULL);
    assert_int_equal(spec.stopping.trials, 9);
    spec_release(&spec);
}

static void test_overrides(void **state)
{
    const char *const overrides[] = {"run_cap=5",
                                     "train.epochs=3",
                                     "train.data.validation=0.5",
                                     "parameters.learning_rate={values: [1e-2, 0.1]}",
                                     "parameters.lr_scaling.power.value=1",
                                     "parameters.dropout.max=0.25",
                                     "early_terminate.type=asha",
                                     "description=a b",
                                     NULL};
    struct spec spec;
    (void)state;
    parse(&spec, WHOLE, overrides);
    assert_string_equal(spec.description, "a b");
    assert_int_equal(spec.run_cap, 5);
    assert_int_equal(spec.stopping.max_iter, 3);
    assert_int_equal(spec.stopping.kind, STOPPING_ASHA_PROMOTION);
    assert_json(json_object_get(spec.normalised, "parameters"),
                "{\"dropout\":{\"distribution\":\"uniform\",\"max\":0.25,\"min\":0.0},\"learning_rate\":{"
                "\"values\":[0.01,"
                "0.1]},\"lr_scaling.power\":{\"value\":1}}");
    assert_true(json_get_number(json_object_get(spec.train, "data"), "validation", 0) == 0.5);
    spec_release(&spec);
    parse(&spec, WHOLE "early_terminate: {type: asha}\n",
          (const char *const[]){"early_terminate=null", NULL});
    assert_int_equal(spec.stopping.kind, STOPPING_NONE);
    spec_release(&spec);
}

/* An override changes what it names and not what shares an anchor with it. */
static void test_overrides_leave_aliases_alone(void **state)
{
    struct spec spec;
    (void)state;
    parse(&spec,
          "method: random\n" TRAIN
          "parameters:\n  dropout: &range {min: 0.0, max: 0.5}\n  weight_decay: *range\n",
          (const char *const[]){"parameters.dropout.max=0.25", NULL});
    assert_true(spec.space.parameters[0].maximum == 0.25);
    assert_true(spec.space.parameters[1].maximum == 0.5);
    spec_release(&spec);
}

static const struct {
    const char *text, *note;
} notes[] = {
    {"method: random\n" TRAIN "metric: {name: validation_accuracy}\n" PARAMETER, "goal is left out"},
    {"method: random\n" TRAIN "metric: {name: validation_accuracy, goal: minimize}\n" PARAMETER,
     "looks for the lowest"},
    {WHOLE "frobnicate: 1\n", "unknown key, ignored"},
    {"method: random\n" TRAIN "parameters: {weight_decay: {min: 0, max: 1}}\n",
     "only whole numbers are drawn; write 1.0"},
    {"method: random\n" TRAIN "parameters: {weight_decay: {min: '0', max: 0.5}}\n", "\"0\" is in quotes"},
    {"method: random\n" TRAIN "parameters: {weight_decay: {distribution: normal}}\n", "normal has no bounds"},
    {"method: random\n" TRAIN "parameters: {dropout: {values: [0, 0.0]}}\n", "0.0 is listed twice"},
    {"method: random\n" TRAIN "parameters: {dropout: {distribution: uniform, min: 0.0, max: 0.5, mu: 1}}\n",
     "no meaning"},
    {"method: random\n" TRAIN "parameters: {nesterov: {value: on}}\n", "on is a truth value"},
    {"method: random\n" TRAIN "parameters: {batch_size: {value: 010}}\n", "010 is an octal number"},
    {"method: random\n" TRAIN "parameters: {batch_size: {value: 1_0}}\n", "underscores are left out"},
    {"method: random\n" TRAIN "parameters: {batch_size: {value: 1:30}}\n", "base 60"},
    {"method: random\n" TRAIN "parameters: {learning_rate: {value: 1e-3}}\n", "1e-3 is taken as the number"},
    {WHOLE "early_terminate: {type: asha, min_iter: 27}\n", "one rung"},
    {NULL, NULL},
};

static void test_notes(void **state)
{
    (void)state;
    for (size_t i = 0; notes[i].note; i++) {
        struct spec spec;
        parse(&spec, notes[i].text, NULL);
        if (!has_note(&spec, notes[i].note)) {
            fail_msg("no note '%s' for\n%s", notes[i].note, notes[i].text);
        }
        spec_release(&spec);
    }
}

/* ---- the store ---- */

static const char *const stored[] = {
    WHOLE,
    "method: random\n" TRAIN PARAMETER,
    WHOLE "early_terminate: {type: asha, mode: stopping, min_iter: 3, max_iter: 9, eta: 2.5}\n",
    WHOLE "early_terminate: {type: successive_halving, bracket_size: 27}\nname: x\ndescription: 'y: z'\n",
    "method: grid\nseed: 18446744073709551615\nmetric: {name: train_loss, objective: best}\n" TRAIN
    "parameters: {batch_size: {min: 1, max: 9, step: 4}, nesterov: {values: [true, false]}, hidden: {values: "
    "[64, "
    "[64]]}}\n",
    "method: random\n" TRAIN
    "parameters: {learning_rate: {min: 0.001, max: 0.1, log: true}, batch_size: {min: 1, max: "
    "64, log: true}, weight_decay: {distribution: normal}, dropout: {min: 0.0, max: 0.9, step: 0.3}, "
    "lr_scaling.rule: {value: none}}\n",
};

static void assert_same(const struct spec *a, const struct spec *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->file, b->file);
    assert_string_equal(a->folder, b->folder);
    assert_true(a->seed == b->seed);
    assert_ptr_equal(a->sampler, b->sampler);
    assert_int_equal(a->maximize, b->maximize);
    assert_int_equal(a->objective, b->objective);
    assert_int_equal(a->run_cap, b->run_cap);
    assert_true(!a->tie_metric == !b->tie_metric);
    assert_int_equal(a->stopping.kind, b->stopping.kind);
    assert_int_equal(a->stopping.trials, b->stopping.trials);
    assert_int_equal(a->stopping.bracket_size, b->stopping.bracket_size);
    assert_true(a->stopping.eta == b->stopping.eta);
    assert_int_equal(a->space.count, b->space.count);
    assert_true(json_equal(a->train, b->train));
    assert_true(json_equal(a->train_given, b->train_given));
    assert_true(json_equal(a->normalised, b->normalised));
    for (int64_t trial = 1; trial <= 20; trial++) {
        json_t *p = a->sampler->propose(&a->space, a->seed, trial),
               *q = b->sampler->propose(&b->space, b->seed, trial);
        assert_true(p == q || json_equal(p, q)); /* both NULL behind the last point */
        json_decref(p);
        json_decref(q);
    }
}

/* Through text, as the store keeps it; with the trainer's table and without. */
static void test_restored_specs_are_the_same(void **state)
{
    struct spec_options options = {.train_settings = fixture_settings, .metric_names = fixture_metrics};
    (void)state;
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        for (int with_table = 0; with_table < 2; with_table++) {
            struct spec spec, again;
            struct error err = {0};
            parse(&spec, stored[i], NULL);
            char *text = json_canonical(spec.normalised);
            json_t *value = json_parse(text, strlen(text), &err);
            if (spec_restore(&again, value, with_table ? &options : NULL, &err) != 0) {
                fail_msg("%s: %s", text, err.message);
            }
            assert_same(&spec, &again);
            assert_int_equal(json_array_size(again.notes), 0);
            assert_int_equal(spec_compare(spec.normalised, again.normalised, true, &err), 0);
            json_decref(value);
            free(text);
            spec_release(&spec);
            spec_release(&again);
        }
    }
}

static void test_restored_specs_take_overrides(void **state)
{
    struct spec spec, again;
    struct error err = {0};
    struct spec_options options = {.train_settings = fixture_settings,
                                   .overrides = (const char *const[]){"run_cap=99", NULL}};
    (void)state;
    parse(&spec, WHOLE, NULL);
    assert_int_equal(spec_restore(&again, spec.normalised, &options, &err), 0);
    assert_int_equal(again.run_cap, 99);
    spec_release(&again);
    options.overrides = (const char *const[]){"train.epochs=0", NULL};
    assert_int_equal(spec_restore(&again, spec.normalised, &options, &err), -1);
    assert_non_null(strstr(err.message, "--set train.epochs=0: train.epochs: found 0"));
    spec_release(&spec);
}

static int compare(const char *next_text, bool seed_given, struct error *err)
{
    struct spec first, next;
    parse(&first, WHOLE, NULL);
    parse(&next, next_text, NULL);
    int status = spec_compare(first.normalised, next.normalised, seed_given, err);
    spec_release(&first);
    spec_release(&next);
    return status;
}

static void test_compare(void **state)
{
    struct error err = {0};
    (void)state;
    assert_int_equal(compare("method: random\nrun_cap: 100\nseed: 7\ndescription: longer\nmax_retries: 3\n"
                             "resources: {devices_per_trial: 1}\n" TRAIN METRIC PARAMETER,
                             true, &err),
                     0);
    assert_int_equal(compare("method: random\nrun_cap: 100\nseed: 8\n" TRAIN METRIC PARAMETER, false, &err),
                     0);
    assert_int_equal(compare("method: random\nrun_cap: 100\nseed: 8\n" TRAIN METRIC PARAMETER, true, &err),
                     -1);
    assert_string_equal(err.message, "the stored sweep was made from another spec: seed: stored 7, now 8");
    assert_int_equal(compare("method: random\nseed: 7\n" TRAIN METRIC
                             "parameters:\n  dropout: {min: 0.0, max: 0.4}\n"
                             "early_terminate: {type: asha}\n",
                             true, &err),
                     -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "parameters.dropout.max: stored 0.5, now 0.4"));
    assert_non_null(strstr(err.message, "early_terminate: stored nothing, now {\"eta\":3.0,"));
    assert_null(strstr(err.message, "run_cap"));
}

/* A sweep of another version, whose trainer had other settings: nobody has changed the spec. */
static void test_compare_tells_another_trainer_from_another_spec(void **state)
{
    struct spec first, next;
    struct error err = {0};
    (void)state;
    parse(&first, WHOLE, NULL);
    parse(&next, WHOLE, NULL);
    json_object_set_new(json_object_get(first.normalised, "train"), "momentum", json_real(0.5));
    assert_int_equal(spec_compare(first.normalised, next.normalised, true, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "this rung's trainer has other settings"));
    assert_non_null(strstr(err.message, "train.momentum: stored 0.5, now "));
    json_object_set_new(first.normalised, "method", json_string("grid"));
    assert_int_equal(spec_compare(first.normalised, next.normalised, true, &err), -1);
    assert_non_null(strstr(err.message, "made from another spec: "));
    spec_release(&first);
    spec_release(&next);
}

/* A folder that was moved keeps its sweep: the spec names the data by the same words. */
static void test_compare_ignores_where_the_files_lie(void **state)
{
    struct spec first, next;
    struct error err = {0};
    struct spec_options options = {.train_settings = fixture_settings};
    (void)state;
    parse(&first, WHOLE, NULL);
    const char *text = WHOLE;
    char *elsewhere = strdup(text);
    assert_int_equal(spec_parse(&next, elsewhere, strlen(elsewhere), RUNG_SOURCE_DIR "/docs/../spec.yaml",
                                &options, NULL, &err),
                     0);
    assert_int_equal(spec_compare(first.normalised, next.normalised, true, &err), 0);
    free(elsewhere);
    spec_release(&next);
    spec_release(&first);
}

/* Without a table nothing is known of training: any name, any value. */
static void test_without_settings(void **state)
{
    struct spec spec;
    struct error err = {0};
    const char *text = "method: random\nparameters: {x: {min: 0.0, max: 1.0}, y.z: {values: [a, null]}}\n";
    (void)state;
    assert_int_equal(spec_parse(&spec, text, strlen(text), "-", NULL, NULL, &err), 0);
    assert_string_equal(spec.name, "sweep");
    assert_string_equal(spec.folder, ".");
    assert_int_equal(spec.stopping.max_iter, 1);
    spec_release(&spec);
}

static void test_names_from_files(void **state)
{
    static const struct {
        const char *file, *name;
    } names[] = {{"/a/b/digits.yaml", "digits"},
                 {"a b.v2.yml", "a-b.v2"},
                 {".yaml", ".yaml"},
                 {"x", "x"},
                 {"-", "sweep"}};
    const char *text = "method: random\nparameters: {x: {min: 0.0, max: 1.0}}\n";
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct spec spec;
        struct error err = {0};
        assert_int_equal(spec_parse(&spec, text, strlen(text), names[i].file, NULL, NULL, &err), 0);
        assert_string_equal(spec.name, names[i].name);
        spec_release(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything_given),
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_values_and_lists_of_them),
        cmocka_unit_test(test_parameters_are_sorted),
        cmocka_unit_test(test_rungs),
        cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_overrides_leave_aliases_alone),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_restored_specs_are_the_same),
        cmocka_unit_test(test_restored_specs_take_overrides),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_compare_ignores_where_the_files_lie),
        cmocka_unit_test(test_compare_tells_another_trainer_from_another_spec),
        cmocka_unit_test(test_without_settings),
        cmocka_unit_test(test_names_from_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
