/* The CPU backend's table: lanes are a loop, memory is the host's, products and loops do the work. */
#include "kernels/cpu/cpu.h"

#include "kernels/cpu/cpu_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cpu_destroy(struct device *device)
{
    struct cpu *cpu = cpu_of(device);

    for (int i = 0; i < SCRATCH_USES; i++)
        free(cpu->scratch[i].memory);
    products_destroy(cpu->products);
    free(cpu);
}

void cpu_fail(struct cpu *cpu, const struct error *err)
{
    if (cpu->failure.code == ERROR_NONE)
        cpu->failure = *err;
}

int cpu_synchronize(struct device *device, struct error *err)
{
    struct cpu *cpu = cpu_of(device);

    if (cpu->failure.code == ERROR_NONE)
        return 0;
    if (err)
        *err = cpu->failure;
    cpu->failure.code = ERROR_NONE;
    return -1;
}

/* Recording stays NULL: a call costs nothing here. */
static const struct device_operations cpu_operations = {
    .destroy = cpu_destroy,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .share = cpu_share,
    .unshare = cpu_unshare,
    .upload = cpu_transfer,
    .download = cpu_transfer,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .memory = cpu_memory,
    .synchronize = cpu_synchronize,
    .step_begin = cpu_step_begin,
    .step_end = cpu_step_end,
    .gather = cpu_gather,
    .gather_real = cpu_gather_real,
    .gather_integers = cpu_gather_integers,
    .embedding_forward = cpu_embedding_forward,
    .embedding_backward = cpu_embedding_backward,
    .linear_forward = cpu_linear_forward,
    .linear_backward_data = cpu_linear_backward_data,
    .linear_backward_parameters = cpu_linear_backward_parameters,
    .activation = cpu_activation,
    .add = cpu_add,
    .dropout = cpu_dropout,
    .activation_backward = cpu_activation_backward,
    .layer_norm = cpu_layer_norm,
    .layer_norm_backward = cpu_layer_norm_backward,
    .batch_norm = cpu_batch_norm,
    .batch_norm_apply = cpu_batch_norm_apply,
    .batch_norm_backward = cpu_batch_norm_backward,
    .softmax_cross_entropy = cpu_softmax_cross_entropy,
    .binary_cross_entropy = cpu_binary_cross_entropy,
    .squared_error = cpu_squared_error,
    .huber_error = cpu_huber_error,
    .measure_gradient = cpu_measure_gradient,
    .update = cpu_update,
    .store = cpu_store,
    .finite = cpu_finite,
};

/* "cpu/avx512_core", or "cpu/avx2+avx512" where oneDNN was told to use another instruction set than the loops
 * do. */
static void name_device(struct cpu *cpu)
{
    const char *products = products_instruction_set(), *loops = cpu->loops->instruction_set;
    bool same = strncmp(products, loops, strlen(loops)) == 0;

    snprintf(cpu->device.name, sizeof(cpu->device.name), "cpu/%s%s%s", products, same ? "" : "+",
             same ? "" : loops);
}

struct device *cpu_create(const char *number, struct error *err)
{
    struct cpu *cpu = calloc(1, sizeof(*cpu));

    if (!cpu) {
        error_set(err, ERROR_MEMORY, "no memory for the device");
        return NULL;
    }
    if (number[0] == '\0' || number[strspn(number, "0123456789")] != '\0') {
        error_set(err, ERROR_RESOURCE, "device 'cpu:%s': expected a number behind 'cpu:'", number);
        free(cpu);
        return NULL;
    }
    cpu->products = products_create(err);
    if (!cpu->products) {
        free(cpu);
        return NULL;
    }
    cpu->loops = cpu_loops_best();
    cpu->device.operations = &cpu_operations;
    cpu->device.precisions[DEVICE_FP32] = true;
    cpu->device.precisions[DEVICE_BF16] = products_have_bf16();
    cpu->device.evaluation_rows = DEVICE_EVALUATION_ROWS_CPU;
    name_device(cpu);
    return &cpu->device;
}
