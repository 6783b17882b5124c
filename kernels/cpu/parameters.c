/* What happens to parameters: their gradient is measured, the optimizer takes its step, and the 16-bit copy
 * is written while they are in the cache. */
#include "kernels/cpu/cpu_internal.h"

#include <math.h>

#define STRETCH 4096 /* parameters updated, then narrowed: 16 KiB each of weight, gradient and moments */

void cpu_measure_gradient(struct device *device, struct lanes lanes, const real *gradient, int64_t count,
                          struct lane_state *state)
{
    for (int64_t l = 0; l < lanes.count; l++) {
        struct lane_state *own = LANE(state, l);
        double squares = cpu_of(device)->loops->squares(LANE_CONST(gradient, l), count);

        own->finite = isfinite(squares);
        own->gradient_norm = sqrt(squares) / own->loss_scale;
        own->gradient_factor = 1 / own->loss_scale;
        if (own->clip_norm > 0 && own->clip_norm < own->gradient_norm + 1e-6)
            own->gradient_factor *= own->clip_norm / (own->gradient_norm + 1e-6);
    }
}

/* One lane's parameters from `first` on, all decayed or none. */
struct part {
    real *weight, *moment[2];
    const real *gradient;
    int64_t count;
    bool decayed;
};

static struct part part_of(const struct device_parameters *p, struct lanes lanes, int64_t l, int64_t first,
                           int64_t end, bool decayed)
{
    struct part part = {.weight = (real *)LANE(p->weight, l) + first,
                        .gradient = (const real *)LANE_CONST(p->gradient, l) + first,
                        .count = end - first,
                        .decayed = decayed};
    for (int m = 0; m < 2; m++)
        part.moment[m] = p->moment[m] ? (real *)LANE(p->moment[m], l) + first : NULL;
    return part;
}

/* |w| / |u|; the moments have been moved. */
static double lamb_ratio(double weight_squares, double direction_squares)
{
    return weight_squares == 0 || direction_squares == 0 ? 1 : sqrt(weight_squares / direction_squares);
}

static double lars_ratio(double weight_squares, double gradient_squares, const struct lane_state *state)
{
    double weight = sqrt(weight_squares), gradient = sqrt(gradient_squares) * state->gradient_factor;
    return weight == 0 ? 1 : 0.001 * weight / (gradient + state->weight_decay * weight + 1e-8);
}

/* Whole tensors for lamb and lars, whose ratio `by_ratio` asks for; any stretch for the others. */
static void part_update(const struct cpu_loops *loops, enum device_optimizer optimizer, struct part part,
                        bool by_ratio, const struct lane_state *state)
{
    double ratio = 1, squares;

    switch (optimizer) {
    case DEVICE_SGD:
        loops->sgd(part.weight, part.gradient, part.moment[0], part.count, part.decayed, state);
        break;
    case DEVICE_ADAM:
    case DEVICE_ADAMW:
        loops->adam(part.weight, part.gradient, part.moment[0], part.moment[1], part.count, part.decayed,
                    optimizer == DEVICE_ADAMW, state);
        break;
    case DEVICE_LAMB:
        squares = loops->lamb_moments(part.weight, part.gradient, part.moment[0], part.moment[1], part.count,
                                      part.decayed, state);
        if (by_ratio)
            ratio = lamb_ratio(loops->squares(part.weight, part.count), squares);
        loops->lamb(part.weight, part.moment[0], part.moment[1], part.count, ratio, part.decayed, state);
        break;
    case DEVICE_LARS:
        if (by_ratio)
            ratio = lars_ratio(loops->squares(part.weight, part.count),
                               loops->squares(part.gradient, part.count), state);
        loops->lars(part.weight, part.gradient, part.moment[0], part.count, ratio, part.decayed, state);
        break;
    }
}

/* Parameters first..end-1, in stretches where there is a copy to write. */
static void update_range(struct cpu *cpu, enum device_optimizer optimizer, const struct device_parameters *p,
                         struct lanes lanes, int64_t l, int64_t first, int64_t end, bool decayed,
                         const struct lane_state *state)
{
    bool by_ratio = decayed && (optimizer == DEVICE_LAMB || optimizer == DEVICE_LARS);
    int64_t most = p->stored && !by_ratio ? STRETCH : end - first;

    for (int64_t at = first; at < end; at += most) {
        int64_t stop = end - at < most ? end : at + most;
        struct part part = part_of(p, lanes, l, at, stop, decayed);

        part_update(cpu->loops, optimizer, part, by_ratio, state);
        if (p->stored)
            cpu->loops->narrow((uint16_t *)LANE(p->stored, l) + at, part.weight, part.count, lanes.precision);
    }
}

void cpu_update(struct device *device, struct lanes lanes, enum device_optimizer optimizer,
                const struct device_parameters *parameters, const struct lane_state *state)
{
    struct cpu *cpu = cpu_of(device);
    bool by_tensor = optimizer == DEVICE_LAMB || optimizer == DEVICE_LARS;

    for (int64_t l = 0; l < lanes.count; l++) {
        const struct lane_state *own = LANE_CONST(state, l);
        int64_t first = 0;

        if (!own->finite)
            continue;
        for (int t = 0; by_tensor && t < parameters->tensors; t++) {
            update_range(cpu, optimizer, parameters, lanes, l, first, parameters->tensor_end[t], true, own);
            first = parameters->tensor_end[t];
        }
        update_range(cpu, optimizer, parameters, lanes, l, first, parameters->decayed, true, own);
        update_range(cpu, optimizer, parameters, lanes, l, parameters->decayed, parameters->count, false,
                     own);
    }
}

void cpu_store(struct device *device, struct lanes lanes, void *stored, const real *x, int64_t count)
{
    for (int64_t l = 0; l < lanes.count && device_stored_size(lanes.precision) == 2; l++)
        cpu_of(device)->loops->narrow(LANE(stored, l), LANE_CONST(x, l), count, lanes.precision);
}

void cpu_finite(struct device *device, struct lanes lanes, bool *finite, const real *x, int64_t count)
{
    for (int64_t l = 0; l < lanes.count; l++)
        finite[l] = cpu_of(device)->loops->finite(LANE_CONST(x, l), count);
}
