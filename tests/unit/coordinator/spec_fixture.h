/* A small table of train settings with every kind in it, so that these tests do not move with the trainer's.
 */
#ifndef RUNG_TESTS_SPEC_FIXTURE_H
#define RUNG_TESTS_SPEC_FIXTURE_H

#include "coordinator/spec.h"

#include <string.h>

#define FIXTURE_CHOICES(...)                                                                                 \
    .type = SETTING_CHOICE, .choices = (const char *const[])                                                 \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

static const struct setting fixture_settings[] = {
    {.name = "data.path", .type = SETTING_PATH, .required = true},
    {.name = "data.target", .type = SETTING_SCALAR_LIST, .required = true},
    {.name = "data.missing", .type = SETTING_VALUE_LIST},
    {.name = "data.validation",
     .type = SETTING_NUMBER,
     .minimum = 0,
     .maximum = 1,
     .minimum_open = true,
     .maximum_open = true,
     .fallback = "0.2",
     .searchable = true},
    {.name = "data.header", FIXTURE_CHOICES("auto", "true", "false"), .fallback = "\"auto\""},
    {.name = "model", FIXTURE_CHOICES("linear", "mlp"), .fallback = "\"mlp\"", .searchable = true},
    {.name = "hidden",
     .type = SETTING_INTEGER_LIST,
     .minimum = 1,
     .maximum = 65536,
     .fallback = "[128]",
     .searchable = true},
    {.name = "dropout",
     .type = SETTING_NUMBER,
     .maximum = 1,
     .maximum_open = true,
     .fallback = "0.0",
     .searchable = true},
    {.name = "learning_rate",
     .type = SETTING_NUMBER,
     .maximum = 1e6,
     .minimum_open = true,
     .fallback = "0.001",
     .searchable = true},
    {.name = "nesterov", .type = SETTING_BOOLEAN, .fallback = "false", .searchable = true},
    {.name = "weight_decay", .type = SETTING_NUMBER, .maximum = 1e6, .searchable = true},
    {.name = "batch_size",
     .type = SETTING_INTEGER,
     .minimum = 1,
     .maximum = 9007199254740992.0,
     .fallback = "32",
     .searchable = true},
    {.name = "epochs",
     .type = SETTING_INTEGER,
     .minimum = 1,
     .maximum = 1e9,
     .fallback = "10",
     .searchable = true},
    {.name = "micro_batch", .type = SETTING_INTEGER, .minimum = 1, .maximum = 1e9},
    {.name = "tag", .type = SETTING_STRING},
    {.name = "refit_epochs",
     .type = SETTING_INTEGER_OR_CHOICE,
     .minimum = 1,
     .maximum = 1e9,
     .choices = (const char *const[]){"best", NULL}},
    {.name = "lr_scaling.rule", FIXTURE_CHOICES("auto", "none"), .fallback = "\"auto\"", .searchable = true},
    {.name = "lr_scaling.power", .type = SETTING_NUMBER, .maximum = 2, .searchable = true},
    {.name = NULL},
};

static const char *const fixture_metrics[] = {"train_loss", "validation_loss", "validation_accuracy", NULL};

/* A readable file beside the spec: this source tree's own. */
#define FIXTURE_FILE RUNG_SOURCE_DIR "/spec.yaml"
#define FIXTURE_DATA "{path: LICENSE, target: label}"

static inline int fixture_parse(struct spec *spec, const char *text, const char *const *overrides,
                                char **problems)
{
    struct error err = {0};
    struct spec_options options = {
        .train_settings = fixture_settings, .metric_names = fixture_metrics, .overrides = overrides};
    return spec_parse(spec, text, strlen(text), FIXTURE_FILE, &options, problems, &err);
}

#endif
