/* Who may talk: the key files of one user, made on first use, and the list of who is authorized. */
#include "wire/security.h"

#include "base/files.h"
#include "wire/key_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define AUTHORIZED_LIMIT (4u << 20) /* bytes: some 100,000 keys */
#define COMMENT_LIMIT 200

void security_release(struct security *security)
{
    free(security->allowed);
    free(security->authorized);
    sodium_memzero(security, sizeof *security);
}

/* Reads a key file, making it when it is missing. *made: this process made it. */
static int key_pair_ensure(const char *path, struct key_pair *pair, bool *made, struct error *err)
{
    *made = false;
    if (!file_exists(path)) {
        struct error written = {0};
        if (key_pair_make(pair, err)) {
            return -1;
        }
        *made = key_pair_write(path, pair, &written) == 0;
        if (!*made && !file_exists(path)) {
            error_set(err, written.code, "%s", written.message);
            return -1;
        }
    }
    return key_pair_read(path, pair, err);
}

static size_t line_length(const char *line)
{
    return strcspn(line, "\n");
}

/* Copies the key of a line of `authorized`: 1 found, 0 blank or comment, -1 malformed. */
static int line_key(const char *line, size_t length, char key[KEY_SIZE])
{
    size_t start = 0;
    while (start < length && (line[start] == ' ' || line[start] == '\t')) {
        start++;
    }
    /* '#' is a Z85 digit too: a line is a comment only when it begins with "# " or is no key. */
    size_t end = start;
    while (end < length && line[end] != ' ' && line[end] != '\t' && line[end] != '\r') {
        end++;
    }
    if (end - start == KEY_SIZE - 1) {
        memcpy(key, line + start, KEY_SIZE - 1);
        key[KEY_SIZE - 1] = '\0';
        if (key_is_valid(key)) {
            return 1;
        }
    }
    return end == start || line[start] == '#' ? 0 : -1;
}

static bool list_holds(const char *text, const char *key)
{
    for (const char *line = text; *line != '\0';) {
        char found[KEY_SIZE];
        size_t length = line_length(line);
        if (line_key(line, length, found) == 1 && strcmp(found, key) == 0) {
            return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

static void authorized_stamp(const char *path, int64_t *mtime_ns, int64_t *size)
{
    struct stat status = {0};
    bool known = stat(path, &status) == 0;
    *mtime_ns = known ? (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec : -1;
    *size = known ? (int64_t)status.st_size : -1;
}

/* On failure the security's list is as it was. */
static int allowed_read(struct security *security, const char *path, struct error *err)
{
    char(*allowed)[KEY_SIZE] = NULL;
    size_t count = 0;
    char *text = NULL;
    if (file_check_private(path, 022, err) || !(text = file_read(path, AUTHORIZED_LIMIT, NULL, err))) {
        return -1;
    }
    size_t lines = 1;
    for (const char *at = text; *at != '\0'; at++) {
        lines += *at == '\n';
    }
    authorized_stamp(path, &security->authorized_mtime_ns, &security->authorized_size);
    allowed = calloc(lines, sizeof *allowed);
    if (!allowed) {
        free(text);
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    size_t number = 1;
    int result = 0;
    for (const char *line = text; *line != '\0' && result == 0; number++) {
        size_t length = line_length(line);
        int kind = line_key(line, length, allowed[count]);
        if (kind < 0) {
            result =
                error_set(err, ERROR_USAGE, "%s:%zu: expected a public key of 40 characters", path, number);
        }
        count += kind == 1;
        line += length + (line[length] == '\n');
    }
    free(text);
    if (result) {
        free(allowed);
        return result;
    }
    free(security->allowed);
    security->allowed = allowed;
    security->allowed_count = count;
    return 0;
}

int security_refresh(struct security *security, struct error *err)
{
    int64_t mtime_ns, size;
    if (!security->authorized) {
        return 0;
    }
    authorized_stamp(security->authorized, &mtime_ns, &size);
    if (mtime_ns == security->authorized_mtime_ns && size == security->authorized_size) {
        return 0;
    }
    return allowed_read(security, security->authorized, err);
}

static int line_append(int fd, const char *text, const char *public_key, const char *comment)
{
    char line[KEY_SIZE + COMMENT_LIMIT + 8], cleaned[COMMENT_LIMIT + 1] = "";
    snprintf(cleaned, sizeof cleaned, "%s", comment ? comment : "");
    for (char *at = cleaned; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20) {
            *at = ' ';
        }
    }
    bool open_line = *text != '\0' && text[strlen(text) - 1] != '\n';
    int size = snprintf(line, sizeof line, "%s%s%s%s\n", open_line ? "\n" : "", public_key,
                        cleaned[0] != '\0' ? " # " : "", cleaned);
    return write(fd, line, (size_t)size) == size && fsync(fd) == 0 ? 0 : -1;
}

static int authorized_add(const char *path, const char *public_key, const char *comment, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        int reason = errno;
        if (fd >= 0) {
            close(fd);
        }
        return error_set(err, ERROR_RESOURCE, "%s: %s", path, strerror(reason));
    }
    int result = 0;
    char *text = file_read(path, AUTHORIZED_LIMIT, NULL, err);
    if (!text) {
        result = -1;
    } else if (!list_holds(text, public_key) && line_append(fd, text, public_key, comment)) {
        result = error_set(err, ERROR_RESOURCE, "%s: %s", path, strerror(errno));
    }
    free(text);
    close(fd);
    return result;
}

/* The paths of one folder's files. */
struct key_files {
    char *folder, *coordinator, *coordinator_public, *worker, *authorized;
};

static void key_files_release(struct key_files *files)
{
    free(files->folder);
    free(files->coordinator);
    free(files->coordinator_public);
    free(files->worker);
    free(files->authorized);
}

static int key_files_init(struct key_files *files, const char *folder, struct error *err)
{
    memset(files, 0, sizeof *files);
    files->folder = folder ? strdup(folder) : path_config_folder();
    if (!files->folder) {
        return error_set(err, ERROR_RESOURCE, "no home folder for keys: set HOME or XDG_CONFIG_HOME");
    }
    files->coordinator = path_join(files->folder, "coordinator.key");
    files->coordinator_public = path_join(files->folder, COORDINATOR_PUBLIC_FILE);
    files->worker = path_join(files->folder, "worker.key");
    files->authorized = path_join(files->folder, "authorized");
    if (!files->coordinator || !files->coordinator_public || !files->worker || !files->authorized) {
        key_files_release(files);
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    if (folder_create(files->folder, 0700, err)) {
        key_files_release(files);
        return -1;
    }
    return 0;
}

/* Makes whatever is missing, so that it does not matter which of the user's programs starts first. */
static int keys_ensure(const struct key_files *files, struct key_pair *coordinator, struct key_pair *worker,
                       struct error *err)
{
    bool made;
    if (key_pair_ensure(files->coordinator, coordinator, &made, err) ||
        key_pair_ensure(files->worker, worker, &made, err)) {
        return -1;
    }
    /* A list without this user's own worker was edited on purpose; a missing list was not. */
    if (made || !file_exists(files->authorized)) {
        return authorized_add(files->authorized, worker->public_key, "this user's worker.key", err);
    }
    return 0;
}

int security_for_coordinator(struct security *security, const char *folder, struct error *err)
{
    struct key_files files;
    struct key_pair worker;
    memset(security, 0, sizeof *security);
    if (key_files_init(&files, folder, err)) {
        return error_prefix(err, "keys");
    }
    int result = keys_ensure(&files, &security->own, &worker, err);
    if (result == 0) {
        result = allowed_read(security, files.authorized, err);
        security->authorized = files.authorized;
        files.authorized = NULL;
    }
    sodium_memzero(&worker, sizeof worker);
    key_files_release(&files);
    if (result) {
        security_release(security);
        return error_prefix(err, "keys");
    }
    return 0;
}

/* A folder handed over by `rung keygen` names its coordinator in a file of one key and holds no secret of it.
 */
static int server_key_read(const char *path, char key[KEY_SIZE], struct error *err)
{
    char *text = file_read(path, AUTHORIZED_LIMIT, NULL, err);
    if (!text) {
        return -1;
    }
    bool found = line_key(text, line_length(text), key) == 1;
    free(text);
    return found ? 0 : error_set(err, ERROR_USAGE, "%s: expected a public key of 40 characters", path);
}

int security_for_client(struct security *security, const char *folder, const char *server_key,
                        struct error *err)
{
    struct key_files files;
    struct key_pair coordinator = {0};
    memset(security, 0, sizeof *security);
    if (server_key && !key_is_valid(server_key)) {
        return error_set(err, ERROR_USAGE, "\"%s\" is not a public key (40 characters of Z85)", server_key);
    }
    if (key_files_init(&files, folder, err)) {
        return error_prefix(err, "keys");
    }
    int result;
    bool made;
    if (file_exists(files.coordinator_public)) {
        result = server_key_read(files.coordinator_public, coordinator.public_key, err);
        if (result == 0) {
            result = key_pair_ensure(files.worker, &security->own, &made, err);
        }
    } else {
        result = keys_ensure(&files, &coordinator, &security->own, err);
    }
    memcpy(security->server_key, server_key ? server_key : coordinator.public_key, KEY_SIZE);
    sodium_memzero(&coordinator, sizeof coordinator);
    key_files_release(&files);
    if (result) {
        security_release(security);
        return error_prefix(err, "keys");
    }
    return 0;
}

int security_authorize(const char *folder, const char *public_key, const char *comment, struct error *err)
{
    struct key_files files;
    if (!key_is_valid(public_key)) {
        return error_set(err, ERROR_USAGE, "\"%s\" is not a public key (40 characters of Z85)", public_key);
    }
    if (key_files_init(&files, folder, err)) {
        return error_prefix(err, "keys");
    }
    int result = authorized_add(files.authorized, public_key, comment, err);
    key_files_release(&files);
    return result;
}
