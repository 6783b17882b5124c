/* Log lines: built whole, then written with one call, so that lines of threads and processes do not mix. */
#include "base/log.h"
#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A longer message is cut; its cause is data quoted in an error, and the beginning says enough. */
#define MESSAGE_SIZE 4096

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

static void append_quoted(struct text *line, const char *message)
{
    text_append(line, "\"");
    for (const char *at = message; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '"' || byte == '\\')
            text_printf(line, "\\%c", byte);
        else if (byte == '\n')
            text_append(line, "\\n");
        else if (byte < 0x20 || byte == 0x7F)
            text_printf(line, "\\x%02x", byte);
        else
            text_append_bytes(line, at, 1);
    }
    text_append(line, "\"");
}

static void append_fields(struct text *line, const char *fields)
{
    if (fields && *fields) {
        text_append(line, " ");
        text_append(line, fields);
    }
}

static void write_whole(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return; /* nowhere left to say so */
        bytes += written;
        size -= (size_t)written;
    }
}

void log_write(const struct log *log, enum log_level level, const char *fields, const char *format, ...)
{
    if (!log || level > log->level || (log->fd < 0 && !log->write_f))
        return;
    int saved_errno = errno;
    char message[MESSAGE_SIZE], when[32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);

    struct text line;
    text_init(&line);
    text_printf(&line, "%s level=%s", clock_format_utc(clock_now().utc_ms, when, sizeof when),
                level_names[level]);
    append_fields(&line, log->context);
    append_fields(&line, fields);
    text_append(&line, " message=");
    append_quoted(&line, message);
    if (!line.failed && log->write_f) {
        log->write_f(log->user, level, line.data);
    } else if (!line.failed) {
        text_append(&line, "\n");
        if (!line.failed)
            write_whole(log->fd, line.data, line.size);
    }
    text_release(&line);
    errno = saved_errno;
}
