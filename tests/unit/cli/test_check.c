/* The plan of `rung check` against rungs counted by hand, and what only the data can tell of a spec. */
#include "cli/check_report.h"
#include "cli/load.h"

#include "base/files.h"
#include "worker/training/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char *plan_text(const struct stopping_settings *stopping)
{
    json_t *report = json_object();
    struct text text;
    size_t index;
    json_t *rung;
    text_init(&text);
    assert_int_equal(check_plan(report, stopping, 1), 0);
    json_array_foreach(json_object_get(report, "rungs"), index, rung)
    {
        text_printf(&text, "%s%d@%d", index > 0 ? " " : "", (int)json_get_integer(rung, "trials", -1),
                    (int)json_get_integer(rung, "resource", -1));
    }
    text_printf(&text, " = %d of %d", (int)json_get_integer(json_object_get(report, "epochs"), "planned", -1),
                (int)json_get_integer(json_object_get(report, "epochs"), "without", -1));
    json_decref(report);
    return text_steal(&text);
}

static void test_plans(void **state)
{
    static const struct {
        struct stopping_settings stopping;
        const char *plan;
    } plans[] = {
        {{.kind = STOPPING_SUCCESSIVE_HALVING, .min_iter = 1, .max_iter = 81, .eta = 3, .trials = 243},
         "243@1 81@3 27@9 9@27 3@81 = 891 of 19683"},
        {{.kind = STOPPING_SUCCESSIVE_HALVING, .min_iter = 1, .max_iter = 27, .eta = 3, .trials = 64},
         "64@1 21@3 7@9 2@27 = 184 of 1728"},
        /* two brackets of 9 and one of 2, which never falls below one trial */
        {{.kind = STOPPING_SUCCESSIVE_HALVING,
          .min_iter = 1,
          .max_iter = 9,
          .eta = 3,
          .trials = 20,
          .bracket_size = 9},
         "20@1 7@3 3@9 = 52 of 180"},
        {{.kind = STOPPING_SUCCESSIVE_HALVING,
          .min_iter = 1,
          .max_iter = 9,
          .eta = 3,
          .trials = 4,
          .bracket_size = 9},
         "4@1 1@3 1@9 = 12 of 36"},
        {{.kind = STOPPING_ASHA_PROMOTION, .min_iter = 3, .max_iter = 81, .eta = 3, .trials = 200},
         "200@3 66@9 22@27 7@81 = 1770 of 16200"},
        {{.kind = STOPPING_ASHA_STOPPING, .min_iter = 1, .max_iter = 10, .eta = 4, .trials = 16},
         "16@1 4@4 1@10 = 34 of 160"},
        {{.kind = STOPPING_NONE, .min_iter = 10, .max_iter = 10, .eta = 3, .trials = 24},
         "24@10 = 240 of 240"},
        {{.kind = STOPPING_ASHA_PROMOTION, .min_iter = 1, .max_iter = 9, .eta = 3, .trials = -1},
         "-1@1 -1@3 -1@9 = -1 of -1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char *text = plan_text(&plans[i].stopping);
        assert_string_equal(text, plans[i].plan);
        free(text);
    }
}

/* ---- specs with data ---- */

#define HEAD "method: random\nrun_cap: 4\nseed: 1\n"

struct folder {
    char path[64];
    char *spec;
};

static void write_spec(const struct folder *folder, const char *text)
{
    assert_int_equal(file_write(folder->spec, text, strlen(text), 0600, NULL), 0);
}

static int make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));
    char rows[8000] = "a,b,label\n";
    strcpy(folder->path, "/tmp/rung-test-check-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    folder->spec = path_join(folder->path, "spec.yaml");
    for (int i = 0; i < 120; i++) {
        sprintf(rows + strlen(rows), "%d,%d.5,%s\n", i % 7, i % 5, i % 3 ? "yes" : "no");
    }
    char *data = path_join(folder->path, "data.csv");
    assert_int_equal(file_write(data, rows, strlen(rows), 0600, NULL), 0);
    free(data);
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;
    folder_remove(folder->path, NULL);
    free(folder->spec);
    free(folder);
    return 0;
}

static void assert_refused(const struct folder *folder, const char *text, const char *part)
{
    struct spec spec;
    struct error err = {0};
    write_spec(folder, text);
    assert_int_equal(cli_load_spec(folder->spec, NULL, NULL, &spec, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    if (!strstr(err.message, part)) {
        fail_msg("'%s' is not in '%s'", part, err.message);
    }
}

static void test_faults_only_the_data_tells(void **state)
{
    const struct folder *folder = *state;
    assert_refused(folder,
                   HEAD
                   "train: {data: {path: data.csv, target: lable}}\nparameters: {dropout: {values: [0.1]}}\n",
                   "label");
    assert_refused(
        folder,
        HEAD "train: {data: {path: data.csv, target: label}}\nparameters: {dropout: {values: [0.1]}}\n"
             "metric: {name: validation_rmse, goal: minimize}\n",
        "metric.name: found \"validation_rmse\", accepted for this data (classification of 2 classes) "
        "train_loss, validation_loss, validation_accuracy, validation_balanced_accuracy, validation_f1 or "
        "validation_auc");
    assert_refused(folder,
                   HEAD "train: {data: {path: data.csv, target: a, task: regression}}\n"
                        "parameters: {dropout: {values: [0.1]}}\nmetric: {name: validation_accuracy}\n",
                   "(regression) train_loss, validation_loss, validation_rmse");
    assert_refused(
        folder,
        HEAD "train: {data: {path: data.csv, target: label}, lr_scaling: {rule: power, base_batch_size: "
             "32}}\nparameters: {dropout: {values: [0.1]}}\n",
        "power");
}

/* Only some of the points of a space may be impossible: that is a warning. */
static void test_some_points_fail(void **state)
{
    const struct folder *folder = *state;
    struct spec spec;
    struct error err = {0};
    write_spec(folder,
               HEAD "train: {data: {path: data.csv, target: label}, lr_scaling: {base_batch_size: 32}}\n"
                    "parameters: {lr_scaling.rule: {values: [none, power]}}\n");
    if (cli_load_spec(folder->spec, NULL, NULL, &spec, &err) != 0) {
        fail_msg("%s", err.message);
    }
    char *notes = json_canonical(spec.notes);
    assert_non_null(strstr(notes, "points cannot be trained"));
    free(notes);
    spec_release(&spec);
}

static char *print(const json_t *report)
{
    char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);
    check_print(report, out);
    fclose(out);
    return printed;
}

/* A class that no split can share out, and a seed that was drawn. */
static void test_warnings(void **state)
{
    const struct folder *folder = *state;
    struct spec spec;
    struct dataset dataset;
    struct error err = {0};
    char rows[4000] = "a,label\n7,alone\n";
    for (int i = 0; i < 120; i++) {
        sprintf(rows + strlen(rows), "%d,%s\n", i % 7, i % 3 ? "yes" : "no");
    }
    char *data = path_join(folder->path, "data.csv");
    assert_int_equal(file_write(data, rows, strlen(rows), 0600, NULL), 0);
    free(data);
    write_spec(folder, "method: random\nrun_cap: 4\ntrain: {data: {path: data.csv, target: label}}\n"
                       "parameters: {dropout: {values: [0.1]}}\n");
    if (cli_load_spec_and_data(folder->spec, NULL, NULL, &spec, &dataset, &err) != 0) {
        fail_msg("%s", err.message);
    }
    json_t *report = check_report(&spec, &dataset, 0);
    char *printed = print(report);
    assert_non_null(strstr(printed, "(drawn; rung run draws another one, unless --set seed="));
    assert_non_null(strstr(printed, "1 class has less than 3 rows")); /* the loader's note, and no other */
    assert_null(strstr(printed, "no split"));
    assert_null(strstr(printed, "more than the"));
    free(printed);
    json_decref(report);
    dataset_release(&dataset);
    spec_release(&spec);
}

/* A batch of one row under batch norm, a refit without test rows; and more memory than any machine has. */
static void test_what_cannot_work(void **state)
{
    static const char *const trains[] = {
        "{data: {path: data.csv, target: label, test: 0}, model: resnet, batch_size: 1, final: {refit: "
        "train}}",
        "{data: {path: data.csv, target: label}, model: resnet, norm: layer, batch_size: 1, final: {refit: "
        "train}}",
        "{data: {path: data.csv, target: label, test: 0}, final: {refit: none}}"};
    const struct folder *folder = *state;
    for (size_t i = 0; i < sizeof trains / sizeof trains[0]; i++) {
        struct spec spec;
        struct dataset dataset;
        struct error err = {0};
        char text[600];
        snprintf(text, sizeof text, HEAD "train: %s\nparameters: {dropout: {values: [0.1]}}\n", trains[i]);
        write_spec(folder, text);
        if (cli_load_spec_and_data(folder->spec, NULL, NULL, &spec, &dataset, &err) != 0) {
            fail_msg("%s", err.message);
        }
        json_t *report = check_report(&spec, &dataset, 0);
        char *printed = print(report);
        assert_true(!strstr(printed, "too few for norm batch") == (i != 0));
        assert_true(!strstr(printed, "nothing scores the winner") == (i != 0));
        free(printed);
        json_decref(report);
        dataset_release(&dataset);
        spec_release(&spec);
    }
}

static void test_more_memory_than_there_is(void **state)
{
    const struct folder *folder = *state;
    const struct device_description device = {.id = "cpu:0", .kind = "cpu", .name = "CPU"};
    struct spec spec;
    struct dataset dataset;
    struct error err = {0};
    write_spec(folder, HEAD
               "train: {data: {path: data.csv, target: label}, model: resnet, blocks: 16, expansion: 16}\n"
               "parameters: {width: {values: [4, 65536]}}\n");
    if (cli_load_spec_and_data(folder->spec, NULL, NULL, &spec, &dataset, &err) != 0) {
        fail_msg("%s", err.message);
    }
    json_t *report = check_report(&spec, &dataset, 0);
    assert_int_equal(check_memory(report, &spec, &dataset, &device), 0);
    const json_t *plan = json_object_get(report, "plan");
    assert_true(json_is_false(json_object_get(plan, "fits")));
    assert_true(json_is_true(json_object_get(json_object_get(plan, "smallest"), "fits")));
    assert_true(json_is_false(json_object_get(json_object_get(plan, "largest"), "fits")));
    json_decref(report);
    dataset_release(&dataset);
    spec_release(&spec);
}

static void test_report(void **state)
{
    const struct folder *folder = *state;
    struct spec spec;
    struct dataset dataset;
    struct error err = {0};
    write_spec(
        folder, HEAD
        "train: {data: {path: data.csv, target: label}, optimizer: sgd, lr_scaling: {base_batch_size: 8}}\n"
        "parameters: {learning_rate: {min: 0.1, max: 0.2}, batch_size: {values: [8, 16, 100000]}}\n"
        "metric: {name: validation_loss, goal: minimize}\n");
    assert_int_equal(cli_load_spec_and_data(folder->spec, NULL, NULL, &spec, &dataset, &err), 0);
    json_t *report = check_report(&spec, &dataset, 3);
    const json_t *rows = json_object_get(json_object_get(report, "derived"), "batch_sizes");
    assert_int_equal(json_array_size(rows), 3);
    const json_t *peak = json_object_get(json_array_get(rows, 1), "peak_learning_rate");
    assert_true(json_number_value(json_array_get(peak, 0)) == 0.2); /* linear: 16/8 times */
    assert_true(json_number_value(json_array_get(peak, 1)) == 0.4);
    assert_int_equal(json_get_integer(json_array_get(rows, 2), "batch_size", 0), dataset.rows[SPLIT_TRAIN]);
    assert_true(json_is_null(json_object_get(report, "points")));
    assert_int_equal(json_array_size(json_object_get(report, "sample")), 3);
    json_t *first = spec.sampler->propose(&spec.space, spec.seed, 1);
    assert_true(json_equal(
        first, json_object_get(json_array_get(json_object_get(report, "sample"), 0), "parameters")));
    json_decref(first);
    char *notes = json_canonical(json_object_get(report, "notes"));
    assert_non_null(strstr(notes, "100000 is more than the 72 rows to train on"));
    assert_null(strstr(notes, "class "));
    free(notes);
    char *printed = print(report);
    assert_non_null(strstr(printed, ", seed 1\n"));
    free(printed);
    json_decref(report);
    dataset_release(&dataset);
    spec_release(&spec);
}

/* 8 and 64 hidden units on one GPU of little memory, by the trainer's own sums; and what changes nothing. */
static void test_plan_and_ignored_settings(void **state)
{
    const struct folder *folder = *state;
    const struct device_description device = {
        .id = "cuda:0", .kind = "cuda", .name = "GPU", .memory_bytes = 1 << 30, .bf16 = true};
    struct spec spec;
    struct dataset dataset;
    struct error err = {0};
    write_spec(
        folder,
        HEAD "train: {data: {path: data.csv, target: label}, optimizer: adamw, momentum: 0.5, norm_batch: 8, "
             "beta1: 0.8, replicates: 2, width: 4}\n"
             "parameters: {hidden: {values: [[8], [64]]}}\n"
             "metric: {name: validation_loss, goal: minimize}\n");
    if (cli_load_spec_and_data(folder->spec, NULL, NULL, &spec, &dataset, &err) != 0) {
        fail_msg("%s", err.message);
    }
    json_t *report = check_report(&spec, &dataset, 0);
    assert_int_equal(check_memory(report, &spec, &dataset, &device), 0);
    const json_t *plan = json_object_get(report, "plan");
    const json_t *smallest = json_object_get(plan, "smallest"), *largest = json_object_get(plan, "largest");
    int64_t inputs = dataset.features, outputs = dataset.classes;
    /* Each of the four tensors is padded to 64 numbers. */
    int64_t few = inputs * 8 + 8 + 8 * outputs + outputs, many = inputs * 64 + 64 + 64 * outputs + outputs;
    assert_in_range(json_get_integer(smallest, "parameters", 0), few, few + 4 * 64 - 1);
    assert_int_equal(json_get_integer(largest, "parameters", 0), many);
    assert_true(json_get_integer(smallest, "bytes", 0) < json_get_integer(largest, "bytes", 0));
    assert_string_equal(json_get_string(largest, "precision", ""), "bf16");
    assert_int_equal(json_get_integer(largest, "replicates", 0), 2);
    assert_int_equal(json_get_integer(largest, "available", 0), 1 << 29);
    assert_true(json_get_boolean(plan, "fits", false));
    char *notes = json_canonical(json_object_get(report, "notes")), *printed = print(report);
    assert_non_null(strstr(notes, "\"momentum\",\"level\":\"note\""));
    assert_non_null(strstr(notes, "it is of optimizer sgd or lars"));
    assert_non_null(strstr(notes, "it is of norm batch"));
    assert_non_null(strstr(notes, "it is of model resnet"));
    assert_null(strstr(notes, "beta1"));
    assert_non_null(strstr(printed, "on cuda:0 (GPU, 1 GiB)"));
    free(printed);
    free(notes);
    json_decref(report);
    dataset_release(&dataset);
    spec_release(&spec);
}

/* What check says a trial takes of a CPU is what it takes, with more rows to evaluate than are at once, and
 * the best epoch kept. */
static void test_plan_is_what_is_taken(void **state)
{
    const struct folder *folder = *state;
    struct device_description description = {.id = "cpu:0", .kind = "cpu", .name = "CPU"};
    struct spec spec;
    struct dataset dataset;
    struct error err = {0};
    struct text rows;
    text_init(&rows);
    text_append(&rows, "a,b,label\n");
    for (int i = 0; i < 3000; i++) {
        text_printf(&rows, "%d.5,%d,%s\n", i * 7 % 101, i * 31 % 17, i % 3 ? "p" : "q");
    }
    char *path = path_join(folder->path, "data.csv");
    assert_int_equal(file_write(path, rows.data, rows.size, 0600, &err), 0);
    free(path);
    text_release(&rows);
    for (int best = 0; best < 2; best++) {
        struct training_settings settings;
        char text[400];
        snprintf(text, sizeof text,
                 HEAD "train: {data: {path: data.csv, target: label}, precision: fp32}\n"
                      "parameters: {learning_rate: {min: 0.001, max: 0.1}}\n"
                      "metric: {name: validation_loss, goal: minimize, objective: %s}\n",
                 best ? "best" : "last");
        write_spec(folder, text);
        if (cli_load_spec_and_data(folder->spec, NULL, NULL, &spec, &dataset, &err) != 0) {
            fail_msg("%s", err.message);
        }
        json_t *report = check_report(&spec, &dataset, 0);
        assert_int_equal(check_memory(report, &spec, &dataset, &description), 0);
        assert_int_equal(training_settings_read(&settings, spec.train, NULL, &err), 0);
        settings.objective_best = best;
        struct device *device = device_create("cpu:0", &err);
        struct trainer *trainer = trainer_create(&settings, &dataset, device, 1, &err);
        assert_non_null(trainer);
        json_t *details = trainer_details(trainer);
        assert_int_equal(
            json_get_integer(json_object_get(details, "memory"), "bytes", -1),
            json_get_integer(json_object_get(json_object_get(report, "plan"), "largest"), "bytes", 0));
        json_decref(details);
        trainer_destroy(trainer);
        device_destroy(device);
        json_decref(report);
        dataset_release(&dataset);
        spec_release(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test_setup_teardown(test_faults_only_the_data_tells, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_some_points_fail, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_warnings, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_what_cannot_work, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_more_memory_than_there_is, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_report, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_plan_is_what_is_taken, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_plan_and_ignored_settings, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
