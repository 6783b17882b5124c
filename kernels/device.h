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
 * Layout. Matrices are row-major; a layer's weight is (inputs, outputs), so that y = x w + b. */
#ifndef RUNG_KERNELS_DEVICE_H
#define RUNG_KERNELS_DEVICE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The float64 build exists for finite differences only: the same code, checked where rounding is out of the
 * way. */
#ifdef RUNG_REAL_DOUBLE
typedef double real;
#else
typedef float real;
#endif

struct lanes {
    int64_t count;
    size_t stride; /* bytes; a multiple of DEVICE_ALIGNMENT */
};

#define DEVICE_ALIGNMENT 64 /* of every block of memory; tensors should keep it */

enum device_activation {
    DEVICE_IDENTITY,
    DEVICE_RELU,
    DEVICE_GELU, /* tanh form: x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016) */
};

/* Which random numbers dropout draws in a step; one per lane. `stream` tells a step's layers apart. Element
 * e = (first_row + row) * columns + column, with r = e % 128, is dropped if a half of a Philox word is below
 * t = round(probability * 2^16): the word r / 32 of the block with key `key` and counter {16 (e / 128) + r %
 * 16, 0, step, stream}, its low half if r / 16 is even, else its high half. That is a function of the
 * position in the effective batch, whatever the micro batch. What is kept is divided by the probability there
 * is, 1 - t / 2^16. */
struct dropout_draw {
    uint64_t key;
    uint32_t step;
    double probability; /* in [0, 1) */
};

/* Numbers of one optimizer step; one per lane. */
struct sgd_step {
    double learning_rate, momentum, weight_decay;
    bool nesterov;
};
struct adamw_step {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    int64_t number; /* of this step, from 1: for the bias corrections */
};

struct device;

struct device_operations {
    void (*destroy)(struct device *device);

    /* Memory. `allocate`: zeroed, aligned; ERROR_MEMORY. `share` makes host memory readable on the device
     * (the host's own where that is possible; else a copy, made once and counted) until as many calls of
     * `unshare`. Copies take bytes; upload and download have finished with the host's memory when they
     * return. */
    int (*allocate)(struct device *device, void **memory, size_t bytes, struct error *err);
    void (*release)(struct device *device, void *memory);
    int (*share)(struct device *device, const void **memory, const void *host, size_t bytes,
                 struct error *err);
    void (*unshare)(struct device *device, const void *memory);
    void (*upload)(struct device *device, void *memory, const void *host, size_t bytes);
    void (*download)(struct device *device, void *host, const void *memory, size_t bytes);
    void (*copy)(struct device *device, struct lanes lanes, void *to, const void *from, size_t bytes);
    void (*zero)(struct device *device, struct lanes lanes, void *memory, size_t bytes);
    int (*synchronize)(struct device *device, struct error *err);

    /* y (rows, columns) = source[index[row]]; source (any, columns) is shared; index (rows), or NULL for the
     * first rows in order. */
    void (*gather)(struct device *device, struct lanes lanes, real *y, const float *source,
                   const int32_t *index, int64_t rows, int64_t columns);
    void (*gather_labels)(struct device *device, struct lanes lanes, int32_t *y, const int32_t *source,
                          const int32_t *index, int64_t rows);

    /* y (rows, outputs) = f(x (rows, inputs) weight (inputs, outputs) + bias (outputs)). `before`, when not
     * NULL, keeps f's argument (rows, outputs). */
    void (*linear_forward)(struct device *device, struct lanes lanes, real *y, real *before, const real *x,
                           const real *weight, const real *bias, int64_t rows, int64_t inputs,
                           int64_t outputs, enum device_activation f);
    /* dx (rows, inputs) = dy (rows, outputs) weight^T. */
    void (*linear_backward_data)(struct device *device, struct lanes lanes, real *dx, const real *dy,
                                 const real *weight, int64_t rows, int64_t inputs, int64_t outputs);
    /* dweight = x^T dy, dbias = column sums of dy; added to what is there when `accumulate`. */
    void (*linear_backward_parameters)(struct device *device, struct lanes lanes, real *dweight, real *dbias,
                                       const real *x, const real *dy, int64_t rows, int64_t inputs,
                                       int64_t outputs, bool accumulate);

    /* mask (rows, columns) = 0 or 1 / (1 - t / 2^16), y = y * mask. draws: one per lane, on the host. */
    void (*dropout)(struct device *device, struct lanes lanes, real *y, real *mask, int64_t first_row,
                    int64_t rows, int64_t columns, uint32_t stream, const struct dropout_draw *draws);
    /* gradient (count) = gradient * mask * f'; mask may be NULL (no dropout). `saved`: for relu the layer's
     * output (before or after dropout), for gelu what linear_forward kept in `before`. */
    void (*activation_backward)(struct device *device, struct lanes lanes, real *gradient, const real *saved,
                                const real *mask, int64_t count, enum device_activation f);

    /* *loss += sum over rows of -log softmax(logits)[label]; gradient (rows, classes) = scale *
     * (softmax(logits) - onehot(label)). */
    void (*softmax_cross_entropy)(struct device *device, struct lanes lanes, double *loss, real *gradient,
                                  const real *logits, const int32_t *label, int64_t rows, int64_t classes,
                                  double scale);
    /* *loss += sum of (prediction - target)^2; gradient = scale * 2 (prediction - target). */
    void (*squared_error)(struct device *device, struct lanes lanes, double *loss, real *gradient,
                          const real *prediction, const real *target, int64_t count, double scale);

    /* One optimizer step over a flat block of parameters; only the first `decayed` of them know weight decay.
     * Moments below 1e-30 become 0. steps: one per lane, on the host. velocity NULL: no momentum in any lane.
     *
     * sgd, in PyTorch's form: g += weight_decay w; velocity = momentum velocity + g;
     *
     *     w -= learning_rate (nesterov ? g + momentum velocity : velocity)
     *
     * adamw (Loshchilov & Hutter 2019, algorithm 2, with PyTorch's decay lr * wd): m, v moving means of g,
     * g^2;
     *
     *     w -= learning_rate weight_decay w
     *     w -= learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) */
    void (*sgd)(struct device *device, struct lanes lanes, real *weight, const real *gradient, real *velocity,
                int64_t count, int64_t decayed, const struct sgd_step *steps);
    void (*adamw)(struct device *device, struct lanes lanes, real *weight, const real *gradient, real *mean,
                  real *square, int64_t count, int64_t decayed, const struct adamw_step *steps);

    /* Per lane, on the host: is every one of x (count) finite. */
    void (*finite)(struct device *device, struct lanes lanes, bool *finite, const real *x, int64_t count);
};

/* What a backend's own struct begins with. */
struct device {
    const struct device_operations *operations;
    char name[64]; /* kind and what its rounding depends on: "cpu/avx512_core" */
};

/* `name`: "cpu:0" (any number: a CPU device is the calling thread). ERROR_RESOURCE for one that is not there.
 */
struct device *device_create(const char *name, struct error *err);
void device_destroy(struct device *device);

#endif
