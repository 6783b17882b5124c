/* Random numbers and stored numbers of the conformance test. */
#include "conformance.h"

#include "base/random.h"

static uint64_t seed;
static uint32_t drawn;

void random_start(uint64_t of)
{
    seed = of;
    drawn = 0;
}

static double random_unit_interval(void)
{
    struct philox block = philox4x32(seed, drawn++, 0, 0, 0x7e57);
    return (block.word[0] + block.word[1] * 0x1p-32 + 0x1p-33) * 0x1p-32;
}

double random_real(double low, double high)
{
    return low + (high - low) * random_unit_interval();
}

int64_t random_integer(int64_t low, int64_t high)
{
    int64_t found = low + (int64_t)floor(random_unit_interval() * (double)(high - low + 1));
    return found > high ? high : found;
}

int64_t random_size(int64_t most)
{
    static const int64_t sizes[] = {1,  2,  3,  5,  7,  13,  16,  17,  31, 32,
                                    33, 61, 64, 65, 97, 127, 128, 129, 251};
    int64_t size = random_integer(0, 2) ? sizes[random_integer(0, sizeof(sizes) / sizeof(*sizes) - 1)]
                                        : random_integer(1, most);
    return size > most ? random_integer(1, most) : size;
}

const char *precision_name(enum device_precision precision)
{
    static const char *const names[] = {"fp32", "tf32", "bf16", "fp16"};
    return names[precision];
}

double stored_unit(enum device_precision precision)
{
    return precision == DEVICE_BF16 ? 0x1p-8 : precision == DEVICE_FP16 ? 0x1p-11 : UNIT;
}

double stored_least(enum device_precision precision)
{
    return precision == DEVICE_FP16 ? 0x1p-25 : 1e-37;
}

/* sign, exponent and mantissa to a number, for formats with a bias of 2^(e-1) - 1. */
static double decoded(uint32_t bits, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, exponent = (int)(bits >> mantissa_bits) & (2 * bias + 1);
    double mantissa = ldexp((double)(bits & ((1u << mantissa_bits) - 1)), -mantissa_bits), value;

    if (exponent == 2 * bias + 1)
        value = mantissa == 0 ? INFINITY : NAN;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - bias);
    else
        value = ldexp(1 + mantissa, exponent - bias);
    return bits >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

/* The nearest such number, ties to even, as bits. */
static uint32_t encoded(double value, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, exponent;
    uint32_t sign = (uint32_t)(signbit(value) != 0) << (exponent_bits + mantissa_bits);
    uint32_t infinite = (uint32_t)(2 * bias + 1) << mantissa_bits;

    if (isnan(value))
        return sign | infinite | 1u << (mantissa_bits - 1);
    if (isinf(value))
        return sign | infinite;
    if (value == 0)
        return sign;
    frexp(value, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    /* units of the last place; one that rounds up to the next power carries into the exponent */
    double units = rint(ldexp(fabs(value), mantissa_bits - exponent));
    uint32_t number = (uint32_t)units + ((uint32_t)(exponent + bias - 1) << mantissa_bits);
    return sign | (number > infinite ? infinite : number);
}

double stored_get(enum device_precision precision, const void *x, int64_t i)
{
    if (precision == DEVICE_BF16)
        return decoded(((const uint16_t *)x)[i], 8, 7);
    if (precision == DEVICE_FP16)
        return decoded(((const uint16_t *)x)[i], 5, 10);
    return (double)((const float *)x)[i];
}

void stored_set(enum device_precision precision, void *x, int64_t i, double value)
{
    if (precision == DEVICE_BF16)
        ((uint16_t *)x)[i] = (uint16_t)encoded(value, 8, 7);
    else if (precision == DEVICE_FP16)
        ((uint16_t *)x)[i] = (uint16_t)encoded(value, 5, 10);
    else
        ((float *)x)[i] = (float)value;
}

double stored_round(enum device_precision precision, double value)
{
    float room = 0;
    stored_set(precision, &room, 0, value);
    return stored_get(precision, &room, 0);
}

double activation_of(double x, enum device_activation f)
{
    switch (f) {
    case DEVICE_RELU:
        return isnan(x) ? x : fmax(x, 0);
    case DEVICE_GELU:
        return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case DEVICE_SILU:
        return x / (1 + exp(-x));
    case DEVICE_TANH:
        return tanh(x);
    default:
        return x;
    }
}

/* gelu's by tanh, the form it is known by. */
double slope_of(double saved, enum device_activation f)
{
    double x = saved, t, logistic;

    switch (f) {
    case DEVICE_RELU:
        return x > 0;
    case DEVICE_GELU:
        t = tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    case DEVICE_SILU:
        logistic = 1 / (1 + exp(-x));
        return logistic * (1 + x * (1 - logistic));
    case DEVICE_TANH:
        return 1 - x * x;
    default:
        return 1;
    }
}
