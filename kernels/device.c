/* The kinds of devices, and the choice among them by name. */
#include "kernels/device.h"

#include "kernels/cpu/cpu.h"
#include "kernels/plugin.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#ifndef RUNG_REAL_DOUBLE
static struct device *create_by_plugin(const char *kind, const char *number, struct error *err)
{
    const struct device_plugin *plugin;
    char *end;
    unsigned long index = strtoul(number, &end, 10);

    if (number[0] < '0' || number[0] > '9' || *end || index > INT_MAX) {
        error_set(err, ERROR_RESOURCE, "device '%s:%s': what follows the colon is a number, from 0 on", kind,
                  number);
        return NULL;
    }
    plugin = plugin_find(kind, err);
    return plugin ? plugin->create((int)index, err) : NULL;
}
#endif

static struct device *create_cpu(const char *kind, const char *number, struct error *err)
{
    (void)kind;
    return cpu_create(number, err);
}

struct backend {
    const char *kind;
    struct device *(*create)(const char *kind, const char *number, struct error *err);
};

static const struct backend backends[] = {
    {"cpu", create_cpu},
#ifndef RUNG_REAL_DOUBLE /* plugins know float32 only */
    {"cuda", create_by_plugin},
    {"emulated", create_by_plugin},
#endif
    {NULL, NULL},
};

struct device *device_create(const char *name, struct error *err)
{
    const char *colon = strchr(name, ':');
    size_t size = colon ? (size_t)(colon - name) : strlen(name);

    for (const struct backend *backend = backends; backend->kind; backend++)
        if (strlen(backend->kind) == size && memcmp(backend->kind, name, size) == 0)
            return backend->create(backend->kind, colon ? colon + 1 : "0", err);
    error_set(err, ERROR_RESOURCE, "device '%s': there is no such kind of device; there are cpu and cuda",
              name);
    return NULL;
}

void device_destroy(struct device *device)
{
    if (device)
        device->operations->destroy(device);
}
