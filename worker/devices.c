/* Which devices a request gives: CPU threads, or what a child of this program found of GPUs. */
#include "worker/devices.h"

#include "base/files.h"
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACCEPTED "accepted are auto, cpu:N, cuda:all and cuda:0,1"

/* The emulated GPU, of builds for tests, has as many devices as this says. */
#define EMULATED_DEVICES "RUNG_EMULATED_DEVICES"

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_MEMORY, "devices: no memory");
}

void devices_free(struct device_description *devices, int count)
{
    for (int i = 0; devices && i < count; i++) {
        free(devices[i].id);
        free(devices[i].kind);
        free(devices[i].name);
        free(devices[i].fault);
    }
    free(devices);
}

static int device_fill(struct device_description *device, const char *id, const char *kind, const char *name)
{
    device->id = strdup(id);
    device->kind = strdup(kind);
    device->name = strdup(name);
    return device->id && device->kind && device->name ? 0 : -1;
}

/* ---- CPU threads ---- */

/* The memory this process may use, shared out evenly; what a device of that many could hold. */
static int64_t memory_each(int count)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (int64_t)pages * page / count : 0;
}

static int cpus_list(int count, struct device_description **devices, struct error *err)
{
    struct device_description *found = calloc((size_t)count, sizeof *found);
    int64_t memory = memory_each(count);
    for (int i = 0; found && i < count; i++) {
        char id[32];
        snprintf(id, sizeof id, "cpu:%d", i);
        if (device_fill(&found[i], id, "cpu", "cpu") != 0) {
            devices_free(found, count);
            found = NULL;
            break;
        }
        found[i].memory_bytes = memory;
    }
    *devices = found;
    return found ? count : no_memory(err);
}

static int cpus_all(struct device_description **devices, struct error *err)
{
    int count = cpu_count_available();
    return cpus_list(count < DEVICES_LIMIT ? count : DEVICES_LIMIT, devices, err);
}

/* A whole number from `least` to DEVICES_LIMIT at the beginning of `text`; *end is behind it. -1: none. */
static int number_read(const char *text, long least, const char **end)
{
    char *behind = NULL;
    errno = 0;
    long number = text[0] >= '0' && text[0] <= '9' ? strtol(text, &behind, 10) : -1;
    *end = behind;
    return errno == 0 && number >= least && number <= DEVICES_LIMIT ? (int)number : -1;
}

static int cpus_find(const char *request, struct device_description **devices, struct error *err)
{
    const char *end = NULL;
    int count = number_read(request + strlen("cpu:"), 1, &end);
    if (count < 0 || *end) {
        return error_set(err, ERROR_USAGE, "devices: found '%s'; cpu:N takes N from 1 to %d", request,
                         DEVICES_LIMIT);
    }
    return cpus_list(count, devices, err);
}

/* ---- GPUs ---- */

static int gpu_take(struct device_description *device, const json_t *row, const char *kind)
{
    if (device_fill(device, json_get_string(row, "id", ""), kind, json_get_string(row, "name", kind)) != 0) {
        return -1;
    }
    device->memory_bytes = json_get_integer(row, "memory_bytes", 0);
    device->bf16 = json_get_boolean(row, "bf16", false);
    return 0;
}

static int gpus_list(const json_t *rows, const char *kind, const int *numbers, int count,
                     struct device_description **devices, struct error *err)
{
    struct device_description *found = calloc((size_t)count + 1, sizeof *found);
    for (int i = 0; found && i < count; i++) {
        const json_t *row = json_array_get(rows, (size_t)numbers[i]);
        const char *fault = json_get_string(row, "fault", NULL);
        if (fault) {
            devices_free(found, count);
            return error_set(err, ERROR_RESOURCE, "devices: %s:%d cannot be used: %s", kind, numbers[i],
                             fault);
        }
        if (gpu_take(&found[i], row, kind) != 0) {
            devices_free(found, count);
            found = NULL;
        }
    }
    *devices = found;
    return found ? count : no_memory(err);
}

/* All that can be used. */
static int gpus_all(const json_t *rows, const char *kind, struct device_description **devices,
                    struct error *err)
{
    int numbers[DEVICES_LIMIT], count = 0;
    const char *fault = NULL;
    for (int i = 0; i < (int)json_array_size(rows) && count < DEVICES_LIMIT; i++) {
        const char *own = json_get_string(json_array_get(rows, (size_t)i), "fault", NULL);
        fault = own ? own : fault;
        numbers[count] = i;
        count += own == NULL;
    }
    if (count == 0) {
        return error_set(err, ERROR_RESOURCE, "%s", fault ? fault : "this machine has no GPU");
    }
    return gpus_list(rows, kind, numbers, count, devices, err);
}

/* "0,1" into numbers, each below `limit` and there once; their count, or -1. */
static int numbers_read(const char *text, int limit, int *numbers)
{
    int count = 0;
    do {
        const char *end = NULL;
        int number = number_read(text, 0, &end);
        for (int i = 0; i < count; i++) {
            number = numbers[i] == number ? -1 : number;
        }
        if (number < 0 || number >= limit || (*end && *end != ',') || (*end == ',' && !end[1])) {
            return -1;
        }
        numbers[count++] = number;
        text = *end ? end + 1 : end;
    } while (*text);
    return count;
}

static int cuda_choose(const char *request, const json_t *rows, struct device_description **devices,
                       struct error *err)
{
    const char *which = request + strlen("cuda:");
    int there = (int)json_array_size(rows), numbers[DEVICES_LIMIT];
    if (strcmp(which, "all") == 0) {
        return gpus_all(rows, "cuda", devices, err);
    }
    int count = numbers_read(which, there, numbers);
    if (count < 0) {
        return error_set(err, ERROR_USAGE,
                         "devices: found '%s'; cuda: takes all, or numbers from 0 to %d, each once (this "
                         "machine has %d)",
                         request, there - 1, there);
    }
    return gpus_list(rows, "cuda", numbers, count, devices, err);
}

static int emulated_find(const char *request, const char *program, struct device_description **devices,
                         struct error *err)
{
    const char *number = request + strlen("emulated:"), *end = NULL;
    int count = number_read(number, 1, &end);
    if (count < 0 || *end) {
        return error_set(err, ERROR_USAGE, "devices: found '%s'; emulated:N takes N from 1 to %d", request,
                         DEVICES_LIMIT);
    }
    setenv(EMULATED_DEVICES, number, 0); /* for the child that looks, and for the runners */
    json_t *rows = devices_ask(program, "emulated", err);
    int there = (int)json_array_size(rows), numbers[DEVICES_LIMIT];
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
    }
    int result = -1;
    if (rows && there < count) {
        error_set(err, ERROR_USAGE, "devices: found '%s', but " EMULATED_DEVICES " gives %d", request, there);
    } else if (rows) {
        result = gpus_list(rows, "emulated", numbers, count, devices, err);
    }
    json_decref(rows);
    return result;
}

static int cuda_find(const char *request, const char *program, struct device_description **devices,
                     struct error *err)
{
    const char *which = request + strlen("cuda:");
    int numbers[DEVICES_LIMIT];
    /* A slip of the pen is told whether or not there is a GPU. */
    if (strcmp(which, "all") != 0 && numbers_read(which, DEVICES_LIMIT, numbers) < 0) {
        return error_set(err, ERROR_USAGE, "devices: found '%s'; " ACCEPTED, request);
    }
    json_t *rows = devices_ask(program, "cuda", err);
    int result = rows ? cuda_choose(request, rows, devices, err) : -1;
    json_decref(rows);
    return result;
}

/* ---- auto ---- */

/* A machine has an NVIDIA device where its driver has made one of these; without any nobody waits for a
 * child that looks. The last is Windows' way to it. */
static bool has_nvidia(const char *root)
{
    static const char *const signs[] = {"/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia/version",
                                        "/dev/dxg"};
    char path[256];
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (snprintf(path, sizeof path, "%s%s", root, signs[i]) < (int)sizeof path && file_exists(path)) {
            return true;
        }
    }
    return false;
}

/* CUDA_VISIBLE_DEVICES empty, or beginning with a number below 0: no GPU, by somebody's wish. */
static bool are_hidden(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return visible && (!*visible || *visible == '-');
}

static int auto_find(const char *root, const char *program, struct device_description **devices,
                     struct error *why, struct error *err)
{
    if (!has_nvidia(root)) {
        snprintf(why->message, sizeof why->message, "training on the CPU: this machine has no NVIDIA device");
    } else if (are_hidden()) {
        snprintf(why->message, sizeof why->message,
                 "training on the CPU: CUDA_VISIBLE_DEVICES hides the GPUs");
    } else {
        int count = cuda_find("cuda:all", program, devices, why);
        if (count > 0) {
            return count;
        }
        error_prefix(why, "training on the CPU");
    }
    return cpus_all(devices, err);
}

int devices_find_below(const char *root, const char *request, const char *program,
                       struct device_description **devices, struct error *why, struct error *err)
{
    struct error own = {0};
    why = why ? why : &own;
    *why = (struct error){0};
    if (strcmp(request, "auto") == 0) {
        return auto_find(root, program, devices, why, err);
    }
    if (strncmp(request, "cpu:", 4) == 0) {
        return cpus_find(request, devices, err);
    }
    if (strncmp(request, "cuda:", 5) == 0) {
        return cuda_find(request, program, devices, err);
    }
    if (strncmp(request, "emulated:", 9) == 0) {
        return emulated_find(request, program, devices, err);
    }
    return error_set(err, ERROR_USAGE, "devices: found '%s'; " ACCEPTED, request);
}

int devices_find(const char *request, const char *program, struct device_description **devices,
                 struct error *why, struct error *err)
{
    return devices_find_below("", request, program, devices, why, err);
}

char *devices_request(const struct device_description *devices, int count)
{
    const char *kind = devices[0].kind;
    size_t size = strlen(kind) + 16 + (size_t)count * 8;
    char *text = malloc(size);
    if (!text) {
        return NULL;
    }
    if (strcmp(kind, "cuda") != 0) {
        snprintf(text, size, "%s:%d", kind, count);
        return text;
    }
    int used = snprintf(text, size, "cuda");
    for (int i = 0; i < count; i++) {
        const char *number = strchr(devices[i].id, ':');
        used +=
            snprintf(text + used, size - (size_t)used, "%c%.6s", i ? ',' : ':', number ? number + 1 : "0");
    }
    return text;
}
