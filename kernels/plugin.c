/* Finds, loads and checks plugins. */
#include "kernels/plugin.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folders that are looked into, the first that has the file wins: what the caller of the program says
 * before what it came with. */
struct places {
    char path[3][PATH_MAX];
    int count;
};

static void place_add(struct places *places, const char *folder, const char *below, const char *kind)
{
    char *path = places->path[places->count];

    if (snprintf(path, PATH_MAX, "%s%s/librung_%s.so", folder, below, kind) < PATH_MAX)
        places->count++;
}

static void places_of(struct places *places, const char *kind)
{
    const char *named = getenv("RUNG_PLUGINS");
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    places->count = 0;
    if (named && *named)
        place_add(places, named, "", kind);
    if (length <= 0)
        return;
    program[length] = '\0';
    dirname(program);
    place_add(places, program, "", kind);
    place_add(places, program, "/../lib/rung", kind);
}

static int not_found(const struct places *places, const char *kind, struct error *err)
{
    char list[3 * 256] = "";
    size_t used = 0;

    for (int i = 0; i < places->count; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.200s", i ? ", " : "", places->path[i]);
    return error_set(err, ERROR_RESOURCE,
                     "this installation has no plugin for %s devices; looked for %s (RUNG_PLUGINS names "
                     "another folder)",
                     kind, list);
}

/* dlerror's text as ours: a library that is missing stands in front of the first colon. */
static int not_loaded(const char *path, const char *reason, struct error *err)
{
    static const char missing[] = ": cannot open shared object file";
    const char *found = strstr(reason, missing);

    if (found && strncmp(reason, path, strlen(path)) != 0)
        return error_set(
            err, ERROR_RESOURCE,
            "plugin %s needs %.*s, which is not on this machine; install it, or add its folder to "
            "LD_LIBRARY_PATH",
            path, (int)(found - reason), reason);
    return error_set(err, ERROR_RESOURCE, "plugin %s cannot be loaded: %s", path, reason);
}

static const struct device_plugin *plugin_load(const char *path, const char *kind, struct error *err)
{
    const struct device_plugin *(*entry)(void);
    const struct device_plugin *plugin;
    /* Opened again for each device: the system counts, and it is never closed, because neither CUDA nor what
     * it leaves running can be taken out of a process. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        not_loaded(path, dlerror(), err);
        return NULL;
    }
    *(void **)&entry = dlsym(library, DEVICE_PLUGIN_SYMBOL);
    plugin = entry ? entry() : NULL;
    if (plugin && plugin->version == DEVICE_PLUGIN_VERSION && strcmp(plugin->kind, kind) == 0)
        return plugin;
    if (!plugin)
        error_set(err, ERROR_RESOURCE, "%s is no plugin of rung: it has no %s", path, DEVICE_PLUGIN_SYMBOL);
    else if (plugin->version != DEVICE_PLUGIN_VERSION)
        error_set(err, ERROR_RESOURCE,
                  "plugin %s belongs to another build of rung (interface %d, this program has %d); install "
                  "both from one build",
                  path, plugin->version, DEVICE_PLUGIN_VERSION);
    else
        error_set(err, ERROR_RESOURCE, "plugin %s is for %s devices, not for %s", path, plugin->kind, kind);
    return NULL;
}

const struct device_plugin *plugin_find(const char *kind, struct error *err)
{
    struct places places;

    places_of(&places, kind);
    for (int i = 0; i < places.count; i++)
        if (access(places.path[i], F_OK) == 0)
            return plugin_load(places.path[i], kind, err);
    not_found(&places, kind, err);
    return NULL;
}
