/* One row for each kind of error: the spec, and the exact line it gives. */
#include "tests/unit/coordinator/spec_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Lines 1 and 2 of most rows. */
#define TRAIN "train: {data: " FIXTURE_DATA "}\n"
#define HEAD "method: random\n" TRAIN
#define METRIC "metric: {name: validation_loss, goal: minimize}\n"
#define PARAMETER "parameters:\n  dropout: {min: 0.0, max: 0.5}\n"
/* Lines 1 to 5; what follows is line 6. */
#define WHOLE HEAD METRIC PARAMETER
/* What follows the name of a parameter in line 4, from column 12. */
#define DROPOUT HEAD "parameters:\n  dropout: "
#define RATE HEAD "parameters:\n  learning_rate: "
#define BATCH HEAD "parameters:\n  batch_size: "

#define SEARCHABLE                                                                                           \
    "data.validation, model, hidden, dropout, learning_rate, nesterov, weight_decay, batch_size, epochs, "   \
    "lr_scaling.rule or lr_scaling.power"
#define DISTRIBUTIONS "uniform, int_uniform, log_uniform_values, categorical, constant or normal"
#define PARAMETER_KEYS "distribution, values, value, min, max, step, log, mu or sigma"

static const struct {
    const char *text, *problem;
} rows[] = {
    /* the whole */
    {"", "1:1: found an empty file, accepted a map with the keys method, parameters, train, ..."},
    {"- a\n", "1:1: found a list, accepted a map with the keys method, parameters, train, ..."},
    {"hello\n", "1:1: found text, accepted a map with the keys method, parameters, train, ..."},
    {"a: [\n", "2:1: not valid YAML: did not find expected node content while parsing a flow node (line 2)"},
    {WHOLE "method: grid\n", "6:1: the key \"method\" is repeated (first in line 1)"},

    /* top level */
    {WHOLE "paramters: {}\n",
     "6:1: unknown key: found \"paramters\", accepted name, description, method, metric, "
     "run_cap, seed, parameters, early_terminate, train, resources or max_retries (did you "
     "mean parameters?)"},
    {WHOLE "program: train.py\n",
     "6:1: program: is not available in this version: trials are run by the built-in "
     "trainer, see train:"},
    {WHOLE "points: []\n", "6:1: points: is not available in this version"},
    {WHOLE "epochs: 3\n", "6:1: epochs: is a setting of the trainer, accepted under train:"},
    {WHOLE "data: {}\n", "6:1: data: is a setting of the trainer, accepted under train:"},
    {TRAIN PARAMETER, "1:1: method: found nothing, accepted random, grid or successive_halving"},
    {"method: rnadom\n" TRAIN PARAMETER,
     "1:9: method: found \"rnadom\", accepted random, grid or successive_halving (did you mean random?)"},
    {"method: bayes\n" TRAIN PARAMETER,
     "1:9: method: found \"bayes\", which is not available in this version, "
     "accepted random, grid or successive_halving"},
    {"method: asha\n" TRAIN PARAMETER,
     "1:9: method: found \"asha\", which is a stopping rule: write method: random "
     "and early_terminate: {type: asha}"},
    {"method: 3\n" TRAIN PARAMETER, "1:9: method: found 3, accepted random, grid or successive_halving"},
    {WHOLE "name: ..\n", "6:7: name: found \"..\", accepted 1 to 64 of letters, digits, . _ -, not - first"},
    {WHOLE "name: -v\n", "6:7: name: found \"-v\", accepted 1 to 64 of letters, digits, . _ -, not - first"},
    {WHOLE "name: .\n", "6:7: name: found \".\", accepted 1 to 64 of letters, digits, . _ -, not - first"},
    {WHOLE "name: a b\n",
     "6:7: name: found \"a b\", accepted 1 to 64 of letters, digits, . _ -, not - first"},
    {WHOLE "description: [x]\n", "6:14: description: found a list, accepted text"},
    {WHOLE "run_cap: 0\n", "6:10: run_cap: found 0, accepted an integer from 1 to 1000000000"},
    {WHOLE "run_cap: 2.5\n", "6:10: run_cap: found 2.5, accepted an integer from 1 to 1000000000"},
    {WHOLE "run_cap: many\n", "6:10: run_cap: found \"many\", accepted an integer from 1 to 1000000000"},
    {WHOLE "run_cap:\n", "6:9: run_cap: found nothing, accepted an integer from 1 to 1000000000"},
    {WHOLE "seed: -1\n", "6:7: seed: found -1, accepted an integer from 0 to 18446744073709551615"},
    {WHOLE "seed: 18446744073709551616\n",
     "6:7: seed: found 18446744073709551616, accepted an integer from 0 to "
     "18446744073709551615"},
    {WHOLE "max_retries: -1\n", "6:14: max_retries: found -1, accepted an integer from 0 to 1000"},
    {WHOLE "resources: 2\n", "6:12: resources: found 2, accepted a map, such as {devices_per_trial: 1}"},
    {WHOLE "resources: {device_per_trial: 2}\n", "6:13: resources: found \"device_per_trial\", accepted "
                                                 "devices_per_trial (did you mean devices_per_trial?)"},
    {WHOLE "resources: {devices_per_trial: 2}\n", "6:32: resources.devices_per_trial: found 2, accepted 1"},

    /* metric */
    {HEAD PARAMETER "metric: validation_loss\n", "5:9: metric: found \"validation_loss\", accepted a map, "
                                                 "such as {name: validation_loss, goal: minimize}"},
    {HEAD PARAMETER "metric: accuracy\n", "5:9: metric: found \"accuracy\", accepted a map, such as {name: "
                                          "validation_accuracy, goal: maximize}"},
    {HEAD PARAMETER "metric: {name: validation_acc}\n",
     "5:16: metric.name: found \"validation_acc\", accepted train_loss, validation_loss or "
     "validation_accuracy (did you mean validation_accuracy?)"},
    {HEAD PARAMETER "metric: {name: validation_loss, goal: max}\n",
     "5:39: metric.goal: found \"max\", accepted minimize or maximize (did you mean maximize?)"},
    {HEAD PARAMETER "metric: {goal: minimize}\n",
     "5:9: metric.name: found nothing, accepted the name of a metric, "
     "such as {name: validation_loss, goal: minimize}"},
    {HEAD PARAMETER "metric: {name: validation_acuracy}\n",
     "5:16: metric.name: found \"validation_acuracy\", accepted train_loss, validation_loss or "
     "validation_accuracy "
     "(did you mean validation_accuracy?)"},
    {HEAD PARAMETER "metric: {name: 'validation_loss '}\n",
     "5:16: metric.name: found \"validation_loss \", accepted train_loss, validation_loss or "
     "validation_accuracy "
     "(did you mean validation_loss?)"},
    {HEAD PARAMETER "metric: {name: val_acc}\n", "5:16: metric.name: found \"val_acc\", accepted train_loss, "
                                                 "validation_loss or validation_accuracy (did you mean "
                                                 "validation_accuracy?)"},
    {HEAD PARAMETER "metric: {name: loss}\n", "5:16: metric.name: found \"loss\", accepted train_loss, "
                                              "validation_loss or validation_accuracy (did you mean "
                                              "validation_loss?)"},
    {HEAD PARAMETER "metric: {name: validation_loss, goal: minimise}\n",
     "5:39: metric.goal: found \"minimise\", accepted minimize or maximize (did you mean minimize?)"},
    {HEAD PARAMETER "metric: {name: validation_loss, gaol: minimize}\n",
     "5:33: metric: found \"gaol\", accepted name, goal, objective, impute or impute_while_running (did you "
     "mean "
     "goal?)"},
    {HEAD PARAMETER "metric: {name: validation_loss, objective: final}\n",
     "5:44: metric.objective: found \"final\", accepted last or best"},
    {HEAD PARAMETER "metric: {name: validation_loss, target: 1}\n",
     "5:33: metric.target: is not available in this version"},

    /* train */
    {"method: random\n" PARAMETER,
     "1:1: train: found nothing to run, accepted a map for the built-in trainer, such "
     "as {data: {path: data.csv, target: label}}"},
    {"method: random\ntrain: x.csv\n" PARAMETER,
     "2:8: train: found \"x.csv\", accepted a map, such as {data: {path: data.csv, target: label}}"},
    {"method: random\ntrain: {data: {target: label}}\n" PARAMETER,
     "2:8: train.data.path: found nothing, accepted the path of a readable file"},
    {"method: random\ntrain: {data: {path: nowhere.csv, target: label}}\n" PARAMETER,
     "2:22: train.data.path: found \"nowhere.csv\", accepted the path of a readable file: " RUNG_SOURCE_DIR
     "/nowhere.csv: No such file or directory"},
    {"method: random\ntrain: {data: {path: docs, target: label}}\n" PARAMETER,
     "2:22: train.data.path: found \"docs\", accepted the path of a readable file: " RUNG_SOURCE_DIR
     "/docs is a folder"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  epoch: 3\n" PARAMETER,
     "4:3: train: found \"epoch\" (did you mean epochs?), accepted data, model, hidden, dropout, "
     "learning_rate, nesterov, weight_decay, batch_size, epochs, micro_batch, tag, refit_epochs, lr_scaling"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  lr: 3\n" PARAMETER,
     "4:3: train: found \"lr\" (did you mean learning_rate?), accepted data, model, hidden, dropout, "
     "learning_rate, nesterov, weight_decay, batch_size, epochs, micro_batch, tag, refit_epochs, lr_scaling"},
    {"method: random\ntrain:\n  data: {path: LICENSE, target: label, validaton: 0.2}\n" PARAMETER,
     "3:40: train.data: found \"validaton\" (did you mean validation?), accepted path, target, missing, "
     "validation, header"},
    {"method: random\ntrain:\n  data: {path: LICENSE, traget: label}\n" PARAMETER,
     "3:25: train.data: found \"traget\" (did you mean target?), accepted path, target, missing, "
     "validation, header"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  data.target: x\n" PARAMETER,
     "4:3: train.data.target: is given twice, nested and dotted"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  lr_scaling: auto\n" PARAMETER,
     "4:15: train.lr_scaling: found \"auto\", accepted a map of settings"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  epochs: 1.5\n" PARAMETER,
     "4:11: train.epochs: found 1.5, accepted an integer >= 1 and <= 1000000000"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  epochs: '3'\n" PARAMETER,
     "4:11: train.epochs: found \"3\", accepted an integer >= 1 and <= 1000000000 (without quotes)"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  dropout: 1.0\n" PARAMETER,
     "4:12: train.dropout: found 1.0, accepted a number >= 0.0 and < 1.0"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  learning_rate: 0\n" PARAMETER,
     "4:18: train.learning_rate: found 0, accepted a number > 0.0 and <= 1000000.0"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  learning_rate: .inf\n" PARAMETER,
     "4:18: train.learning_rate: found .inf, accepted a number > 0.0 and <= 1000000.0"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  model: mpl\n" PARAMETER,
     "4:10: train.model: found \"mpl\", accepted linear or mlp (did you mean mlp?)"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  hidden: [64, 0]\n" PARAMETER,
     "4:16: train.hidden: found 0, accepted a list of integers >= 1 and <= 65536"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  hidden: {a: 1}\n" PARAMETER,
     "4:11: train.hidden: found a map, accepted a list of integers >= 1 and <= 65536"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  nesterov: 1\n" PARAMETER,
     "4:13: train.nesterov: found 1, accepted true or false"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  tag: 1\n" PARAMETER,
     "4:8: train.tag: found 1, accepted text"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  refit_epochs: -1\n" PARAMETER,
     "4:17: train.refit_epochs: found -1, accepted best or an integer >= 1 and <= 1000000000"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  refit_epochs: 0\n" PARAMETER,
     "4:17: train.refit_epochs: found 0, accepted best or an integer >= 1 and <= 1000000000"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  refit_epochs: 1e10\n" PARAMETER,
     "4:17: train.refit_epochs: found 1e10, accepted best or an integer >= 1 and <= 1000000000"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  refit_epochs: abc\n" PARAMETER,
     "4:17: train.refit_epochs: found \"abc\", accepted best or an integer >= 1 and <= 1000000000"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  refit_epochs: ''\n" PARAMETER,
     "4:17: train.refit_epochs: found \"\", accepted best or an integer >= 1 and <= 1000000000 (without "
     "quotes)"},
    {"method: random\ntrain:\n  data: " FIXTURE_DATA "\n  refit_epochs:\n" PARAMETER,
     "4:16: train.refit_epochs: found nothing, accepted best or an integer >= 1 and <= 1000000000"},
    {"method: random\ntrain:\n  data: {path: /dev/zero, target: label}\n" PARAMETER,
     "3:16: train.data.path: found \"/dev/zero\", accepted the path of a readable file: /dev/zero is a "
     "device, a pipe or a socket"},
    {"method: random\ntrain: {data: {path: LICENSE, target: 1.5}}\n" PARAMETER,
     "2:39: train.data.target: found 1.5, accepted text, an integer or null, or a list of texts and "
     "integers"},
    {"method: random\ntrain: {data: {path: LICENSE, target: [a, 1.5]}}\n" PARAMETER,
     "2:39: train.data.target: found a list, accepted text, an integer or null, or a list of texts and "
     "integers"},
    {"method: random\ntrain: {data: {path: LICENSE, target: [a, ~]}}\n" PARAMETER,
     "2:39: train.data.target: found a list, accepted text, an integer or null, or a list of texts and "
     "integers"},
    {"method: random\ntrain: {data: {path: LICENSE, target: []}}\n" PARAMETER,
     "2:39: train.data.target: found a list, accepted text, an integer or null, or a list of texts and "
     "integers"},
    {"method: random\ntrain: {data: {path: LICENSE, target: x, missing: [[1]]}}\n" PARAMETER,
     "2:51: train.data.missing: found a list, accepted text, a number or null, or a list of texts and "
     "numbers"},
    {"method: random\ntrain: {data: {path: LICENSE, target: x, missing: true}}\n" PARAMETER,
     "2:51: train.data.missing: found true, accepted text, a number or null, or a list of texts and numbers"},

    /* parameters: names */
    {HEAD,
     "1:1: parameters: found nothing to search, accepted a map of parameters, such as {learning_rate: {min: "
     "0.001, max: 0.1}}"},
    {HEAD "parameters: []\n",
     "3:13: parameters: found a list, accepted a map, such as {learning_rate: {min: 0.001, "
     "max: 0.1}}"},
    {HEAD "parameters:\n  droput: {value: 0.1}\n",
     "4:3: parameters: found \"droput\", which is no train setting (did you mean dropout?), "
     "accepted " SEARCHABLE},
    {HEAD "parameters:\n  lr: {value: 0.1}\n",
     "4:3: parameters: found \"lr\", which is no train setting (did you mean learning_rate?), "
     "accepted " SEARCHABLE},
    {HEAD "parameters:\n  micro_batch: {value: 1}\n",
     "4:3: parameters: micro_batch cannot be searched (set it under train:), accepted " SEARCHABLE},
    {HEAD "parameters:\n  9lives: {value: 1}\n",
     "4:3: parameters: found the name \"9lives\", accepted letters, "
     "digits, _ . - (the first a letter or _)"},

    /* parameters: shapes */
    {DROPOUT "0.1\n",
     "4:12: parameters.dropout: found 0.1, accepted a map, such as {value: 0.1}, {values: [1, 2]} or "
     "{min: 0.0, max: 0.5}"},
    {DROPOUT "[0.1]\n", "4:12: parameters.dropout: found a list, accepted a map, such as {values: [...]}"},
    {DROPOUT "{}\n", "4:12: parameters.dropout: found none, accepted one of values, value, or min and max"},
    {DROPOUT "{value: 0.1, min: 0.0, max: 0.5}\n",
     "4:12: parameters.dropout: found several, accepted one of values, value, or min and max"},
    {DROPOUT "{mu: 0.1}\n",
     "4:12: parameters.dropout: found mu or sigma alone, accepted them with distribution: normal"},
    {DROPOUT "{parameters: {a: {value: 1}}}\n", "4:12: parameters.dropout: nested parameters are not "
                                                "available in this version, accepted dotted names, such as "
                                                "dropout.NAME"},
    {DROPOUT "{vaules: [0.1]}\n",
     "4:13: parameters.dropout: found \"vaules\", accepted " PARAMETER_KEYS " (did you mean values?)"},
    {DROPOUT "{min: 0.0, max: 0.5, q: 0.1}\n",
     "4:33: parameters.dropout.q: is not available in this version"},
    {DROPOUT "{values: [0.1], probabilities: [1]}\n",
     "4:28: parameters.dropout.probabilities: is not available in this version"},
    {DROPOUT "{distribution: unifrom, min: 0.0, max: 0.5}\n",
     "4:27: parameters.dropout.distribution: found \"unifrom\", accepted " DISTRIBUTIONS
     " (did you mean uniform?)"},
    {DROPOUT "{distribution: q_uniform, min: 0.0, max: 0.5}\n",
     "4:27: parameters.dropout.distribution: found \"q_uniform\", which is not available in this version, "
     "accepted " DISTRIBUTIONS},
    {DROPOUT "{distribution: q_uniform, min: 0.0, max: 0.5, q: 0.1}\n",
     "4:27: parameters.dropout.distribution: found \"q_uniform\", which is not available in this version, "
     "accepted " DISTRIBUTIONS},
    {DROPOUT "{distribution: constant}\n",
     "4:12: parameters.dropout.value: found nothing, accepted one value"},
    {DROPOUT "{distribution: categorical}\n",
     "4:12: parameters.dropout.values: found nothing, accepted a list of values"},
    {DROPOUT "{values: []}\n",
     "4:21: parameters.dropout.values: found an empty list, accepted a list of values, such as [1, 2]"},
    {DROPOUT "{values: 0.1}\n",
     "4:21: parameters.dropout.values: found 0.1, accepted a list of values, such as [1, 2]"},

    /* parameters: values against the setting */
    {DROPOUT "{values: [0.1, 1.5]}\n",
     "4:27: parameters.dropout.values: found 1.5, accepted a number >= 0.0 and < 1.0"},
    {DROPOUT "{values: [0.1, '0.2']}\n",
     "4:27: parameters.dropout.values: found \"0.2\", accepted a number >= 0.0 and < 1.0 (without quotes)"},
    {DROPOUT "{value: .nan}\n", "4:20: parameters.dropout.value: found .nan, accepted a finite number"},
    {DROPOUT "{min: 0.0, max: 1.0}\n",
     "4:28: parameters.dropout.max: found 1.0, accepted a number >= 0.0 and < 1.0"},
    {DROPOUT "{min: -0.5, max: 0.5}\n",
     "4:18: parameters.dropout.min: found -0.5, accepted a number >= 0.0 and < 1.0"},
    {BATCH "{values: [32, 0.5]}\n",
     "4:29: parameters.batch_size.values: found 0.5, accepted an integer >= 1"},
    {BATCH "{min: 8.0, max: 64.0}\n",
     "4:15: parameters.batch_size: found real numbers, accepted integers: whole min "
     "and max, without distribution (log: true for a logarithmic scale)"},
    {BATCH "{distribution: normal, mu: 64}\n", "4:15: parameters.batch_size: found real numbers, accepted "
                                               "integers: whole min and max, without distribution "
                                               "(log: true for a logarithmic scale)"},
    {BATCH "{min: 0, max: 64}\n", "4:21: parameters.batch_size.min: found 0, accepted an integer >= 1"},
    {HEAD "parameters:\n  model: {min: 0, max: 1}\n",
     "4:10: parameters.model: found a range, accepted values: linear or mlp"},
    {HEAD "parameters:\n  model: {values: [mlp, cnn]}\n",
     "4:25: parameters.model.values: found \"cnn\", accepted linear or mlp"},
    {HEAD "parameters:\n  hidden: {values: [[64], [64, x]]}\n",
     "4:32: parameters.hidden.values: found \"x\", accepted a list of integers >= 1 and <= 65536"},

    /* parameters: ranges */
    {DROPOUT "{min: 0.1}\n", "4:12: parameters.dropout.max: found nothing, accepted a number beside min"},
    {DROPOUT "{max: 0.1}\n", "4:12: parameters.dropout.min: found nothing, accepted a number beside max"},
    {DROPOUT "{min: low, max: 0.1}\n", "4:18: parameters.dropout.min: found \"low\", accepted a number"},
    {DROPOUT "{min: 0.5, max: 0.5}\n",
     "4:28: parameters.dropout.max: found 0.5, accepted a number above min, which is 0.5"},
    {BATCH "{min: 64, max: 8}\n",
     "4:30: parameters.batch_size.max: found 8, accepted a number above min, which is "
     "64"},
    {RATE "{min: 0.0, max: 0.1, log: true}\n", "4:24: parameters.learning_rate.min: found 0.0, accepted a "
                                               "number > 0, as it is drawn on a logarithmic scale"},
    {RATE "{distribution: log_uniform_values, min: 0, max: 0.1}\n",
     "4:58: parameters.learning_rate.min: found 0, accepted a number > 0, as it is drawn on a logarithmic "
     "scale"},
    {RATE "{distribution: loguniform, min: 0.01, max: 0.1}\n",
     "4:33: parameters.learning_rate.distribution: found \"loguniform\", accepted " DISTRIBUTIONS
     " (did you mean log_uniform_values?)"},
    {RATE "{distribution: log_uniform, min: 0.01, max: 0.1}\n",
     "4:33: parameters.learning_rate.distribution: found \"log_uniform\", which is not available in this "
     "version, accepted " DISTRIBUTIONS " (did you mean log_uniform_values?)"},
    {RATE "{min: 0.01, max: 0.1, log: 1}\n",
     "4:45: parameters.learning_rate.log: found 1, accepted true or false"},
    {DROPOUT "{min: 0.0, max: 0.5, step: 0.6}\n",
     "4:39: parameters.dropout.step: found 0.6, accepted a number > 0 and <= max - min, which is 0.5"},
    {DROPOUT "{min: 0.0, max: 0.5, step: 0}\n",
     "4:39: parameters.dropout.step: found 0, accepted a number > 0 and <= max - min, which is 0.5"},
    {DROPOUT "{min: 0.1, max: 0.5, step: 0.1, log: true}\n",
     "4:39: parameters.dropout.step: found step beside a logarithmic scale, accepted one of them"},
    {DROPOUT "{distribution: int_uniform, min: 0.5, max: 1}\n",
     "4:45: parameters.dropout.min: found 0.5, accepted an integer"},
    {HEAD "parameters:\n  weight_decay: {distribution: normal, sigma: -1}\n",
     "4:47: parameters.weight_decay.sigma: found -1, accepted a number >= 0"},
    {BATCH "{min: 1, max: 9223372036854775807}\n",
     "4:29: parameters.batch_size.max: found 9223372036854775807, accepted a narrower range (integers up to "
     "2^53)"},

    /* grid */
    {"method: grid\n" TRAIN "parameters:\n  batch_size: {values: [1]}\n  dropout: {min: 0.0, max: 0.5}\n",
     "5:12: parameters: a grid cannot take dropout, which is continuous, accepted values, integers from min "
     "to max, "
     "or a step"},

    /* early_terminate */
    {WHOLE "early_terminate: asha\n", "6:18: early_terminate: found \"asha\", accepted a map, such as {type: "
                                      "successive_halving, min_iter: 1, eta: 3}"},
    {WHOLE "early_terminate: {}\n",
     "6:18: early_terminate.type: found nothing, accepted successive_halving or asha"},
    {WHOLE "early_terminate: {type: hyperband, min_iter: 3}\n",
     "6:25: early_terminate.type: found \"hyperband\", which is not available in this version, accepted "
     "successive_halving or asha"},
    {WHOLE "early_terminate: {type: ahsa}\n",
     "6:25: early_terminate.type: found \"ahsa\", accepted successive_halving or asha (did you mean "
     "asha?)"},
    {WHOLE "early_terminate: {type: asha, mode: stoping}\n",
     "6:37: early_terminate.mode: found \"stoping\", accepted promotion or stopping (did you mean "
     "stopping?)"},
    {WHOLE "run_cap: 9\nearly_terminate: {type: successive_halving, mode: stopping}\n",
     "7:51: early_terminate.mode: belongs to type: asha; successive_halving has no modes"},
    {WHOLE "early_terminate: {type: asha, bracket_size: 9}\n",
     "6:45: early_terminate.bracket_size: belongs to type: successive_halving"},
    {WHOLE "early_terminate: {type: asha, min_itr: 3}\n",
     "6:31: early_terminate: found \"min_itr\", accepted type, mode, min_iter, max_iter, eta or bracket_size "
     "(did you "
     "mean min_iter?)"},
    {WHOLE "early_terminate: {type: asha, max_iter: 11}\n",
     "6:41: early_terminate.max_iter: found 11, accepted at most train.epochs, which is 10"},
    {WHOLE "early_terminate: {type: asha, min_iter: 6, max_iter: 5}\n",
     "6:41: early_terminate.min_iter: found 6, accepted at most max_iter, which is 5"},
    {WHOLE "early_terminate: {type: asha, min_iter: 0}\n",
     "6:41: early_terminate.min_iter: found 0, accepted an integer >= 1"},
    {WHOLE "early_terminate: {type: asha, eta: 1}\n",
     "6:36: early_terminate.eta: found 1, accepted a number > 1"},
    {WHOLE "early_terminate: {type: successive_halving}\n",
     "6:18: early_terminate: successive_halving needs the number of trials: run_cap, or method: grid with "
     "finite "
     "parameters"},
    {"method: successive_halving\n" TRAIN METRIC PARAMETER,
     "1:9: early_terminate: successive_halving needs the number of trials: run_cap, or method: grid with "
     "finite "
     "parameters"},
    {"method: successive_halving\n" TRAIN METRIC PARAMETER "run_cap: 9\nearly_terminate: {type: asha}\n",
     "7:25: early_terminate.type: found \"asha\", accepted successive_halving, as method: successive_halving "
     "says "
     "(for asha write method: random)"},
    {HEAD PARAMETER "early_terminate: {type: asha}\n",
     "5:18: early_terminate: needs a metric to compare trials by, such as metric: {name: validation_loss, "
     "goal: "
     "minimize}"},
    {HEAD METRIC "early_terminate: {type: asha}\nparameters:\n  epochs: {values: [5, 10]}\n",
     "6:3: parameters: epochs cannot be searched beside early_terminate: rungs compare trials of the same "
     "length on "
     "the same data"},
    {HEAD METRIC "early_terminate: {type: asha}\nparameters:\n  data.validation: {values: [0.1, 0.2]}\n",
     "6:3: parameters: data.validation cannot be searched beside early_terminate: rungs compare trials of "
     "the same "
     "length on the same data"},
};

static void test_each_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct spec spec;
        char *problems = NULL;
        char wanted[1000];
        snprintf(wanted, sizeof wanted, "%s:%s", FIXTURE_FILE, rows[i].problem);
        int status = fixture_parse(&spec, rows[i].text, NULL, &problems);
        if (status == 0 || !problems || strcmp(problems, wanted) != 0) {
            print_error("row %zu:\n%s", i, rows[i].text);
            print_error("got    %s\nwanted %s\n", status == 0 ? "no error" : problems, wanted);
            fail();
        }
        free(problems);
    }
}

static void test_all_errors_at_once_in_order(void **state)
{
    const char *text = "method: rnd\n"
                       "seed: x\n"
                       "parameters:\n"
                       "  dropout: {min: 0.5, max: 0.1}\n"
                       "  lr: {value: 1}\n"
                       "train: {data: {path: LICENSE}, epochs: 0}\n"
                       "early_terminate: {type: asha, eta: 0}\n";
    static const char *const parts[] = {"1:9: method",
                                        "2:7: seed",
                                        "4:28: parameters.dropout.max",
                                        "5:3: parameters",
                                        "6:8: train.data.target",
                                        "6:40: train.epochs",
                                        "7:18: early_terminate",
                                        "7:36: early_terminate.eta"};
    struct spec spec;
    char *problems = NULL;
    (void)state;
    assert_int_equal(fixture_parse(&spec, text, NULL, &problems), -1);
    const char *at = problems;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *found = strstr(at, parts[i]);
        if (!found) {
            fail_msg("'%s' is not in order in:\n%s", parts[i], problems);
        }
        at = found + 1;
    }
    size_t lines = 1;
    for (const char *c = problems; *c; c++) {
        lines += *c == '\n';
    }
    assert_int_equal(lines, 8);
    free(problems);
}

static void test_names_are_listed_once(void **state)
{
    struct spec spec;
    char *problems = NULL;
    (void)state;
    assert_int_equal(fixture_parse(&spec, HEAD "parameters:\n  lr: {value: 1}\n  layer_size: {value: 1}\n",
                                   NULL, &problems),
                     -1);
    assert_non_null(strstr(problems, "(did you mean learning_rate?), accepted " SEARCHABLE));
    const char *second = strstr(problems, "found \"layer_size\", which is no train setting");
    assert_non_null(second);
    assert_non_null(strstr(second, ", accepted one of the names above"));
    free(problems);
}

/* The keys beside a rule that is not there are read nevertheless. */
static void test_unknown_keys_beside_a_later_rule(void **state)
{
    struct spec spec;
    char *problems = NULL;
    (void)state;
    assert_int_equal(
        fixture_parse(&spec, WHOLE "early_terminate: {type: hyperband, s: 2, min_itr: 3}\n", NULL, &problems),
        -1);
    assert_non_null(strstr(problems, "found \"hyperband\", which is not available"));
    assert_non_null(strstr(problems, "found \"min_itr\", accepted type,"));
    assert_null(strstr(problems, "\"s\""));
    free(problems);
}

static void test_a_flood_of_errors_is_counted(void **state)
{
    char text[8000] = HEAD "parameters:\n  dropout:\n    values:\n";
    struct spec spec;
    char *problems = NULL;
    (void)state;
    for (int i = 0; i < 150; i++) {
        strcat(text, "      - x\n");
    }
    assert_int_equal(fixture_parse(&spec, text, NULL, &problems), -1);
    assert_non_null(strstr(problems, "spec.yaml: and 50 more"));
    free(problems);
}

static void test_override_errors_name_the_option(void **state)
{
    static const struct {
        const char *override, *problem;
    } overrides[] = {
        {"run_cap", "--set run_cap: accepted key=value with a dotted key, such as train.epochs=9"},
        {"=3", "--set =3: accepted key=value with a dotted key, such as train.epochs=9"},
        {"run_cap=x", "--set run_cap=x: run_cap: found \"x\", accepted an integer from 1 to 1000000000"},
        {"train.epochs=0",
         "--set train.epochs=0: train.epochs: found 0, accepted an integer >= 1 and <= 1000000000"},
        {"parameters.dropout.max=2.0", "--set parameters.dropout.max=2.0: parameters.dropout.max: found 2.0, "
                                       "accepted a number >= 0.0 and < 1.0"},
        {"epochs=3", "--set epochs=3: epochs: is a setting of the trainer, accepted under train:"},
        {"run_cap=[1",
         "--set run_cap=[1: not valid YAML: did not find expected ',' or ']' while parsing a flow "
         "sequence (line 1)"},
        {"method.x=1", "--set method.x=1: method is \"random\", not a map with keys below it"},
        {"parameters.nesterov.value=3",
         "--set parameters.nesterov.value=3: parameters.nesterov.value: found 3, accepted true or false"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++) {
        const char *const list[] = {overrides[i].override, NULL};
        struct spec spec;
        char *problems = NULL;
        assert_int_equal(fixture_parse(&spec, WHOLE, list, &problems), -1);
        assert_string_equal(problems, overrides[i].problem);
        free(problems);
    }
}

static void test_a_missing_file_is_wrong_usage(void **state)
{
    struct spec spec;
    struct error err = {0};
    char *problems = NULL;
    (void)state;
    assert_int_equal(spec_load(&spec, "/nowhere/spec.yaml", NULL, &problems, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "/nowhere/spec.yaml"));
    assert_null(problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_error),
        cmocka_unit_test(test_all_errors_at_once_in_order),
        cmocka_unit_test(test_names_are_listed_once),
        cmocka_unit_test(test_unknown_keys_beside_a_later_rule),
        cmocka_unit_test(test_a_flood_of_errors_is_counted),
        cmocka_unit_test(test_override_errors_name_the_option),
        cmocka_unit_test(test_a_missing_file_is_wrong_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
