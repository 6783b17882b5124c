/* Specs bent at random: nothing crashes, hangs or leaks, every refusal says why in lines of valid UTF-8, and
 * what is accepted stays itself through the store and proposes only values its settings take. Deterministic:
 * FUZZ_SEED and FUZZ_COUNT change the run; the seed is printed. */
#include "tests/unit/coordinator/spec_fixture.h"

#include "base/random.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TEXT_LIMIT 4096
#define TRAIN "train: {data: {path: LICENSE, target: label}, epochs: 27}\n"

static const char *const seeds[] = {
    "name: digits\nmethod: random\nmetric: {name: validation_accuracy, goal: maximize}\nrun_cap: 64\nseed: "
    "7\n"
    "parameters:\n  learning_rate: {distribution: log_uniform_values, min: 1e-4, max: 1e-1}\n"
    "  batch_size:    {values: [32, 64, 128, 256]}\n  hidden:        {values: [[64], [128], [128, 128]]}\n"
    "  dropout:       {min: 0.0, max: 0.5}\n"
    "early_terminate: {type: successive_halving, min_iter: 1, max_iter: 27, eta: 3}\n" TRAIN
    "resources: {devices_per_trial: 1}\nmax_retries: 2\n",
    "method: grid\nearly_terminate: {type: asha, mode: stopping, min_iter: 3}\nmetric: {name: train_loss}\n"
    "parameters:\n  batch_size: {min: 8, max: 64, step: 8}\n  nesterov: {values: [yes, no]}\n" TRAIN,
    "method: random\nparameters:\n  learning_rate: &r {min: 0.001, max: 0.1, log: true}\n  weight_decay: *r\n"
    "  batch_size: {min: 1, max: 512, log: true}\n  dropout: {<<: {min: 0.0}, max: 0.9, step: 0.3}\n"
    "  lr_scaling.power: {distribution: normal, mu: 1, sigma: 0}\n  model: {value: linear}\n"
    "train:\n  data.path: LICENSE\n  data: {target: -1, header: true}\n  lr_scaling: {rule: none}\n",
    "method: grid\r\nparameters:\r\n- {a: !!float 1e-5, 'b': \"\\u00e9\", ? c : [1_0, 010, 1:30, ~]}\r\n",
};

static const char *const tokens[] = {"min: ",
                                     "max: ",
                                     "values: ",
                                     "value: ",
                                     "step: ",
                                     "log: ",
                                     "distribution: ",
                                     "uniform",
                                     "int_uniform",
                                     "log_uniform_values",
                                     "categorical",
                                     "constant",
                                     "normal",
                                     "mu: ",
                                     "sigma: ",
                                     "[",
                                     "]",
                                     "{",
                                     "}",
                                     ": ",
                                     ", ",
                                     "\n",
                                     "  ",
                                     "- ",
                                     "&a ",
                                     "*a",
                                     "<<: ",
                                     "---\n",
                                     "...\n",
                                     "!!str ",
                                     "!!float ",
                                     "!!int ",
                                     "!x ",
                                     "? ",
                                     "| ",
                                     "> ",
                                     "'",
                                     "\"",
                                     "#",
                                     "\\",
                                     "%",
                                     "@",
                                     "`",
                                     "\t",
                                     "\r\n",
                                     "\xef\xbb\xbf",
                                     "\xff",
                                     "\xc3",
                                     "\0",
                                     "0",
                                     "-1",
                                     "1e-3",
                                     "1e308",
                                     "-1e308",
                                     "1e999",
                                     ".nan",
                                     ".inf",
                                     "9223372036854775807",
                                     "18446744073709551615",
                                     "18446744073709551616",
                                     "9007199254740993",
                                     "true",
                                     "null",
                                     "~",
                                     "yes",
                                     "0x1F",
                                     "1:30",
                                     "epochs: ",
                                     "early_terminate: ",
                                     "parameters: ",
                                     "train: ",
                                     "data: ",
                                     "metric: ",
                                     "seed: ",
                                     "run_cap: ",
                                     "eta: ",
                                     "min_iter: ",
                                     "max_iter: ",
                                     "bracket_size: ",
                                     "asha",
                                     "successive_halving",
                                     "method: ",
                                     "grid",
                                     "random"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A stream of choices: one number a call. */
struct dice {
    uint64_t seed;
    uint32_t trial, draw;
};

static size_t roll(struct dice *dice, size_t bound)
{
    return (size_t)random_below(dice->seed, dice->trial, 0, dice->draw++, bound);
}

struct sample {
    char bytes[TEXT_LIMIT + 1];
    size_t size;
};

/* Replaces `gone` bytes at `at` by others, as far as they fit. */
static void splice(struct sample *sample, size_t at, size_t gone, const char *bytes, size_t count)
{
    if (gone > sample->size - at) {
        gone = sample->size - at;
    }
    if (sample->size - gone + count > TEXT_LIMIT) {
        return;
    }
    char copy[TEXT_LIMIT];
    memcpy(copy, bytes, count); /* it may be the sample's own */
    memmove(sample->bytes + at + count, sample->bytes + at + gone, sample->size - at - gone);
    memcpy(sample->bytes + at, copy, count);
    sample->size += count - gone;
}

/* Another digit for the first one behind `at`: the text stays a spec, with other numbers. */
static void change_digit(struct sample *sample, size_t at, struct dice *dice)
{
    while (at < sample->size && (sample->bytes[at] < '0' || sample->bytes[at] > '9')) {
        at++;
    }
    if (at < sample->size) {
        sample->bytes[at] = (char)('0' + roll(dice, 10));
    }
}

static void mutate(struct sample *sample, struct dice *dice)
{
    size_t at = roll(dice, sample->size + 1);
    const char *token = tokens[roll(dice, COUNT(tokens))];
    const char *other = seeds[roll(dice, COUNT(seeds))];
    size_t from = roll(dice, strlen(other)), length = roll(dice, 40);
    char byte = (char)roll(dice, 256);
    switch (roll(dice, 10)) {
    case 0:
        splice(sample, at, 1, &byte, 1);
        break;
    case 1:
        splice(sample, at, length, "", 0);
        break;
    case 2:
        splice(sample, at, 0, token, token[0] ? strlen(token) : 1);
        break;
    case 3:
        splice(sample, at, length % 8, token, token[0] ? strlen(token) : 1);
        break;
    case 4:
        splice(sample, at, 0, other + from, length < strlen(other + from) ? length : strlen(other + from));
        break;
    case 5:
        splice(sample, at, 0, sample->bytes + at, length < sample->size - at ? length : sample->size - at);
        break;
    case 6:
        sample->size = roll(dice, 4) == 0 ? at : sample->size;
        break;
    default:
        change_digit(sample, at, dice);
    }
}

static void assert_clean(const char *text)
{
    char *repaired = utf8_repair(text, strlen(text));
    assert_string_equal(text, repaired);
    free(repaired);
}

/* The value of a numeric setting in a point is within its range, whatever drew it (normal has no bounds). */
static void check_point(const struct spec *spec, const json_t *point)
{
    for (size_t i = 0; i < spec->space.count; i++) {
        const struct parameter *parameter = &spec->space.parameters[i];
        const struct setting *setting = setting_find(fixture_settings, parameter->name);
        const json_t *value = json_object_get(point, parameter->name);
        assert_non_null(value);
        assert_non_null(setting);
        bool integer = setting->type == SETTING_INTEGER;
        if ((!integer && setting->type != SETTING_NUMBER) || parameter->distribution == DISTRIBUTION_NORMAL) {
            continue;
        }
        double number = json_number_value(value);
        assert_true(json_is_number(value));
        assert_true(!integer || json_is_integer(value));
        assert_true(setting->minimum_open ? number > setting->minimum : number >= setting->minimum);
        assert_true(setting->maximum_open ? number < setting->maximum : number <= setting->maximum);
    }
}

static void check_accepted(const struct spec *spec)
{
    struct spec again;
    struct error err = {0};
    struct spec_options options = {.train_settings = fixture_settings, .metric_names = fixture_metrics};
    char *text = json_canonical(spec->normalised), *notes = json_canonical(spec->notes);
    assert_non_null(text);
    assert_clean(notes);
    json_t *value = json_parse(text, strlen(text), &err);
    if (!value || spec_restore(&again, value, &options, &err) != 0) {
        fail_msg("%s: %s", err.message, text);
    }
    assert_true(json_equal(spec->normalised, again.normalised));
    for (int64_t trial = 1; trial <= 3; trial++) {
        json_t *point = spec->sampler->propose(&spec->space, spec->seed, trial);
        json_t *same = again.sampler->propose(&again.space, again.seed, trial);
        if (point) {
            check_point(spec, point);
            assert_true(json_equal(point, same));
        }
        json_decref(point);
        json_decref(same);
    }
    json_decref(value);
    free(text);
    free(notes);
    spec_release(&again);
}

static void check_sample(const struct sample *sample, const char *const *overrides, size_t *accepted)
{
    struct spec spec;
    struct error err = {0};
    char *problems = NULL;
    struct spec_options options = {
        .train_settings = fixture_settings, .metric_names = fixture_metrics, .overrides = overrides};
    int status = spec_parse(&spec, sample->bytes, sample->size, FIXTURE_FILE, &options, &problems, &err);
    if (status == 0) {
        assert_null(problems);
        check_accepted(&spec);
        spec_release(&spec);
        (*accepted)++;
    } else {
        assert_int_equal(err.code, ERROR_USAGE);
        assert_non_null(problems);
        assert_true(problems[0] != '\0');
        assert_clean(problems);
    }
    free(problems);
}

static uint64_t environment_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : fallback;
}

static void test_mutated_specs(void **state)
{
    uint64_t seed = environment_number("FUZZ_SEED", 1), count = environment_number("FUZZ_COUNT", 8000);
    size_t accepted = 0;
    (void)state;
    printf("FUZZ_SEED=%llu FUZZ_COUNT=%llu\n", (unsigned long long)seed, (unsigned long long)count);
    fflush(stdout);
    for (uint32_t trial = 1; trial <= count; trial++) {
        struct dice dice = {.seed = seed, .trial = trial};
        static struct sample sample;
        const char *start = seeds[roll(&dice, COUNT(seeds))];
        sample.size = strlen(start);
        memcpy(sample.bytes, start, sample.size);
        for (size_t left = 1 + roll(&dice, 4); left > 0; left--) {
            mutate(&sample, &dice);
        }
        sample.bytes[sample.size] = '\0';
        check_sample(&sample, NULL, &accepted);
    }
    printf("%zu of %llu accepted\n", accepted, (unsigned long long)count);
    assert_true(accepted > count / 50); /* else the mutations no longer reach what comes after the checks */
}

static void test_mutated_overrides(void **state)
{
    uint64_t seed = environment_number("FUZZ_SEED", 1);
    static const char *const starts[] = {"train.epochs=3", "parameters.dropout.max=0.25",
                                         "parameters.x.y.value=[1, {a: b}]",
                                         "early_terminate={type: asha, eta: 2}", "metric.goal=minimize"};
    size_t accepted = 0;
    (void)state;
    for (uint32_t trial = 1; trial <= 2000; trial++) {
        struct dice dice = {.seed = seed + 1, .trial = trial};
        static struct sample spec, override;
        const char *start = starts[roll(&dice, COUNT(starts))];
        spec.size = strlen(seeds[0]);
        memcpy(spec.bytes, seeds[0], spec.size + 1);
        override.size = strlen(start);
        memcpy(override.bytes, start, override.size);
        for (size_t left = roll(&dice, 4); left > 0; left--) {
            mutate(&override, &dice);
        }
        override.bytes[override.size] = '\0';
        check_sample(&spec, (const char *const[]){override.bytes, NULL}, &accepted);
    }
    assert_true(accepted > 20);
}

/* Nothing bent: the first seeds are good, so what follows starts inside the language. */
static void test_seeds(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < COUNT(seeds); i++) {
        struct spec spec;
        char *problems = NULL;
        if (fixture_parse(&spec, seeds[i], NULL, &problems) != 0) {
            fail_msg("%s", problems ? problems : "no memory");
        }
        spec_release(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeds), cmocka_unit_test(test_mutated_specs),
                                       cmocka_unit_test(test_mutated_overrides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
