/* The bus: ZeroMQ's context, our keys, and the guard: the thread that answers ZAP requests (ZeroMQ RFC 27),
 * one for each CURVE handshake, by the allow-list. */
#include "wire/bus.h"

#include "base/clock.h"
#include "wire/key_pair.h"
#include "wire/raw_socket.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define ZAP_ADDRESS "inproc://zeromq.zap.01"
#define ZAP_FRAMES 8 /* version, request id, domain, address, identity, mechanism, client key */
#define REFUSALS_LOGGED_EVERY (60 * NS_PER_SECOND)

#define DESCRIPTORS_NEEDED 64 /* threads, sockets, monitors; files of the database */

struct bus {
    void *context;
    bool secure;
    struct security security;
    struct log log;
    atomic_uint next_number;
    void *guard; /* ZAP socket, owned by the thread once it runs */
    pthread_t thread;
    bool guarded;
};

void *bus_context(const struct bus *bus)
{
    return bus->context;
}

const struct log *bus_log(const struct bus *bus)
{
    return &bus->log;
}

const struct security *bus_security(const struct bus *bus)
{
    return bus->secure ? &bus->security : NULL;
}

unsigned bus_next_number(struct bus *bus)
{
    return atomic_fetch_add(&bus->next_number, 1);
}

static int security_copy(struct security *to, const struct security *from)
{
    *to = *from;
    to->allowed = NULL;
    to->authorized = NULL;
    if (from->authorized && !(to->authorized = strdup(from->authorized))) {
        return -1;
    }
    if (from->allowed_count > 0) {
        to->allowed = malloc(from->allowed_count * sizeof *to->allowed);
        if (!to->allowed) {
            return -1;
        }
        memcpy(to->allowed, from->allowed, from->allowed_count * sizeof *to->allowed);
    }
    return 0;
}

/* ZeroMQ ends the process where it finds none left for itself. */
static int descriptors_check(struct error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS_NEEDED) {
        return 0;
    }
    rlim_t allowed = limit.rlim_cur;
    limit.rlim_cur = DESCRIPTORS_NEEDED;
    if (limit.rlim_max >= DESCRIPTORS_NEEDED && setrlimit(RLIMIT_NOFILE, &limit) == 0) {
        return 0;
    }
    return error_set(err, ERROR_RESOURCE, "only %d open files are allowed; allow more with: ulimit -n 1024",
                     (int)allowed);
}

struct bus *bus_create(const struct security *security, const struct log *log, struct error *err)
{
    if (descriptors_check(err)) {
        return NULL;
    }
    struct bus *bus = calloc(1, sizeof *bus);
    if (!bus || (security && security_copy(&bus->security, security))) {
        if (bus) {
            security_release(&bus->security);
        }
        free(bus);
        error_set(err, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    bus->secure = security != NULL;
    bus->log = log ? *log : (struct log){.fd = -1};
    bus->context = raw_context_create();
    if (!bus->context) {
        error_set(err, ERROR_RESOURCE, "start ZeroMQ: %s", raw_error_text(errno));
        security_release(&bus->security);
        free(bus);
        return NULL;
    }
    return bus;
}

void bus_destroy(struct bus *bus)
{
    if (!bus) {
        return;
    }
    if (bus->guarded) {
        raw_context_shutdown(bus->context);
        pthread_join(bus->thread, NULL);
    }
    raw_context_destroy(bus->context);
    security_release(&bus->security);
    free(bus);
}

/* ---- the guard ---- */

static bool key_is_allowed(const struct security *security, const char key[KEY_SIZE])
{
    for (size_t i = 0; i < security->allowed_count; i++) {
        if (strcmp(security->allowed[i], key) == 0) {
            return true;
        }
    }
    return false;
}

static bool frame_is(const struct raw_frame *frame, const char *text)
{
    return raw_frame_size(frame) == strlen(text) && memcmp(raw_frame_data(frame), text, strlen(text)) == 0;
}

/* A stranger that tries again every second is told of once a minute. */
struct refusals {
    int64_t logged_ns;
    unsigned long count; /* since the last line */
};

static void refusal_log(struct refusals *refusals, const struct log *log, const char *address,
                        const char *key)
{
    int64_t now = clock_now().monotonic_ns;
    refusals->count++;
    if (refusals->logged_ns != 0 && now - refusals->logged_ns < REFUSALS_LOGGED_EVERY) {
        return;
    }
    log_warning(log, "", "refused a connection from %s: its key %s is not authorized (refusals so far: %lu)",
                address, key, refusals->count);
    refusals->logged_ns = now;
}

static bool request_is_allowed(struct bus *bus, const struct raw_frame frames[ZAP_FRAMES], int count,
                               struct refusals *refusals)
{
    char key[KEY_SIZE] = "?", address[64] = "?";
    if (count != 7 || !frame_is(&frames[0], "1.0") || !frame_is(&frames[5], "CURVE") ||
        raw_frame_size(&frames[6]) != 32) {
        return false;
    }
    struct error err = {0};
    if (security_refresh(&bus->security, &err)) {
        log_warning(&bus->log, "", "%s; the keys read before stay authorized", err.message);
    }
    key_encode(raw_frame_data(&frames[6]), key);
    if (key_is_allowed(&bus->security, key)) {
        return true;
    }
    if (raw_frame_size(&frames[3]) < sizeof address) {
        memcpy(address, raw_frame_data(&frames[3]), raw_frame_size(&frames[3]));
        address[raw_frame_size(&frames[3])] = '\0';
    }
    refusal_log(refusals, &bus->log, address, key);
    return false;
}

static void request_answer(struct bus *bus, const struct raw_frame frames[ZAP_FRAMES], int count,
                           struct refusals *refusals)
{
    bool allowed = request_is_allowed(bus, frames, count, refusals);
    const char *code = allowed ? "200" : "400", *text = allowed ? "OK" : "not authorized";
    struct raw_part id = {"", 0};
    if (count > 1) {
        id = (struct raw_part){raw_frame_data(&frames[1]), raw_frame_size(&frames[1])};
    }
    struct raw_part reply[] = {{"1.0", 3}, id, {code, 3}, {text, strlen(text)}, {"", 0}, {"", 0}};
    raw_send(bus->guard, reply, sizeof reply / sizeof *reply);
}

static void *guard_run(void *argument)
{
    struct bus *bus = argument;
    struct raw_frame frames[ZAP_FRAMES];
    struct refusals refusals = {0};
    int count;
    while ((count = raw_receive(bus->guard, frames, ZAP_FRAMES, true)) > 0) {
        request_answer(bus, frames, count, &refusals);
        for (int i = 0; i < count && i < ZAP_FRAMES; i++) {
            raw_frame_close(&frames[i]);
        }
    }
    raw_socket_close(bus->guard);
    return NULL;
}

int bus_guard(struct bus *bus, struct error *err)
{
    if (bus->guarded) {
        return 0;
    }
    bus->guard = raw_socket_create(bus->context, RAW_ZAP);
    if (!bus->guard || raw_socket_bind(bus->guard, ZAP_ADDRESS) != 0) {
        int reason = errno;
        if (bus->guard) {
            raw_socket_close(bus->guard);
        }
        return error_set(err, ERROR_RESOURCE, "guard the sockets: %s", raw_error_text(reason));
    }
    /* Signals are for the threads that know what to do with them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&bus->thread, NULL, guard_run, bus);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        raw_socket_close(bus->guard);
        return error_set(err, ERROR_RESOURCE, "guard the sockets: %s", strerror(failed));
    }
    bus->guarded = true;
    return 0;
}
