/* Log lines: `2026-01-02T03:04:05.678Z level=info sweep=... trial=... worker=... message="..."`.
 * Libraries print nothing: they log through the struct log they were given. Thread-safe (one write a
 * line). */
#ifndef RUNG_BASE_LOG_H
#define RUNG_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log {
    int fd;               /* where lines go; -1: nowhere */
    enum log_level level; /* lines above it are dropped */
    char context[200];    /* "sweep=abc worker=node1", put into every line; may be empty */
    /* When set, called instead of writing (a live display redraws around it). */
    void (*write_f)(void *user, enum log_level level, const char *line);
    void *user;
};

/* `log` may be NULL (nothing happens). `fields` is "trial=3 attempt=1" or "" ; message is printf-formatted
 * and quoted (quotes and control characters escaped). */
void log_write(const struct log *log, enum log_level level, const char *fields, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define log_error(log, fields, ...) log_write(log, LOG_LEVEL_ERROR, fields, __VA_ARGS__)
#define log_warning(log, fields, ...) log_write(log, LOG_LEVEL_WARNING, fields, __VA_ARGS__)
#define log_info(log, fields, ...) log_write(log, LOG_LEVEL_INFO, fields, __VA_ARGS__)
#define log_debug(log, fields, ...) log_write(log, LOG_LEVEL_DEBUG, fields, __VA_ARGS__)

#endif
