/* Errors: formatted into the caller's struct. */
#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, enum error_code code, const char *format, ...)
{
    if (!err)
        return -1;
    /* Formatted aside first: an argument may be err->message itself. */
    char message[sizeof err->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    utf8_mend(message);
    err->code = code;
    memcpy(err->message, message, sizeof message);
    return -1;
}

int error_set_errno(struct error *err, const char *what, const char *path)
{
    int reason = errno;
    return error_set(err, reason == ENOMEM ? ERROR_MEMORY : ERROR_RESOURCE, "%s %s: %s", what, path,
                     strerror(reason));
}

int error_prefix(struct error *err, const char *format, ...)
{
    if (!err)
        return -1;
    char message[sizeof err->message];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (used > sizeof message - 3)
        used = sizeof message - 3;
    memcpy(message + used, ": ", 2);
    used += 2;
    /* A message too long for its prefix loses its end. */
    size_t rest = strnlen(err->message, sizeof message - used - 1);
    memcpy(message + used, err->message, rest);
    message[used + rest] = '\0';
    utf8_mend(message);
    memcpy(err->message, message, sizeof message);
    return -1;
}

int error_exit_code(const struct error *err)
{
    switch (err->code) {
    case ERROR_NONE:
        return 0;
    case ERROR_USAGE:
        return 2;
    case ERROR_CONNECT:
    case ERROR_PROTOCOL:
        return 3;
    case ERROR_RESOURCE:
    case ERROR_MEMORY:
    case ERROR_INTERNAL:
        return 4;
    }
    return 4;
}
