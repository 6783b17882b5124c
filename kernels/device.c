/* The backends this build knows, and the choice among them by name. */
#include "kernels/device.h"

#include "kernels/cpu/cpu.h"

#include <string.h>

struct backend {
    const char *kind;
    struct device *(*create)(const char *number, struct error *err);
};

static const struct backend backends[] = {
    {"cpu", cpu_create},
    {NULL, NULL},
};

struct device *device_create(const char *name, struct error *err)
{
    const char *colon = strchr(name, ':');
    size_t size = colon ? (size_t)(colon - name) : strlen(name);

    for (const struct backend *backend = backends; backend->kind; backend++)
        if (strlen(backend->kind) == size && memcmp(backend->kind, name, size) == 0)
            return backend->create(colon ? colon + 1 : "0", err);
    error_set(err, ERROR_RESOURCE, "device '%s': this build has no such kind of device; it has cpu", name);
    return NULL;
}

void device_destroy(struct device *device)
{
    if (device)
        device->operations->destroy(device);
}
