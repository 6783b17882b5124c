/* The loop. One turn: drain the sockets, let the engine decide, commit, and only then send. */
#include "coordinator/server_state.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURN_MESSAGES 1000            /* of one turn: bounds the transaction, and how long an answer waits */
#define GAP_NS (1 * NS_PER_SECOND)    /* a longer one between turns was not the workers' fault */
#define IDLE_MS 500                   /* turns come at least this often, so that a gap means something */
#define PROGRESS_NS (100 * NS_PER_MS) /* between two calls of progress_f */
#define RETRY_MS 250                  /* after a failed commit */
#define RETRY_LOGGED_EVERY (60 * NS_PER_SECOND)
#define REFUSAL_LOGGED_EVERY (1 * NS_PER_SECOND) /* a broken peer must not fill the log */
#define HAND_BACK_NS (25 * NS_PER_SECOND)

static int event_give(struct server *server, enum event_type type, struct error *err)
{
    struct event event = {.type = type};
    if (type == EVENT_WORKER_GONE) {
        event.worker = server->settings.own_worker;
    }
    return engine_handle(server->engine, &event, clock_now(), &server->effects, err);
}

/* ---- in ---- */

/* -1: the message cannot be sent to anybody, now or later; it would be made again and again. */
static int send_to(struct server *server, size_t socket, const struct peer *peer,
                   const struct message *message, struct error *err)
{
    struct error failure = {0};
    if (endpoint_send(server->endpoints[socket], peer, message, &failure) == 0) {
        return 0;
    }
    if (failure.code == ERROR_CONNECT) {
        /* Who left comes back as another peer, and is told again what it lacks. */
        log_debug(server->log, "", "%s", failure.message);
        return 0;
    }
    return error_set(err, failure.code == ERROR_MEMORY ? ERROR_MEMORY : ERROR_INTERNAL, "%s",
                     failure.message);
}

/* An answer too large for a message is an error to whoever asked, and to nobody else. */
static void answer_send(struct server *server, size_t socket, const struct peer *peer,
                        const struct message *answer)
{
    struct error err = {0};
    struct message refusal;
    if (send_to(server, socket, peer, answer, &err) == 0) {
        return;
    }
    message_init(&refusal, MESSAGE_ANSWER);
    refusal.error = err.message;
    send_to(server, socket, peer, &refusal, NULL);
}

static void refuse(struct server *server, size_t socket, const struct peer *peer, const char *code,
                   const char *text)
{
    struct message message;
    message_init(&message, MESSAGE_ERROR);
    message.code = (char *)code;
    message.error = (char *)text;
    int64_t now_ns = clock_now().monotonic_ns;
    if (server->refused_ns == 0 || now_ns - server->refused_ns > REFUSAL_LOGGED_EVERY) {
        log_warning(server->log, "", "refused a message: %s", text);
        server->refused_ns = now_ns;
    }
    send_to(server, socket, peer, &message, NULL);
}

static void answer_query(struct server *server, size_t socket, const struct peer *peer,
                         const struct message *query)
{
    struct message answer;
    message_init(&answer, MESSAGE_ANSWER);
    server_answer(server, query, &answer);
    answer_send(server, socket, peer, &answer);
    message_release(&answer);
}

static bool is_own_name(const struct server *server, const char *name)
{
    return server->settings.own_worker && name && strcmp(name, server->settings.own_worker) == 0;
}

static int message_handle(struct server *server, size_t socket, const struct peer *peer,
                          const struct message *message, struct error *err)
{
    if (message->type == MESSAGE_QUERY) {
        answer_query(server, socket, peer, message);
        return 0;
    }
    if (message->type == MESSAGE_FETCH || message->type == MESSAGE_PUT) {
        refuse(server, socket, peer, "malformed", "blobs travel over the blob socket");
        return 0;
    }
    if (message->type == MESSAGE_HELLO && socket > 0 && is_own_name(server, message->worker)) {
        refuse(server, socket, peer, "name_taken", "this is the name of the coordinator's own worker");
        return 0;
    }
    struct event event = {
        .type = EVENT_MESSAGE,
        .peer = peers_number(&server->peers, (uint8_t)socket, peer, clock_now().monotonic_ns),
        .message = message,
    };
    if (event.peer == 0) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    if (engine_handle(server->engine, &event, clock_now(), &server->effects, err)) {
        return -1;
    }
    if (message->type == MESSAGE_ENDED && message->checkpoint) {
        blob_server_named(server->blob_server, message->checkpoint);
    }
    return 0;
}

/* One message of one socket: 1 handled, 0 none there, -1 the engine failed. */
static int message_take(struct server *server, size_t socket, struct error *err)
{
    struct peer peer = {.size = 0};
    struct message message;
    struct error malformed = {0};
    int got = endpoint_receive(server->endpoints[socket], &peer, &message, &malformed);
    if (got < 0) {
        if (peer.size > 0) {
            refuse(server, socket, &peer, "malformed", malformed.message);
        }
        return 1;
    }
    if (got == 0) {
        return 0;
    }
    int result = peer.size > 0 ? message_handle(server, socket, &peer, &message, err) : 0;
    message_release(&message);
    return result ? -1 : 1;
}

/* Takes turns between the sockets. 1: drained; 0: the turn is full and more may be there; -1 err. */
static int sockets_drain(struct server *server, struct error *err)
{
    size_t silent = 0;
    for (size_t taken = 0, socket = 0; silent < server->endpoint_count && taken < TURN_MESSAGES; socket++) {
        int result = message_take(server, socket % server->endpoint_count, err);
        if (result < 0) {
            return -1;
        }
        silent = result == 0 ? silent + 1 : 0;
        taken += (size_t)result;
    }
    return silent == server->endpoint_count;
}

/* ---- kept ---- */

/* Waits for the next try; a stop request ends the wait. */
static void commit_pause(struct server *server)
{
    struct pollfd woken = {.fd = server->stop_pipe[0], .events = POLLIN};
    char bytes[16];
    if (poll(&woken, 1, RETRY_MS) > 0) {
        while (read(server->stop_pipe[0], bytes, sizeof bytes) > 0) {
        }
    }
}

/* The server is told to go, and the disk does not come back. */
static bool commit_is_hopeless(const struct server *server, int64_t failing_since_ns)
{
    int level = atomic_load(&server->stop_level);
    return level >= 2 || (level == 1 && clock_now().monotonic_ns - failing_since_ns > HAND_BACK_NS);
}

int server_commit(struct server *server, struct error *err)
{
    struct effects *effects = &server->effects;
    int64_t since_ns = 0, logged_ns = 0;
    while (effects->record_count > 0) {
        struct error failure = {0};
        if (store_commit(server->store, server->sweep_id, effects->records, effects->record_count,
                         &failure) == 0) {
            break;
        }
        int64_t now_ns = clock_now().monotonic_ns;
        since_ns = since_ns ? since_ns : now_ns;
        if (failure.code != ERROR_RESOURCE || commit_is_hopeless(server, since_ns)) {
            return error_set(err, failure.code, "%s", failure.message);
        }
        if (logged_ns == 0 || now_ns - logged_ns > RETRY_LOGGED_EVERY) {
            log_error(server->log, "", "the sweep waits until this is mended: %s", failure.message);
            logged_ns = now_ns;
        }
        commit_pause(server);
    }
    if (since_ns) {
        log_info(server->log, "", "the database can be written again; the sweep goes on");
    }
    return 0;
}

/* ---- out ---- */

static int message_send(struct server *server, struct outgoing *outgoing, struct error *err)
{
    const struct peer_address *address = peers_address(&server->peers, outgoing->peer);
    if (!address) {
        return 0;
    }
    if (outgoing->message.type == MESSAGE_WELCOME &&
        blob_server_describe(server->blob_server, address->socket, &outgoing->message)) {
        return error_set(err, ERROR_MEMORY, "out of memory");
    }
    if (outgoing->message.type == MESSAGE_ANSWER) {
        answer_send(server, address->socket, &address->peer, &outgoing->message);
        return 0;
    }
    return send_to(server, address->socket, &address->peer, &outgoing->message, err);
}

static int effects_perform(struct server *server, struct error *err)
{
    struct effects *effects = &server->effects;
    compactor_run(&server->compactor, effects);
    if (server_commit(server, err)) {
        return -1;
    }
    for (size_t i = 0; i < effects->message_count; i++) {
        if (message_send(server, &effects->messages[i], err)) {
            return -1;
        }
    }
    server_unneeded_delete(server);
    log_keeper_keep(server->log_keeper, effects);
    effects_clear(effects);
    return server_leftovers_remove(server, err);
}

/* ---- the turn ---- */

static int interrupt_if_asked(struct server *server, struct error *err)
{
    if (server->interrupted || atomic_load(&server->stop_level) != 1) {
        return 0;
    }
    server->interrupted = true;
    server->interrupt_deadline_ns = clock_now().monotonic_ns + HAND_BACK_NS;
    return event_give(server, EVENT_INTERRUPT, err);
}

static int turn(struct server *server, struct error *err)
{
    int64_t now_ns = clock_now().monotonic_ns;
    if (server->turn_ns != 0 && now_ns - server->turn_ns > GAP_NS && event_give(server, EVENT_RENEW, err)) {
        return -1;
    }
    server->turn_ns = now_ns;
    server->turns++;
    int drained = sockets_drain(server, err);
    if (drained < 0 || interrupt_if_asked(server, err)) {
        return -1;
    }
    /* Behind what it said last. */
    if (drained && server->own_worker_gone) {
        server->own_worker_gone = false;
        if (event_give(server, EVENT_WORKER_GONE, err)) {
            return -1;
        }
    }
    if (drained && clock_now().monotonic_ns >= server->effects.wake_ns &&
        event_give(server, EVENT_TICK, err)) {
        return -1;
    }
    return effects_perform(server, err);
}

static int wait_ms(const struct server *server)
{
    int64_t now_ns = clock_now().monotonic_ns;
    int64_t limit_ms = server->settings.progress_f ? PROGRESS_NS / NS_PER_MS : IDLE_MS;
    if (server->effects.wake_ns <= now_ns) {
        return 0;
    }
    int64_t until_wake_ms = (server->effects.wake_ns - now_ns) / NS_PER_MS + 1;
    return (int)(until_wake_ms < limit_ms ? until_wake_ms : limit_ms);
}

static int turn_wait(struct server *server, struct error *err)
{
    bool readable[BIND_LIMIT], woken;
    char bytes[16];
    if (bus_wait(server->endpoints, server->endpoint_count, readable, &server->stop_pipe[0], 1, &woken,
                 wait_ms(server), err) < 0) {
        return -1;
    }
    while (woken && read(server->stop_pipe[0], bytes, sizeof bytes) > 0) {
    }
    return 0;
}

static void progress_show(struct server *server, bool last)
{
    int64_t now_ns = clock_now().monotonic_ns;
    if (!server->settings.progress_f || (!last && now_ns - server->progress_ns < PROGRESS_NS)) {
        return;
    }
    struct engine_counts counts;
    engine_counts(server->engine, &counts);
    server->settings.progress_f(server->settings.user, &counts, server->engine);
    server->progress_ns = now_ns;
}

/* After an interruption: everything was handed back, or there is no more time, or the patience has ended. */
static bool may_leave(const struct server *server)
{
    return atomic_load(&server->stop_level) >= 2 ||
           (server->interrupted && (engine_was_handed_back(server->engine) ||
                                    clock_now().monotonic_ns >= server->interrupt_deadline_ns));
}

int server_run(struct server *server, struct error *err)
{
    int result = server->settings.own_worker ? event_give(server, EVENT_WORKER_GONE, err) : 0;
    while (result == 0 && !engine_is_done(server->engine) && !may_leave(server)) {
        result = turn_wait(server, err);
        if (result == 0) {
            result = turn(server, err);
            progress_show(server, false);
        }
    }
    progress_show(server, true);
    if (result) {
        return -1;
    }
    if (!engine_has_ended(server->engine)) {
        return 1;
    }
    server_leftovers_end(server);
    return 0;
}
