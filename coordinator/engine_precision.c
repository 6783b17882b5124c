/* `precision: auto`, decided once for a sweep, so that all its trials are of one precision: by the devices of
 * the first worker that says hello, never by timing. */
#include "coordinator/engine_state.h"

#include <stdio.h>
#include <string.h>

static bool is_auto(const json_t *train)
{
    return strcmp(json_get_string(train, "precision", ""), "auto") == 0;
}

/* The setting itself, or a point of the space. */
static bool auto_is_used(const struct engine_settings *settings)
{
    bool searched = false;
    for (size_t i = 0; settings->space && i < settings->space->count; i++)
        searched = searched || strcmp(settings->space->parameters[i].name, "precision") == 0;
    return is_auto(settings->train) || searched;
}

static void warn_of_emulation(struct engine *engine, const struct message *hello)
{
    const struct device_description *device = &hello->devices[0];
    if (strcmp(engine->sweep.precision, "bf16") == 0 && !device->bf16)
        engine_note(engine,
                    "worker %s: trains in bf16 like the others of this sweep, which is not native to its %s",
                    hello->worker, device_description_is_gpu(device) && device->name ? device->name : "CPUs");
}

void precision_decide(struct engine *engine, const struct message *hello)
{
    if (hello->device_count == 0 || !auto_is_used(&engine->settings))
        return;
    if (*engine->sweep.precision) {
        warn_of_emulation(engine, hello);
        return;
    }
    const struct device_description *device = &hello->devices[0];
    bool half = device_description_is_gpu(device) && device->bf16;
    snprintf(engine->sweep.precision, sizeof(engine->sweep.precision), "%s", half ? "bf16" : "fp32");
    engine_keep_sweep(engine);
}

json_t *precision_train(struct engine *engine)
{
    json_t *train = (json_t *)engine->settings.train;
    if (!train || !*engine->sweep.precision)
        return json_incref(train);
    train = json_copy(train);
    if (!train || json_object_set_new(train, "auto_precision", json_string(engine->sweep.precision)) < 0)
        engine_fail_memory(engine);
    return train;
}
