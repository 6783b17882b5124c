/* The data of a sweep: its files published as blobs, and remembered by their hashes, since a sweep that went
 * on with other data would compare what cannot be compared. */
#include "coordinator/server_state.h"

#include "base/files.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_SIZE 4096 /* of data.sha256: a line of some 80 bytes for each file */

/* One file into the blobs; `files` tells workers where it is. */
static int file_publish(struct server *server, const struct data_file *file, json_t *files, struct error *err)
{
    char sha256[SHA256_TEXT];
    int64_t size;
    if (blobs_import(&server->blobs, file->path, sha256, &size, err)) {
        return error_prefix(err, "publish the data");
    }
    const char *slash = strrchr(file->path, '/');
    json_t *blob = json_pack("{s:s, s:I, s:s}", "sha256", sha256, "bytes", (json_int_t)size, "name",
                             slash ? slash + 1 : file->path);
    if (json_object_set_new(files, file->key, blob) ||
        json_object_set_new(server->data_hashes, file->key, json_string(sha256))) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    return 0;
}

/* Takes the data's files into the blobs and names them in the train settings that workers get. */
static int data_publish(struct server *server, struct error *err)
{
    const struct data_file *file = server->settings.data_files;
    json_t *given = json_object_get(server->train, "data");
    json_t *data = json_is_object(given) ? json_copy(given) : json_object(), *files = json_object();
    int result = data && files ? 0 : error_set(err, ERROR_MEMORY, "out of memory");
    for (; result == 0 && file && file->key; file++) {
        result = file_publish(server, file, files, err);
    }
    if (result == 0 && json_object_size(files) > 0 &&
        (json_object_set(data, "files", files) || json_object_set(server->train, "data", data))) {
        result = error_set(err, ERROR_MEMORY, "out of memory");
    }
    json_decref(files);
    json_decref(data);
    return result;
}

int server_train_build(struct server *server, struct error *err)
{
    const struct spec *spec = server->settings.spec;
    /* The spec's top level is copied; what is below is shared and stays as it is. */
    server->train = spec->train ? json_copy(spec->train) : json_object();
    server->data_hashes = json_object();
    if (!server->train || !server->data_hashes) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    return data_publish(server, err);
}

/* DB.files/SWEEP/data.sha256: lines of a hash and what it is of. */
static char *memory_path(const struct server *server, const char *sweep_id, const char *file)
{
    struct text path;
    text_init(&path);
    text_printf(&path, "%s.files/%s%s", server->settings.db, sweep_id, file);
    return text_steal(&path);
}

/* A line without a key (as the first versions wrote it) is of `path`. */
static int line_take(json_t *hashes, char *line)
{
    char *key = strchr(line, ' ');
    if (key) {
        *key++ = '\0';
    }
    return *line ? json_object_set_new(hashes, key ? key : "path", json_string(line)) : 0;
}

json_t *server_data_read(const char *path, struct error *err)
{
    json_t *hashes = json_object();
    char *bytes = file_exists(path) ? file_read(path, MEMORY_SIZE, NULL, err) : strdup("");
    char *state = NULL;
    int result = hashes && bytes ? 0 : -1;
    for (char *line = bytes ? strtok_r(bytes, "\n", &state) : NULL; line && result == 0;
         line = strtok_r(NULL, "\n", &state)) {
        result = line_take(hashes, line);
    }
    free(bytes);
    if (result) {
        json_decref(hashes);
        if (err && err->code == ERROR_NONE) {
            error_set(err, ERROR_MEMORY, "out of memory");
        }
        return NULL;
    }
    return hashes;
}

int server_data_check(const struct server *server, const char *sweep_id, struct error *err)
{
    char *path = memory_path(server, sweep_id, "/data.sha256");
    if (!path) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    struct error own = {0};
    json_t *known = server_data_read(path, err ? err : &own);
    const struct data_file *file = server->settings.data_files;
    int result = known ? 0 : -1;
    for (; result == 0 && file && file->key; file++) {
        /* Killed before they were remembered, a sweep has not begun any trial either. */
        const char *before = json_get_string(known, file->key, NULL);
        if (before && strcmp(before, json_get_string(server->data_hashes, file->key, "")) != 0) {
            result =
                error_set(err, ERROR_USAGE,
                          "%s has changed since this sweep began; put back what it was, or choose another "
                          "--name",
                          file->path);
        }
    }
    json_decref(known);
    free(path);
    return result;
}

/* The lines of the memory; free() it. */
static char *memory_text(const struct server *server)
{
    struct text text;
    const char *key;
    json_t *hash;
    text_init(&text);
    json_object_foreach(server->data_hashes, key, hash)
    {
        text_printf(&text, "%s %s\n", json_string_value(hash), key);
    }
    return text_steal(&text);
}

int server_data_remember(const struct server *server, struct error *err)
{
    char *folder = memory_path(server, server->sweep_id, ""),
         *path = memory_path(server, server->sweep_id, "/data.sha256"), *lines = memory_text(server);
    int result = 0;
    if (!folder || !path || (!lines && json_object_size(server->data_hashes) > 0)) {
        result = error_set(err, ERROR_MEMORY, "out of memory");
    } else if (json_object_size(server->data_hashes) > 0 && !file_exists(path)) {
        result =
            folder_create(folder, 0700, err) || file_write(path, lines, strlen(lines), 0600, err) ? -1 : 0;
    }
    free(lines);
    free(folder);
    free(path);
    return result;
}
