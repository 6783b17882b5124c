/* What the points of a sweep take on a device: the smallest and the largest of those that are looked at. */
#include "cli/check_report.h"

#include "kernels/device.h"
#include "worker/training/settings.h"
#include "worker/training/trainer.h"

#include <string.h>
#include <unistd.h>

#define POINTS 32 /* looked at: as many as are tried before a sweep begins */

static double machine_memory(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* What `auto` would come to if this machine's device were the first to join. */
static enum precision auto_precision(const struct device_description *device)
{
    return device_description_is_gpu(device) && device->bf16 ? PRECISION_BF16 : PRECISION_FP32;
}

static const char *const precision_names[] = {[PRECISION_AUTO] = "auto",
                                              [PRECISION_FP32] = "fp32",
                                              [PRECISION_TF32] = "tf32",
                                              [PRECISION_BF16] = "bf16",
                                              [PRECISION_FP16] = "fp16"};

/* Of one point; NULL: it cannot be trained, which is told elsewhere. New reference. */
static json_t *point_plan(const struct spec *spec, const struct dataset *dataset,
                          const struct device_description *device, json_t *point)
{
    struct training_settings settings;
    if (training_settings_read(&settings, spec->train, point, NULL) != 0) {
        return NULL;
    }
    settings.objective_best = spec->metric && spec->objective == OBJECTIVE_BEST;
    if (settings.precision == PRECISION_AUTO) {
        settings.precision = auto_precision(device);
    }
    /* Every seed of a point has its own memory. A CPU's trials take what the settings say, if the machine has
     * it. */
    int64_t replicates = settings.replicates > 1 ? settings.replicates : 1;
    int64_t evaluation_rows =
        device_description_is_gpu(device) ? DEVICE_EVALUATION_ROWS_GPU : DEVICE_EVALUATION_ROWS_CPU;
    size_t available = device_description_is_gpu(device) ? (size_t)(device->memory_bytes / replicates) : 0;
    json_t *plan = trainer_plan(&settings, dataset, evaluation_rows, available, NULL);
    if (plan && !device_description_is_gpu(device) &&
        json_get_number(plan, "bytes", 0) * (double)replicates > machine_memory()) {
        json_object_set_new(plan, "fits", json_false());
    }
    if (plan) {
        json_object_set_new(plan, "precision", json_string(precision_names[settings.precision]));
        json_object_set_new(plan, "replicates", json_integer((json_int_t)replicates));
        json_object_set(plan, "point", point);
    }
    return plan;
}

/* By memory, then by parameters. */
static bool is_larger(const json_t *a, const json_t *b)
{
    int64_t left = json_get_integer(a, "bytes", 0), right = json_get_integer(b, "bytes", 0);
    return left != right ? left > right
                         : json_get_integer(a, "parameters", 0) > json_get_integer(b, "parameters", 0);
}

static void keep(json_t **kept, json_t *plan)
{
    json_decref(*kept);
    *kept = json_incref(plan);
}

/* Does the device compute in it by itself? Of GPUs only bf16 is a question. */
static bool is_native(enum precision precision, const struct device_description *device,
                      const struct device *cpu)
{
    if (device_description_is_gpu(device)) {
        return precision != PRECISION_BF16 || device->bf16;
    }
    return precision == PRECISION_FP32 ||
           (precision == PRECISION_BF16 && cpu && cpu->precisions[DEVICE_BF16]);
}

/* `used`: by the points that were looked at. -1 without memory. */
static int note_emulated(json_t *notes, const bool *used, const struct device_description *device)
{
    struct error err;
    struct device *cpu = device_description_is_gpu(device) ? NULL : device_create("cpu:0", &err);
    int status = 0;
    for (int i = PRECISION_AUTO + 1; i < (int)(sizeof precision_names / sizeof *precision_names); i++) {
        char message[200];
        if (!used[i] || is_native(i, device, cpu)) {
            continue;
        }
        snprintf(message, sizeof message,
                 "%s is emulated on %s: its results, but slower than fp32, not faster", precision_names[i],
                 device_description_is_gpu(device) ? device->name : "this machine's CPU");
        status |=
            json_array_append_new(notes, json_pack("{s:s, s:i, s:i, s:s, s:s}", "level", "note", "line", 0,
                                                   "column", 0, "key", "precision", "message", message));
    }
    device_destroy(cpu);
    return status;
}

static enum precision precision_of(const json_t *plan)
{
    int i = PRECISION_AUTO + 1, count = (int)(sizeof precision_names / sizeof *precision_names);
    while (i + 1 < count && strcmp(precision_names[i], json_get_string(plan, "precision", "")) != 0) {
        i++;
    }
    return i;
}

int check_memory(json_t *report, const struct spec *spec, const struct dataset *dataset,
                 const struct device_description *device)
{
    json_t *smallest = NULL, *largest = NULL;
    bool fits = true, used[sizeof precision_names / sizeof *precision_names] = {false};
    for (int64_t number = 1; number <= POINTS; number++) {
        json_t *point = spec->sampler->propose(&spec->space, spec->seed, number);
        if (!point) {
            break;
        }
        json_t *plan = point_plan(spec, dataset, device, point);
        if (plan && (!smallest || is_larger(smallest, plan))) {
            keep(&smallest, plan);
        }
        if (plan && (!largest || is_larger(plan, largest))) {
            keep(&largest, plan);
        }
        fits = fits && (!plan || json_get_boolean(plan, "fits", true));
        used[plan ? precision_of(plan) : PRECISION_AUTO] = true;
        json_decref(plan);
        json_decref(point);
    }
    json_t *plan =
        json_pack("{s:{s:s, s:s, s:s, s:I}, s:o?, s:o?, s:b}", "device", "id", device->id, "kind",
                  device->kind, "name", device->name, "memory_bytes", (json_int_t)device->memory_bytes,
                  "smallest", smallest, "largest", largest, "fits", (int)fits);
    int status = note_emulated(json_object_get(report, "notes"), used, device);
    return json_object_set_new(report, "plan", plan) == 0 ? status : -1;
}
