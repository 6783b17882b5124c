/* The CPU backend: one thread, oneDNN for matrix products, loops of our own for the rest. */
#ifndef RUNG_KERNELS_CPU_CPU_H
#define RUNG_KERNELS_CPU_CPU_H

#include "kernels/device.h"

/* `number` is the part behind "cpu:"; it only names the device. */
struct device *cpu_create(const char *number, struct error *err);

#endif
