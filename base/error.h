/* Errors: a caller-owned struct filled by whoever fails.
 *
 * Every function that can fail takes `struct error *err` last (NULL allowed), returns -1 (or NULL) and has
 * no side effect on failure. Wrapping adds a prefix: "load spec: line 4: ...". Threads: no shared state. */
#ifndef RUNG_BASE_ERROR_H
#define RUNG_BASE_ERROR_H

enum error_code {
    ERROR_NONE = 0,
    ERROR_USAGE,    /* wrong usage, spec or data: exit code 2 */
    ERROR_CONNECT,  /* could not connect, or was refused: exit code 3 */
    ERROR_RESOURCE, /* a file, database, device or disk could not be used: exit code 4 */
    ERROR_MEMORY,   /* host or device memory ran out: exit code 4 */
    ERROR_PROTOCOL, /* a malformed or unexpected message */
    ERROR_INTERNAL, /* a broken invariant: a bug of ours: exit code 4 */
};

struct error {
    enum error_code code;
    char message[1000]; /* UTF-8, whatever was put into it and wherever it was cut */
};

/* Sets code and message; always returns -1, so that `return error_set(err, ...)` reads well. */
int error_set(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "WHAT PATH: reason of errno", as ERROR_RESOURCE (ERROR_MEMORY for ENOMEM); always returns -1. */
int error_set_errno(struct error *err, const char *what, const char *path);

/* Puts "prefix: " before the message, keeping the code; always returns -1. */
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Process exit code for a failure (DESIGN: 2 usage, 3 connect, 4 resource). */
int error_exit_code(const struct error *err);

#endif
