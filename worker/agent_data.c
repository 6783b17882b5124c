/* The sweep's data on this machine: every file of it, by its hash, kept for the sweeps to come. */
#include "worker/agent_private.h"

#include <stdlib.h>
#include <string.h>

/* Two settings may name one file. */
static const struct data_fetch *fetch_same(const struct agent *agent, const char *sha256)
{
    for (size_t i = 0; i < agent->data_count; i++) {
        if (strcmp(agent->data[i].sha256, sha256) == 0) {
            return &agent->data[i];
        }
    }
    return NULL;
}

static int file_fetch(struct agent *agent, const char *key, const char *sha256, struct error *err)
{
    if (!sha256 || !sha256_is_valid(sha256)) {
        return error_set(err, ERROR_PROTOCOL, "welcome: train.data.files.%.50s has no hash", key);
    }
    if (agent->data_count == DATA_FILES || strlen(key) >= sizeof agent->data->key) {
        return error_set(err, ERROR_PROTOCOL, "welcome: train.data.files: unexpected %.50s", key);
    }
    const struct data_fetch *same = fetch_same(agent, sha256);
    struct data_fetch *file = &agent->data[agent->data_count];
    *file = (struct data_fetch){.path = scratch_blob_path(&agent->scratch, sha256)};
    memcpy(file->key, key, strlen(key) + 1);
    memcpy(file->sha256, sha256, SHA256_TEXT);
    if (file->path && !same) {
        file->transfer = transfers_fetch(agent->transfers, sha256, file->path, true);
    }
    agent->data_count += file->path != NULL;
    return file->path && (same || file->transfer)
               ? 0
               : error_set(err, ERROR_MEMORY, "no memory to fetch the data");
}

int agent_fetch_data(struct agent *agent, const json_t *train, struct error *err)
{
    const char *key;
    json_t *file;
    int result = 0;
    json_object_foreach(json_object_get(json_object_get(train, "data"), "files"), key, file)
    {
        if (result == 0) {
            result = file_fetch(agent, key, json_get_string(file, "sha256", NULL), err);
        }
    }
    agent->data_ready = result == 0 && agent->data_count == 0; /* a sweep without data of its own */
    return result;
}

json_t *agent_data_paths(const struct agent *agent)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < agent->data_count; i++) {
        json_object_set_new(paths, agent->data[i].key, json_string(agent->data[i].path));
    }
    return paths;
}

void agent_forget_data(struct agent *agent)
{
    for (size_t i = 0; i < agent->data_count; i++) {
        if (agent->data[i].transfer) {
            transfers_cancel(agent->transfers, agent->data[i].transfer);
        }
        free(agent->data[i].path);
    }
    agent->data_count = 0;
    agent->data_ready = false;
}

static bool data_is_complete(const struct agent *agent)
{
    for (size_t i = 0; i < agent->data_count; i++) {
        if (agent->data[i].transfer) {
            return false;
        }
    }
    return true;
}

void agent_data_fetched(struct agent *agent, const struct transfer_result *result)
{
    struct data_fetch *file = NULL;
    for (size_t i = 0; i < agent->data_count; i++) {
        file = agent->data[i].transfer == result->id ? &agent->data[i] : file;
    }
    if (!file) {
        return;
    }
    file->transfer = 0;
    if (!result->succeeded) {
        struct error err = result->error;
        err.code = ERROR_RESOURCE;
        agent_fail(agent, &err);
        return;
    }
    agent->data_ready = data_is_complete(agent);
    for (int i = 0; i < agent->slot_count && agent->data_ready; i++) {
        if (agent->slots[i].state == SLOT_STARTING) {
            slot_send_sweep(agent, &agent->slots[i]);
        }
    }
}
