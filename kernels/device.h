/* A device: everything training may ask of the hardware, as one table of functions a backend fills in.
 *
 * Lanes. Every operation works on `lanes.count` like-shaped trials at once. A lane owns one block of device
 * memory that holds all its tensors; lane l finds its tensor `lanes.stride * l` bytes behind the pointer
 * given. Shapes in the comments are those of one lane; one lane never reads another's memory, so a lane's
 * result is bitwise that of the trial trained alone. Memory said to be shared is the same for all lanes.
 *
 * Order and errors. Operations on a device happen in the order of the calls and may still run when the call
 * returns; `synchronize` waits for them, and reports the first failure since it was last called. Values said
 * to be on the host are valid after `synchronize`. A device is used by one thread. Nothing allocates memory
 * after the first use of a shape.
 *
 * Layout. Matrices are row-major; a layer's weight is (inputs, outputs), so that y = x w + b.
 *
 * Precision. Tensors of type `void *` are STORED: real in fp32 and tf32, 16-bit floats in bf16 and fp16.
 * Products take stored operands and accumulate in float32 (tf32: operands are rounded to 10 bits of mantissa
 * first); everything else is computed in float32 and rounded to nearest when stored. Parameters, moments,
 * gradients of parameters, statistics and losses are real whatever the precision. */
#ifndef RUNG_KERNELS_DEVICE_H
#define RUNG_KERNELS_DEVICE_H

#include "base/error.h"
#include "kernels/lane_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The float64 build exists for finite differences only: the same code, checked where rounding is out of the
 * way. It knows fp32 only, which then means float64. */
#ifdef RUNG_REAL_DOUBLE
typedef double real;
#else
typedef float real;
#endif

enum device_precision { DEVICE_FP32, DEVICE_TF32, DEVICE_BF16, DEVICE_FP16 };
/* Bytes of one element of a stored tensor. */
static inline size_t device_stored_size(enum device_precision precision)
{
    return precision == DEVICE_BF16 || precision == DEVICE_FP16 ? 2 : sizeof(real);
}

struct lanes {
    int64_t count;
    size_t stride; /* bytes; a multiple of DEVICE_ALIGNMENT */
    enum device_precision precision;
};

#define DEVICE_ALIGNMENT 256 /* of every block of memory; tensors should keep it */

enum device_activation {
    DEVICE_IDENTITY,
    DEVICE_RELU,
    DEVICE_GELU, /* tanh form: x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016) */
    DEVICE_SILU, /* x / (1 + exp(-x)) */
    DEVICE_TANH,
};

/* y = f(x) saves for its backward pass: relu and tanh their output, gelu and silu their argument. */
static inline bool device_saves_argument(enum device_activation f)
{
    return f == DEVICE_GELU || f == DEVICE_SILU;
}

/* Where a batch's rows are found. Row r of the batch is source row
 *     order[(state->step - state->epoch_first) * batch + first + r]   with an order (int32, in the lane's
 * memory), first + r                                                       without one. So a recorded step
 * finds its own rows each time it is replayed. */
struct device_rows_of {
    const int32_t *order;
    const struct lane_state *state;
    int64_t batch; /* rows of a full effective batch */
    int64_t first; /* of this micro batch in the effective batch */
};

enum device_optimizer { DEVICE_SGD, DEVICE_ADAM, DEVICE_ADAMW, DEVICE_LAMB, DEVICE_LARS };

/* The parameters of a model, one flat block per lane; its first `decayed` elements know weight decay. */
struct device_parameters {
    real *weight, *gradient;
    real *moment[2]; /* sgd, lars: velocity (NULL: momentum is 0 in every lane), none; else mean, square */
    void *stored;    /* (count) bf16 or fp16 copy that products read; NULL in fp32 and tf32 */
    int64_t count, decayed;
    const int64_t
        *tensor_end; /* (tensors) on the host, ascending: where each tensor of the decayed part ends */
    int tensors;     /* (lamb, lars: each has its own ratio) */
};

struct device;
struct device_recording;

struct device_operations {
    void (*destroy)(struct device *device);

    /* Memory. `allocate`: zeroed, aligned; ERROR_MEMORY. `share` makes host memory readable on the device
     * (the host's own where that is possible; else a copy, made once and counted) until as many calls of
     * `unshare`. Copies take bytes; upload and download have finished with the host's memory when they
     * return. `memory`: bytes free and in all; both 0 where nothing bounds them but the host. */
    int (*allocate)(struct device *device, void **memory, size_t bytes, struct error *err);
    void (*release)(struct device *device, void *memory);
    int (*share)(struct device *device, const void **memory, const void *host, size_t bytes,
                 struct error *err);
    void (*unshare)(struct device *device, const void *memory);
    void (*upload)(struct device *device, void *memory, const void *host, size_t bytes);
    void (*download)(struct device *device, void *host, const void *memory, size_t bytes);
    void (*copy)(struct device *device, struct lanes lanes, void *to, const void *from, size_t bytes);
    void (*zero)(struct device *device, struct lanes lanes, void *memory, size_t bytes);
    void (*memory)(struct device *device, size_t *available, size_t *total);
    int (*synchronize)(struct device *device, struct error *err);

    /* Recording (NULL in a backend that gains nothing by it). Operations between begin and end are noted, not
     * done; replay does them `times` times. Between them nothing may be allocated, uploaded, downloaded or
     * waited for; every shape must have been used before. Numbers given by value are part of the recording;
     * what lies in device memory, a lane's state above all, is read at each replay. */
    int (*record_begin)(struct device *device, struct error *err);
    int (*record_end)(struct device *device, struct device_recording **recording, struct error *err);
    void (*replay)(struct device *device, const struct device_recording *recording, int64_t times);
    void (*forget)(struct device *device, struct device_recording *recording);

    /* A step of the trial, see lane_state.h. step_begin: looks up the learning rate of state->step in rates
     * (in the lane's memory, from epoch_first on), and makes it the step's. step_end: counts it. */
    void (*step_begin)(struct device *device, struct lanes lanes, struct lane_state *state,
                       const double *rates);
    void (*step_end)(struct device *device, struct lanes lanes, struct lane_state *state);

    /* y (rows, stride >= columns) stored: row r's first `columns` = source[row]; source (any, columns)
     * shared. gather_real: to a real tensor, dense; gather_integers: labels and categories, dense. */
    void (*gather)(struct device *device, struct lanes lanes, void *y, int64_t stride, const float *source,
                   struct device_rows_of of, int64_t rows, int64_t columns);
    void (*gather_real)(struct device *device, struct lanes lanes, real *y, const float *source,
                        struct device_rows_of of, int64_t rows, int64_t columns);
    void (*gather_integers)(struct device *device, struct lanes lanes, int32_t *y, const int32_t *source,
                            struct device_rows_of of, int64_t rows, int64_t columns);

    /* Columns first..first+width-1 of y (rows, stride) stored = table (entries, width) at category[row *
     * categories + which]. backward: dtable += (or =) the sums of dy's columns over the rows of each entry,
     * in the order of the rows. */
    void (*embedding_forward)(struct device *device, struct lanes lanes, void *y, int64_t stride,
                              int64_t first, const real *table, const int32_t *category, int64_t categories,
                              int64_t which, int64_t rows, int64_t width);
    void (*embedding_backward)(struct device *device, struct lanes lanes, real *dtable, const void *dy,
                               int64_t stride, int64_t first, const int32_t *category, int64_t categories,
                               int64_t which, int64_t rows, int64_t entries, int64_t width, bool accumulate);

    /* y (rows, outputs) = f(x (rows, inputs) weight (inputs, outputs) + bias (outputs)); x, weight and before
     * stored, bias real. `before`, when not NULL, keeps f's argument (rows, outputs). y is stored, or real
     * when `wide` (logits and predictions). */
    void (*linear_forward)(struct device *device, struct lanes lanes, void *y, void *before, const void *x,
                           const void *weight, const real *bias, int64_t rows, int64_t inputs,
                           int64_t outputs, enum device_activation f, bool wide);
    /* dx (rows, inputs) = dy (rows, outputs) weight^T; all stored. */
    void (*linear_backward_data)(struct device *device, struct lanes lanes, void *dx, const void *dy,
                                 const void *weight, int64_t rows, int64_t inputs, int64_t outputs);
    /* dweight = x^T dy, dbias = column sums of dy; added to what is there when `accumulate`. x, dy stored.
     * dbias may be NULL in a backend that has activation_backward_bias. */
    void (*linear_backward_parameters)(struct device *device, struct lanes lanes, real *dweight, real *dbias,
                                       const void *x, const void *dy, int64_t rows, int64_t inputs,
                                       int64_t outputs, bool accumulate);

    /* y (count) = f(x); may be the same tensor unless f saves its argument. y (count) += x. Stored. */
    void (*activation)(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count,
                       enum device_activation f);
    void (*add)(struct device *device, struct lanes lanes, void *y, const void *x, int64_t count);
    /* mask (rows, columns) = 1 kept, 0 dropped; y = y * mask / (1 - t / 2^16), t = round(state->dropout
     * 2^16).
     *
     * `stream` tells a step's layers apart. Element e = (first_row + row) * columns + column, with r = e %
     * 128, is dropped if a half of a Philox word is below t: the word r / 32 of the block with key state->key
     * and counter {16 (e / 128) + r % 16, 0, state->step, stream}, its low half if r / 16 is even, else its
     * high half. That is a function of the position in the effective batch, whatever the micro batch. */
    void (*dropout)(struct device *device, struct lanes lanes, void *y, unsigned char *mask,
                    int64_t first_row, int64_t rows, int64_t columns, uint32_t stream,
                    const struct lane_state *state);
    /* gradient (count) = gradient * mask / (1 - t / 2^16) * f'(saved); mask may be NULL (no dropout). saved:
     * see device_saves_argument (relu: before or after dropout; tanh: before dropout); NULL for identity. */
    void (*activation_backward)(struct device *device, struct lanes lanes, void *gradient, const void *saved,
                                const unsigned char *mask, int64_t count, enum device_activation f,
                                const struct lane_state *state);
    /* The same of a layer's gradient (rows, columns), and its dbias (columns) as in
     * linear_backward_parameters, in one pass. NULL in a backend that gains nothing by it. */
    void (*activation_backward_bias)(struct device *device, struct lanes lanes, void *gradient, real *dbias,
                                     const void *saved, const unsigned char *mask, int64_t rows,
                                     int64_t columns, enum device_activation f, bool accumulate,
                                     const struct lane_state *state);

    /* y = (x - mean) / sqrt(variance + 1e-5) * gain + offset; x, y, dx, dy stored, the rest real. saved keeps
     * mean and 1 / sqrt(variance + 1e-5) of each set, one behind the other. Variances divide by n. dgain and
     * doffset are added to when `accumulate`. dx and dy may be the same tensor.
     *
     * layer_norm (Ba et al. 2016): over each row; saved (rows, 2).
     *
     * batch_norm (Ioffe & Szegedy 2015, in the ghost form of Hoffer et al. 2017): over each column within
     * groups of `group` rows; a last group of fewer has its own statistics, one of a single row joins the
     * group before it, and alone has variance 0. saved (groups, columns, 2). running (2, columns), means then
     * variances, moves by 0.1 towards each group's in order (variances there divide by n - 1; not moved by a
     * group of one). batch_norm_apply: evaluation, with the running statistics. */
    void (*layer_norm)(struct device *device, struct lanes lanes, void *y, real *saved, const void *x,
                       const real *gain, const real *offset, int64_t rows, int64_t columns);
    void (*layer_norm_backward)(struct device *device, struct lanes lanes, void *dx, real *dgain,
                                real *doffset, const void *dy, const void *x, const real *saved,
                                const real *gain, int64_t rows, int64_t columns, bool accumulate);
    void (*batch_norm)(struct device *device, struct lanes lanes, void *y, real *saved, real *running,
                       const void *x, const real *gain, const real *offset, int64_t rows, int64_t columns,
                       int64_t group);
    void (*batch_norm_apply)(struct device *device, struct lanes lanes, void *y, const real *running,
                             const void *x, const real *gain, const real *offset, int64_t rows,
                             int64_t columns);
    void (*batch_norm_backward)(struct device *device, struct lanes lanes, void *dx, real *dgain,
                                real *doffset, const void *dy, const void *x, const real *saved,
                                const real *gain, int64_t rows, int64_t columns, int64_t group,
                                bool accumulate);

    /* Losses. state->loss += the sum over rows; gradient (stored) = scale * state->loss_scale * its
     * derivative. Outputs, targets real. s = state->label_smoothing; class_weight (classes) real, shared,
     * NULL for 1 each.
     *
     * softmax_cross_entropy: (1 - s) w[label] (-log p[label]) + s / classes * sum_c w[c] (-log p[c]), p =
     * softmax(logits (rows, classes)).
     * binary_cross_entropy: w[label] (softplus(z) - z q), q = label (1 - s) + s / 2, z = logits (rows).
     * squared_error: (prediction - target)^2.
     * huber_error (Huber 1964), d = state->huber_delta, r = prediction - target: r^2 / 2 where |r| <= d, else
     * d (|r| - d / 2). */
    void (*softmax_cross_entropy)(struct device *device, struct lanes lanes, void *gradient,
                                  const real *logits, const int32_t *label, const real *class_weight,
                                  int64_t rows, int64_t classes, double scale, struct lane_state *state);
    void (*binary_cross_entropy)(struct device *device, struct lanes lanes, void *gradient,
                                 const real *logits, const int32_t *label, const real *class_weight,
                                 int64_t rows, double scale, struct lane_state *state);
    void (*squared_error)(struct device *device, struct lanes lanes, void *gradient, const real *prediction,
                          const real *target, int64_t count, double scale, struct lane_state *state);
    void (*huber_error)(struct device *device, struct lanes lanes, void *gradient, const real *prediction,
                        const real *target, int64_t count, double scale, struct lane_state *state);

    /* Before an update, where gradients may be clipped or scaled: state->finite, state->gradient_norm (of the
     * unscaled gradient) and state->gradient_factor = 1 / loss_scale * min(1, clip_norm / (norm + 1e-6)).
     * Sums of squares in float64 or in a tree, in an order that depends on `count` only. */
    void (*measure_gradient)(struct device *device, struct lanes lanes, const real *gradient, int64_t count,
                             struct lane_state *state);
    /* One optimizer step with the numbers in state, g = gradient * state->gradient_factor; nothing at all
     * where state->finite is 0. Writes weight, moments and stored. wd = weight_decay for the decayed part,
     * else 0. Moments below 1e-30 become 0. t = state->updates + 1.
     *
     * sgd, in PyTorch's form: g += wd w; velocity = momentum velocity + g;
     *
     *     w -= learning_rate (nesterov ? g + momentum velocity : velocity)
     *
     * adam (Kingma & Ba 2015): g += wd w; adamw (Loshchilov & Hutter 2019, algorithm 2, with PyTorch's
     * decay): w -= learning_rate wd w; then both, with m and v the moving means of g and g^2,
     *
     *     w -= learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
     *
     * lamb (You et al. 2020): u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + wd w;
     * w -= learning_rate r u, r = |w| / |u| of each tensor of the decayed part, 1 where a norm is 0 and
     * elsewhere.
     * lars (You et al. 2017): g = (g + wd w) r, r = 0.001 |w| / (|g| + wd |w| + 1e-8) of each tensor of the
     * decayed part, 1 where |w| is 0 and elsewhere; then as sgd without decay. */
    void (*update)(struct device *device, struct lanes lanes, enum device_optimizer optimizer,
                   const struct device_parameters *parameters, const struct lane_state *state);
    /* stored (count) = x (count) real; nothing in fp32 and tf32. For weights that did not come by update. */
    void (*store)(struct device *device, struct lanes lanes, void *stored, const real *x, int64_t count);

    /* Per lane, on the host: is every one of x (count) finite. */
    void (*finite)(struct device *device, struct lanes lanes, bool *finite, const real *x, int64_t count);
};

/* evaluation_rows of a kind of device, so that what a trial will take can be told without one. On a CPU
 * activations of a wide layer still fit the second cache; on a GPU they give every multiprocessor of the
 * largest enough to do, and take little beside a training step's. */
#define DEVICE_EVALUATION_ROWS_CPU 256
#define DEVICE_EVALUATION_ROWS_GPU 8192

/* What a backend's own struct begins with. */
struct device {
    const struct device_operations *operations;
    char name[64];      /* kind and what its rounding depends on: "cpu/avx512_core", "cuda/NVIDIA H200" */
    bool precisions[4]; /* enum device_precision: which of them are native, so worth choosing */
    int64_t evaluation_rows; /* of a batch that is only evaluated; as many as keep the device busy */
};

/* `name`: "cpu:0" (any number: a CPU device is the calling thread), "cuda:1", "emulated:0". Backends other
 * than cpu are plugins (kernels/plugin.h). ERROR_RESOURCE for one that is not there, with the reason. */
struct device *device_create(const char *name, struct error *err);
void device_destroy(struct device *device);

#endif
