/* What attempts printed, kept beside the database: DB.files/SWEEP/trial-000001/attempt-1/{stdout,stderr}.
 * Written after the commit and without fsync: a log is for people, and nothing else depends on it. */
#include "coordinator/server_state.h"

#include "base/files.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define KEPT_END (1 << 20) /* bytes of the beginning, and of the end, of a long text */

static bool bytes_write(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(fd, bytes, count);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        bytes += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool text_write(int fd, const char *text)
{
    static const char gap[] = "\n[...]\n";
    size_t size = strlen(text);
    if (size <= 2 * KEPT_END) {
        return bytes_write(fd, text, size);
    }
    return bytes_write(fd, text, KEPT_END) && bytes_write(fd, gap, sizeof gap - 1) &&
           bytes_write(fd, text + size - KEPT_END, KEPT_END);
}

static void file_keep(struct server *server, const struct text *folder, const char *name, const char *text)
{
    struct text path;
    if (!text || !*text) {
        return;
    }
    text_init(&path);
    text_printf(&path, "%s/%s", folder->data, name);
    int fd = path.data ? open(path.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0 || !text_write(fd, text)) {
        log_warning(server->log, "", "keep the log %s: %s", path.data ? path.data : name, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    text_release(&path);
}

static void log_keep(struct server *server, const struct attempt_log *log)
{
    struct error err = {0};
    struct text folder;
    if ((!log->out || !*log->out) && (!log->err || !*log->err)) {
        return;
    }
    text_init(&folder);
    text_printf(&folder, "%s.files/%s/trial-%06lld/attempt-%lld", server->settings.db, server->sweep_id,
                (long long)log->trial, (long long)log->attempt);
    if (!folder.data || folder_create(folder.data, 0700, &err)) {
        log_warning(server->log, "", "keep a log: %s", err.message);
    } else {
        file_keep(server, &folder, "stdout", log->out);
        file_keep(server, &folder, "stderr", log->err);
    }
    text_release(&folder);
}

void server_logs_keep(struct server *server)
{
    for (size_t i = 0; i < server->effects.log_count; i++) {
        log_keep(server, &server->effects.logs[i]);
    }
}
