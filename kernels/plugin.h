/* Backends in shared libraries of their own: librung_cuda.so (kind "cuda") and, in a build for tests,
 * librung_emulated.so (kind "emulated"). They are loaded when a device of their kind is asked for, from the
 * program's own folder, its ../lib/rung, or RUNG_PLUGINS; so one program serves machines with and without a
 * GPU. */
#ifndef RUNG_KERNELS_PLUGIN_H
#define RUNG_KERNELS_PLUGIN_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of device.h, lane_state.h or this file that a plugin could notice. */
#define DEVICE_PLUGIN_VERSION 2

struct device_description_of {
    char id[32];   /* "cuda:0" */
    char name[64]; /* "NVIDIA H200" */
    uint64_t memory_bytes;
    int major, minor; /* compute capability */
    bool bf16;        /* products in bf16 are native */
};

struct device_plugin {
    int version;      /* DEVICE_PLUGIN_VERSION */
    const char *kind; /* "cuda" */
    /* How many devices there are; -1: none can be used, err says why (no driver, too old, ...). Creates no
     * context. */
    int (*count)(struct error *err);
    int (*describe)(int number, struct device_description_of *description, struct error *err);
    struct device *(*create)(int number, struct error *err);
};

/* The one symbol a plugin exports. */
#define DEVICE_PLUGIN_SYMBOL "rung_device_plugin"
const struct device_plugin *rung_device_plugin(void);

#ifdef __cplusplus
}
#endif

/* The plugin of that kind, loaded once; stays loaded. ERROR_RESOURCE says where it was looked for and what
 * went wrong. */
const struct device_plugin *plugin_find(const char *kind, struct error *err);

#endif
