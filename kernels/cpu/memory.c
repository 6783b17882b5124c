/* Memory of the CPU backend: the host's. */
#include "kernels/cpu/cpu_internal.h"

#include <stdlib.h>
#include <string.h>

static size_t rounded_up(size_t bytes)
{
    size_t rounded = (bytes + DEVICE_ALIGNMENT - 1) / DEVICE_ALIGNMENT * DEVICE_ALIGNMENT;
    return rounded ? rounded : DEVICE_ALIGNMENT;
}

int cpu_allocate(struct device *device, void **memory, size_t bytes, struct error *err)
{
    size_t rounded = rounded_up(bytes);

    (void)device;
    if (rounded < bytes || posix_memalign(memory, DEVICE_ALIGNMENT, rounded) != 0)
        return error_set(err, ERROR_MEMORY, "no memory for %zu bytes", bytes);
    memset(*memory, 0, rounded);
    return 0;
}

void cpu_release(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

int cpu_share(struct device *device, const void **memory, const void *host, size_t bytes, struct error *err)
{
    (void)device;
    (void)bytes;
    (void)err;
    *memory = host;
    return 0;
}

void cpu_unshare(struct device *device, const void *memory)
{
    (void)device;
    (void)memory;
}

void cpu_transfer(struct device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    memcpy(to, from, bytes);
}

void cpu_copy(struct device *device, struct lanes lanes, void *to, const void *from, size_t bytes)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++)
        memcpy(LANE(to, l), LANE_CONST(from, l), bytes);
}

void cpu_zero(struct device *device, struct lanes lanes, void *memory, size_t bytes)
{
    (void)device;
    for (int64_t l = 0; l < lanes.count; l++)
        memset(LANE(memory, l), 0, bytes);
}

void cpu_memory(struct device *device, size_t *available, size_t *total)
{
    (void)device;
    *available = *total = 0;
}

real *cpu_scratch(struct cpu *cpu, enum scratch_use use, int64_t count)
{
    struct scratch *scratch = &cpu->scratch[use];
    size_t bytes = rounded_up((size_t)count * sizeof(real));

    if (bytes > scratch->bytes) {
        free(scratch->memory);
        *scratch = (struct scratch){0};
        if (posix_memalign(&scratch->memory, DEVICE_ALIGNMENT, bytes) != 0) {
            struct error err;
            error_set(&err, ERROR_MEMORY, "no memory for %zu bytes of scratch", bytes);
            cpu_fail(cpu, &err);
            scratch->memory = NULL;
            return NULL;
        }
        scratch->bytes = bytes;
    }
    return scratch->memory;
}
