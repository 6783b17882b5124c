/* `rung runner --describe KIND`: what a plugin's devices are, for an agent, which loads none itself. */
#include "worker/runner.h"

#include "base/json.h"
#include "kernels/plugin.h"

#include <stdio.h>
#include <stdlib.h>

/* One that cannot be asked is in its place all the same: the numbers of the others must not move. */
static json_t *describe_device(const struct device_plugin *plugin, int number)
{
    struct device_description_of device;
    struct error err = {0};
    if (plugin->describe(number, &device, &err) != 0) {
        return json_pack("{s:s}", "fault", err.message);
    }
    return json_pack("{s:s, s:s, s:I, s:b}", "id", device.id, "name", device.name, "memory_bytes",
                     (json_int_t)device.memory_bytes, "bf16", (int)device.bf16);
}

/* New array; NULL: err. */
static json_t *describe_all(const char *kind, struct error *err)
{
    const struct device_plugin *plugin = plugin_find(kind, err);
    int count = plugin ? plugin->count(err) : -1;
    json_t *devices = count >= 0 ? json_array() : NULL;
    for (int i = 0; devices && i < count; i++) {
        json_t *device = describe_device(plugin, i);
        if (json_array_append_new(devices, device) != 0) {
            error_set(err, ERROR_MEMORY, "no memory for the devices");
            json_decref(devices);
            devices = NULL;
        }
    }
    return devices;
}

int runner_describe(const char *kind)
{
    struct error err = {0};
    json_t *devices = describe_all(kind, &err);
    json_t *answer =
        devices ? json_pack("{s:o}", "devices", devices) : json_pack("{s:s}", "error", err.message);
    char *text = answer ? json_canonical(answer) : NULL;
    int printed = text ? puts(text) : EOF;
    free(text);
    json_decref(answer);
    return printed != EOF && fflush(stdout) == 0 && devices ? 0 : error_exit_code(&err);
}
