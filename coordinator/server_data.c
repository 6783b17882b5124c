/* The data of a sweep: published as a blob, and remembered by its hash, since a sweep that went on with other
 * data would compare what cannot be compared. */
#include "coordinator/server_state.h"

#include "base/files.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Takes the data file into the blobs and names it in the train settings that workers get. */
static int data_publish(struct server *server, struct error *err)
{
    const char *path = server->settings.data_path;
    int64_t size;
    if (!path) {
        return 0;
    }
    if (blobs_import(&server->blobs, path, server->data_sha256, &size, err)) {
        return error_prefix(err, "publish the data");
    }
    const char *slash = strrchr(path, '/');
    json_t *given = json_object_get(server->train, "data");
    json_t *data = json_is_object(given) ? json_copy(given) : json_object();
    if (json_object_set_new(data, "sha256", json_string(server->data_sha256)) ||
        json_object_set_new(data, "bytes", json_integer(size)) ||
        json_object_set_new(data, "name", json_string(slash ? slash + 1 : path)) ||
        json_object_set_new(server->train, "data", data)) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    return 0;
}

int server_train_build(struct server *server, struct error *err)
{
    const struct spec *spec = server->settings.spec;
    /* The spec's top level is copied; what is below is shared and stays as it is. */
    server->train = spec->train ? json_copy(spec->train) : json_object();
    if (!server->train) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    return data_publish(server, err);
}

/* DB.files/SWEEP/data.sha256 */
static char *memory_path(const struct server *server, const char *sweep_id, const char *file)
{
    struct text path;
    text_init(&path);
    text_printf(&path, "%s.files/%s%s", server->settings.db, sweep_id, file);
    return text_steal(&path);
}

int server_data_check(const struct server *server, const char *sweep_id, struct error *err)
{
    char *path = memory_path(server, sweep_id, "/data.sha256");
    if (!path) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    /* Killed before it was remembered, a sweep has not begun any trial either. */
    char *known = file_exists(path) ? file_read(path, SHA256_TEXT, NULL, err) : NULL;
    int result = 0;
    if (known && server->settings.data_path && strcmp(known, server->data_sha256) != 0) {
        result =
            error_set(err, ERROR_USAGE,
                      "%s has changed since this sweep began; put back what it was, or choose another --name",
                      server->settings.data_path);
    }
    free(known);
    free(path);
    return result;
}

int server_data_remember(const struct server *server, struct error *err)
{
    char *folder = memory_path(server, server->sweep_id, ""),
         *path = memory_path(server, server->sweep_id, "/data.sha256");
    int result = 0;
    if (!folder || !path) {
        result = error_set(err, ERROR_MEMORY, "out of memory");
    } else if (server->settings.data_path && !file_exists(path)) {
        result = folder_create(folder, 0700, err) ||
                         file_write(path, server->data_sha256, strlen(server->data_sha256), 0600, err)
                     ? -1
                     : 0;
    }
    free(folder);
    free(path);
    return result;
}
