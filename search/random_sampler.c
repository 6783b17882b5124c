/* Random search: independent draws, each a function of (seed, trial, parameter name, draw). */
#include "base/normal.h"
#include "base/random.h"
#include "search/distribution.h"
#include "search/sampler.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* One parameter's stream of numbers for one draw of one trial. */
struct stream {
    uint64_t seed;
    uint32_t trial;
    uint64_t name_hash;
    uint32_t draw;
};

static double stream_unit(const struct stream *stream)
{
    return random_unit(stream->seed, stream->trial, stream->name_hash, stream->draw);
}

static int64_t stream_below(const struct stream *stream, int64_t bound)
{
    return (int64_t)random_below(stream->seed, stream->trial, stream->name_hash, stream->draw,
                                 (uint64_t)bound);
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static double sample_uniform(const struct parameter *parameter, double u)
{
    double range = parameter->maximum - parameter->minimum;
    /* Bounds of both signs near the largest double: their difference is none. */
    double value = isfinite(range) ? parameter->minimum + u * range
                                   : (1 - u) * parameter->minimum + u * parameter->maximum;
    return clamp(value, parameter->minimum, parameter->maximum);
}

/* exp and log round: without the clamp the ends could be passed by a unit in the last place. */
static double sample_log_uniform(double minimum, double maximum, double u)
{
    double low = log(minimum), high = log(maximum);
    return clamp(exp(low + u * (high - low)), minimum, maximum);
}

/* JSON has no infinity. */
static double sample_normal(const struct parameter *parameter, double u)
{
    return clamp(parameter->mu + parameter->sigma * normal_quantile(u), -DBL_MAX, DBL_MAX);
}

/* Each integer k stands for [k - 1/2, k + 1/2): the ends are not half as likely as the law asks, as they
 * would be if the range were [minimum, maximum] itself. */
static int64_t sample_int_log_uniform(const struct parameter *parameter, double u)
{
    double value = sample_log_uniform(parameter->minimum - 0.5, parameter->maximum + 0.5, u);
    return (int64_t)clamp(floor(value + 0.5), parameter->minimum, parameter->maximum);
}

static json_t *sample_categorical(const struct parameter *parameter, double u)
{
    size_t count = json_array_size(parameter->values);
    size_t index = (size_t)ceil(u * (double)count);
    index = index < 1 ? 1 : index > count ? count : index;
    return json_incref(json_array_get(parameter->values, index - 1));
}

static json_t *sample_lattice(const struct parameter *parameter, int64_t k)
{
    double value = lattice_value(parameter, k);
    return parameter->integer ? json_integer((json_int_t)value) : json_real(value);
}

json_t *parameter_sample(const struct parameter *parameter, uint64_t seed, int64_t trial, uint32_t draw)
{
    const struct stream stream = {seed, (uint32_t)trial, fnv1a64(parameter->name, strlen(parameter->name)),
                                  draw};
    switch (parameter->distribution) {
    case DISTRIBUTION_CONSTANT:
        return json_incref(json_array_get(parameter->values, 0));
    case DISTRIBUTION_CATEGORICAL:
        return sample_categorical(parameter, stream_unit(&stream));
    case DISTRIBUTION_INT_UNIFORM:
        return json_integer((json_int_t)parameter->minimum + stream_below(&stream, integer_count(parameter)));
    case DISTRIBUTION_UNIFORM:
        return json_real(sample_uniform(parameter, stream_unit(&stream)));
    case DISTRIBUTION_LOG_UNIFORM_VALUES:
        return json_real(sample_log_uniform(parameter->minimum, parameter->maximum, stream_unit(&stream)));
    case DISTRIBUTION_NORMAL:
        return json_real(sample_normal(parameter, stream_unit(&stream)));
    case DISTRIBUTION_LATTICE:
        return sample_lattice(parameter, stream_below(&stream, lattice_size(parameter)));
    case DISTRIBUTION_INT_LOG_UNIFORM:
        return json_integer(sample_int_log_uniform(parameter, stream_unit(&stream)));
    }
    return NULL;
}

static int64_t random_size(const struct space *space)
{
    (void)space; /* draws may repeat, so that they never end */
    return -1;
}

static json_t *random_propose(const struct space *space, uint64_t seed, int64_t number)
{
    json_t *point = json_object();
    for (size_t i = 0; point && i < space->count; i++) {
        const struct parameter *parameter = &space->parameters[i];
        json_t *value = parameter_sample(parameter, seed, number, 0);
        if (!value || json_object_set_new(point, parameter->name, value) != 0) {
            json_decref(point);
            point = NULL;
        }
    }
    return point;
}

const struct sampler_methods random_sampler = {
    .name = "random",
    .size = random_size,
    .propose = random_propose,
};
