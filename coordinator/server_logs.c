/* A queue between the server's loop and the thread that writes. */
#include "coordinator/server_logs.h"

#include "base/files.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_END (1 << 20) /* bytes of the beginning, and of the end, of a long text */
#define QUEUE_LIMIT                                                                                          \
    4096 /* logs; the built-in trainer's are some hundred bytes each, others at most 64 KiB                  \
          */

struct log_keeper {
    char *folder; /* DB.files/SWEEP */
    const struct log *log;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    struct attempt_log queue[QUEUE_LIMIT]; /* a ring */
    size_t first, count;
    bool ends, lags;
};

/* ---- writing, in the thread ---- */

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

static void file_keep(const struct log_keeper *keeper, const char *folder, const char *name, const char *text)
{
    if (!text || !*text) {
        return;
    }
    char *path = path_join(folder, name);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0 || !text_write(fd, text)) {
        log_warning(keeper->log, "", "keep a log: %s/%s: %s", folder, name, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
}

/* The last two folders are nearly always new, those above are nearly always there. */
static int folders_make(const char *trial, const char *attempt, struct error *err)
{
    if ((mkdir(trial, 0700) == 0 || errno == EEXIST) && (mkdir(attempt, 0700) == 0 || errno == EEXIST)) {
        return 0;
    }
    return folder_create(attempt, 0700, err);
}

static void log_keep(const struct log_keeper *keeper, const struct attempt_log *log)
{
    struct error err = {0};
    struct text trial, attempt;
    text_init(&trial);
    text_init(&attempt);
    text_printf(&trial, "%s/trial-%06lld", keeper->folder, (long long)log->trial);
    text_printf(&attempt, "%s/attempt-%lld", trial.data ? trial.data : "", (long long)log->attempt);
    if (trial.failed || attempt.failed || folders_make(trial.data, attempt.data, &err)) {
        log_warning(keeper->log, "", "keep a log: %s", err.message[0] ? err.message : "out of memory");
    } else {
        file_keep(keeper, attempt.data, "stdout", log->out);
        file_keep(keeper, attempt.data, "stderr", log->err);
    }
    text_release(&trial);
    text_release(&attempt);
}

static void log_free(struct attempt_log *log)
{
    free(log->out);
    free(log->err);
}

static void *thread_run(void *argument)
{
    struct log_keeper *keeper = argument;
    pthread_mutex_lock(&keeper->mutex);
    while (keeper->count > 0 || !keeper->ends) {
        if (keeper->count == 0) {
            pthread_cond_wait(&keeper->changed, &keeper->mutex);
            continue;
        }
        struct attempt_log log = keeper->queue[keeper->first];
        keeper->first = (keeper->first + 1) % QUEUE_LIMIT;
        keeper->count--;
        pthread_mutex_unlock(&keeper->mutex);
        log_keep(keeper, &log);
        log_free(&log);
        pthread_mutex_lock(&keeper->mutex);
    }
    pthread_mutex_unlock(&keeper->mutex);
    return NULL;
}

/* ---- the loop's side ---- */

struct log_keeper *log_keeper_create(const char *db, const char *sweep_id, const struct log *log,
                                     struct error *err)
{
    struct log_keeper *keeper = calloc(1, sizeof *keeper);
    struct text folder;
    sigset_t all, before;
    text_init(&folder);
    text_printf(&folder, "%s.files/%s", db, sweep_id);
    char *path = text_steal(&folder);
    if (!keeper || !path) {
        free(keeper);
        free(path);
        error_set(err, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    keeper->folder = path;
    keeper->log = log;
    pthread_mutex_init(&keeper->mutex, NULL);
    pthread_cond_init(&keeper->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
    int failed = pthread_create(&keeper->thread, NULL, thread_run, keeper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        error_set(err, ERROR_RESOURCE, "start the thread for logs: %s", strerror(failed));
        free(keeper->folder);
        free(keeper);
        return NULL;
    }
    return keeper;
}

void log_keeper_keep(struct log_keeper *keeper, struct effects *effects)
{
    size_t taken = 0;
    if (effects->log_count == 0) {
        return;
    }
    pthread_mutex_lock(&keeper->mutex);
    for (; taken < effects->log_count && keeper->count < QUEUE_LIMIT; taken++) {
        keeper->queue[(keeper->first + keeper->count++) % QUEUE_LIMIT] = effects->logs[taken];
    }
    bool tell = taken < effects->log_count && !keeper->lags;
    keeper->lags = taken < effects->log_count;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->mutex);
    if (tell) {
        log_warning(keeper->log, "", "logs of attempts come faster than %s takes them: some are not kept",
                    keeper->folder);
    }
    for (; taken < effects->log_count; taken++) {
        log_free(&effects->logs[taken]);
    }
    effects->log_count = 0;
}

void log_keeper_destroy(struct log_keeper *keeper)
{
    if (!keeper) {
        return;
    }
    pthread_mutex_lock(&keeper->mutex);
    keeper->ends = true;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->mutex);
    pthread_join(keeper->thread, NULL);
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper->folder);
    free(keeper);
}
