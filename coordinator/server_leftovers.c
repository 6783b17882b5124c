/* A blob stays when a row or a file beside the database names it. */
#include "coordinator/server_leftovers.h"

#include "base/text.h"
#include "coordinator/server_state.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Workers that ran something come back within their lease or lose it; four times that is plenty. */
#define WAIT_NS (120 * NS_PER_SECOND)
/* Between two searches: what a stopped trial sent and nobody will name is little, but sweeps may be long. */
#define PERIOD_NS (600 * NS_PER_SECOND)

void leftovers_release(struct leftovers *leftovers)
{
    free(leftovers->names);
    *leftovers = (struct leftovers){0};
}

static int hashes_keep(json_t *kept, const json_t *hashes)
{
    const char *key;
    json_t *hash;
    json_object_foreach((json_t *)hashes, key, hash)
    {
        if (json_object_set_new(kept, json_string_value(hash), json_true())) {
            return -1;
        }
    }
    return 0;
}

/* The data of one sweep, named in FOLDER/SWEEP/data.sha256. */
static int sweep_data_keep(json_t *kept, const char *folder, const char *sweep, struct error *err)
{
    struct text path;
    text_init(&path);
    text_printf(&path, "%s/%s/data.sha256", folder, sweep);
    char *file = text_steal(&path);
    json_t *hashes = file ? server_data_read(file, err) : NULL;
    int result = hashes ? hashes_keep(kept, hashes) : -1;
    json_decref(hashes);
    free(file);
    return result;
}

static int data_keep(const struct server *server, json_t *kept, struct error *err)
{
    struct text path;
    text_init(&path);
    text_printf(&path, "%s.files", server->settings.db);
    DIR *folder = path.data ? opendir(path.data) : NULL;
    int result =
        folder ? 0 : error_set(err, ERROR_RESOURCE, "look for the data of sweeps: %s", strerror(errno));
    for (struct dirent *entry; result == 0 && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] != '.') {
            result = sweep_data_keep(kept, path.data, entry->d_name, err);
        }
    }
    if (folder) {
        closedir(folder);
    }
    text_release(&path);
    return result;
}

/* Names of blobs, as the keys of an object; NULL: err. */
static json_t *kept_names(struct server *server, struct error *err)
{
    json_t *kept = store_checkpoints(server->store, err);
    if (kept && (data_keep(server, kept, err) || hashes_keep(kept, server->data_hashes))) {
        json_decref(kept);
        return NULL;
    }
    return kept;
}

struct search {
    struct leftovers *leftovers;
    const json_t *kept;
};

static int name_take(void *user, const char *sha256)
{
    struct search *search = user;
    struct leftovers *leftovers = search->leftovers;
    if (json_object_get(search->kept, sha256)) {
        return 0;
    }
    if (leftovers->count == leftovers->capacity) {
        size_t capacity = leftovers->capacity ? 2 * leftovers->capacity : 16;
        void *names = realloc(leftovers->names, capacity * sizeof *leftovers->names);
        if (!names) {
            return -1;
        }
        leftovers->names = names;
        leftovers->capacity = capacity;
    }
    memcpy(leftovers->names[leftovers->count++], sha256, SHA256_TEXT);
    return 0;
}

static void blob_delete(struct server *server, const char *sha256)
{
    struct error err = {0};
    if (server->blob_server) {
        blob_server_delete(server->blob_server, sha256);
    } else if (blobs_delete(&server->blobs, sha256, &err)) {
        log_warning(server->log, "", "%s", err.message);
    }
}

void server_unneeded_delete(struct server *server)
{
    const struct effects *effects = &server->effects;
    struct error err = {0};
    json_t *kept = NULL;
    for (size_t i = 0; i < effects->unneeded_count; i++) {
        const char *sha256 = effects->unneeded_blobs[i];
        bool asks = json_object_get(server->kept_before, sha256) != NULL;
        if (asks && !kept && !(kept = kept_names(server, &err))) {
            log_warning(server->log, "", "checkpoints that nobody needs stay: %s", err.message);
            return;
        }
        if (!asks || !json_object_get(kept, sha256)) {
            blob_delete(server, sha256);
        }
    }
    json_decref(kept);
}

int server_leftovers_find(struct server *server, struct error *err)
{
    leftovers_release(&server->leftovers);
    json_t *kept = kept_names(server, err);
    struct search search = {&server->leftovers, kept};
    if (!server->kept_before) {
        server->kept_before = json_incref(kept);
    }
    int result = kept ? blobs_each(&server->blobs, name_take, &search, err) : -1;
    json_decref(kept);
    server->leftovers.next_ns = clock_now().monotonic_ns + PERIOD_NS;
    server->leftovers.due_ns = engine_is_quiet(server->engine) ? 0 : clock_now().monotonic_ns + WAIT_NS;
    return result ? -1 : server_leftovers_remove(server, err);
}

int server_leftovers_remove(struct server *server, struct error *err)
{
    struct leftovers *leftovers = &server->leftovers;
    int64_t now_ns = clock_now().monotonic_ns;
    bool due = engine_has_ended(server->engine) || now_ns >= leftovers->due_ns;
    if (leftovers->count == 0 || !due) {
        return leftovers->count == 0 && now_ns >= leftovers->next_ns ? server_leftovers_find(server, err) : 0;
    }
    json_t *kept = kept_names(server, err);
    if (!kept) {
        return -1;
    }
    for (size_t i = 0; i < leftovers->count; i++) {
        if (!json_object_get(kept, leftovers->names[i])) {
            blob_delete(server, leftovers->names[i]);
        }
    }
    json_decref(kept);
    free(leftovers->names);
    leftovers->names = NULL;
    leftovers->count = leftovers->capacity = 0;
    return 0;
}

void server_leftovers_end(struct server *server)
{
    struct error err = {0};
    blob_server_destroy(server->blob_server); /* nobody is left to name what may still come */
    server->blob_server = NULL;
    if (server_leftovers_find(server, &err) || blobs_remove_partial(&server->blobs, &err)) {
        log_warning(server->log, "", "checkpoints that nobody needs stay: %s", err.message);
    }
}
