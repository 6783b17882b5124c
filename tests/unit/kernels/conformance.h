/* Conformance of a device: every operation of its table against float64 references written from the formulas
 * in kernels/device.h, for a device named by RUNG_TEST_DEVICE (cpu:0 without). Device memory is reached by
 * upload and download only.
 *
 * Each check builds a world: one block of device memory for several lanes, whose tensors lie between gaps of
 * noise. It runs the operation on all lanes at once and then on each lane alone, which must give the same
 * bits, and nothing outside the tensors the operation writes may have changed. Shapes and values are drawn
 * anew in each run; the seed is printed, and RUNG_TEST_SEED replays it. */
#ifndef RUNG_TESTS_CONFORMANCE_H
#define RUNG_TESTS_CONFORMANCE_H

#include "kernels/device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNIT 0x1p-24 /* half a unit in the last place of float32 */
#define ROUNDS 3     /* of each check and precision */

/* The device under test; set up once by conformance.c. */
extern struct device *device;
extern const struct device_operations *operations;

/* Has the CPU device run on a table of loops, named by RUNG_TEST_LOOPS; false if it cannot. */
bool use_loops(const char *instruction_set);

/* Random numbers, from the run's seed. */
void random_start(uint64_t seed);
double random_real(double low, double high);
int64_t random_integer(int64_t low, int64_t high); /* both included */
/* 1, or odd, prime, a power of two or beside one, or anything up to `most`. */
int64_t random_size(int64_t most);

/* Stored numbers as device.h means them; rounding in float64 arithmetic. */
double stored_get(enum device_precision precision, const void *x, int64_t i);
void stored_set(enum device_precision precision, void *x, int64_t i, double value); /* to nearest, even */
double stored_round(enum device_precision precision, double value);
/* Largest relative error of rounding: half a unit in the last place; and of fp16's denormals, absolute. */
double stored_unit(enum device_precision precision);
double stored_least(enum device_precision precision);
const char *precision_name(enum device_precision precision);

enum { TENSORS = 24 };

struct world {
    struct lanes lanes;
    int tensors;
    struct tensor {
        size_t at, bytes;
        bool written; /* by the operation */
    } tensor[TENSORS];
    unsigned char *before, *after; /* (lanes, stride) on the host */
    char *memory;                  /* the same on the device */
    char what[200];                /* for messages */
};

/* First place all tensors, then world_open gives them noise, then fill those that are read. */
void world_init(struct world *world, enum device_precision precision);
int world_place(struct world *world, int64_t count, size_t size, bool written);
int world_place_stored(struct world *world, int64_t count, bool written);
int world_place_real(struct world *world, int64_t count, bool written);
int world_place_state(struct world *world, bool written);
void world_open(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_release(struct world *world);

void *world_before(const struct world *world, int64_t lane, int tensor);
const void *world_after(const struct world *world, int64_t lane, int tensor);
double before_stored(const struct world *world, int64_t lane, int tensor, int64_t i);
double after_stored(const struct world *world, int64_t lane, int tensor, int64_t i);
double before_real(const struct world *world, int64_t lane, int tensor, int64_t i);
double after_real(const struct world *world, int64_t lane, int tensor, int64_t i);

/* In every lane, values from -scale to scale. */
void fill_stored(struct world *world, int tensor, double scale);
void fill_real(struct world *world, int tensor, double scale);
void fill_bytes(struct world *world, int tensor, unsigned char below);
void fill_integers(struct world *world, int tensor, int32_t below);
/* A lane's state as of a trial somewhere on its way, different in each lane. */
void fill_state(struct world *world, int tensor);

/* The operation on lanes that begin at `base`; data is the check's own. */
typedef void call_f(const struct world *world, char *base, struct lanes lanes, const void *data);
static inline void *tensor_at(const struct world *world, char *base, int tensor)
{
    return base + world->tensor[tensor].at;
}
void world_run(struct world *world, call_f *call, const void *data);
/* What the operation left becomes what it finds. */
void world_advance(struct world *world);
/* Waits for the device; its failure is the test's. */
void settle(void);

/* found is within tolerance of expected; NaN expects NaN. */
void expect(const struct world *world, const char *name, int64_t lane, int64_t i, double found,
            double expected, double tolerance);
/* A stored result: computed with an error of `error`, then rounded. */
void expect_stored(const struct world *world, const char *name, int64_t lane, int tensor, int64_t i,
                   double expected, double error);

/* The checks, each of some operations. */
void check_memory(enum device_precision precision);
void check_copies(enum device_precision precision);
void check_steps(enum device_precision precision);
void check_gather(enum device_precision precision);
void check_gather_plain(enum device_precision precision);
void check_embedding(enum device_precision precision);
void check_linear_forward(enum device_precision precision);
void check_linear_backward_data(enum device_precision precision);
void check_linear_backward_parameters(enum device_precision precision);
void check_activation(enum device_precision precision);
void check_add(enum device_precision precision);
void check_dropout(enum device_precision precision);
void check_activation_backward(enum device_precision precision);
void check_activation_backward_bias(enum device_precision precision);
void check_layer_norm(enum device_precision precision);
void check_batch_norm(enum device_precision precision);
void check_softmax_cross_entropy(enum device_precision precision);
void check_binary_cross_entropy(enum device_precision precision);
void check_errors(enum device_precision precision);
void check_measure_gradient(enum device_precision precision);
void check_update(enum device_precision precision);
void check_store(enum device_precision precision);
void check_finite(enum device_precision precision);
void check_recording(enum device_precision precision);

/* f and its slope by what it saves, in float64. */
double activation_of(double x, enum device_activation f);
double slope_of(double saved, enum device_activation f);

#endif
