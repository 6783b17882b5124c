/* The agent's life: made, turning in its loop, stopped, destroyed. */
#include "worker/agent_private.h"

#include "worker/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TURN_MS 250     /* longest sleep: deadlines of seconds need no finer clock */
#define JOIN_TURN_MS 50 /* until welcomed: the connection's state is asked, not told */
#define EVENTS_A_TURN 64
#define DEATH_TURN_MS 5 /* while a runner is dying */

static int agent_open_events(struct agent *agent, struct error *err)
{
    struct epoll_event wake = {.events = EPOLLIN, .data.u64 = AGENT_WAKE_EVENT};
    agent->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    agent->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (agent->epoll_fd < 0 || agent->wake_fd < 0 ||
        epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, agent->wake_fd, &wake) != 0) {
        return error_set(err, ERROR_RESOURCE, "wait for events: %s", strerror(errno));
    }
    return 0;
}

static int agent_set_up(struct agent *agent, const struct agent_settings *settings, struct error *err)
{
    const struct security *security = settings->security;
    if (gethostname(agent->host, sizeof agent->host - 1) != 0) {
        snprintf(agent->host, sizeof agent->host, "unknown");
    }
    char name[sizeof agent->host + 16];
    snprintf(name, sizeof name, "%.200s-%ld", agent->host, (long)getpid());
    agent->endpoint_address = strdup(settings->endpoint);
    agent->name = strdup(settings->name ? settings->name : name);
    agent->program = strdup(settings->program);
    if (security && security->server_key[0]) {
        agent->server_key = strdup(security->server_key);
    }
    if (!agent->endpoint_address || !agent->name || !agent->program) {
        return error_set(err, ERROR_MEMORY, "no memory for the worker");
    }
    if (agent_find_devices(agent, settings->devices ? settings->devices : "auto", err) != 0) {
        return -1;
    }
    if (agent_open_events(agent, err) != 0) {
        return -1;
    }
    agent->bus = bus_create(security, settings->log, err);
    agent->transfers = agent->bus ? transfers_create(agent->bus, err) : NULL;
    if (!agent->transfers) {
        return -1;
    }
    agent->endpoint = endpoint_connect(agent->bus, settings->endpoint, agent->server_key, err);
    return agent->endpoint ? scratch_open(&agent->scratch, settings->folder, err) : -1;
}

struct agent *agent_create(const struct agent_settings *settings, struct error *err)
{
    struct agent *agent = calloc(1, sizeof *agent);
    if (!agent) {
        error_set(err, ERROR_MEMORY, "no memory for the worker");
        return NULL;
    }
    agent->wake_fd = -1;
    agent->epoll_fd = -1;
    agent->scratch.lock_fd = -1;
    agent->wait_seconds = settings->wait_seconds;
    agent->reconnect_seconds = settings->reconnect_seconds;
    agent->stop_seconds = settings->stop_seconds > 0 ? settings->stop_seconds : STOP_SECONDS;
    agent->stay = settings->stay;
    agent->log = settings->log;
    random_hex(agent->session, (SESSION_SIZE - 1) / 2);
    if (agent_set_up(agent, settings, err) != 0) {
        agent_destroy(agent);
        return NULL;
    }
    return agent;
}

void agent_finish(struct agent *agent, int result)
{
    agent->finished = true;
    agent->result = result;
}

void agent_fail(struct agent *agent, const struct error *reason)
{
    if (!agent->finished) {
        agent->failure = *reason;
        agent_finish(agent, -1);
    }
}

void agent_break(struct agent *agent, const char *reason)
{
    if (agent->broken.code != ERROR_NONE || agent->finished) {
        return;
    }
    error_set(&agent->broken, ERROR_RESOURCE, "%s", reason);
    log_error(agent->log, "", "this worker hands back what it has and leaves: %s", reason);
    agent_interrupt(agent);
}

void agent_request_stop(struct agent *agent, int level)
{
    int saved = errno;
    if (level > agent->stop_level) {
        agent->stop_level = level;
    }
    uint64_t one = 1;
    ssize_t ignored = write(agent->wake_fd, &one, sizeof one);
    (void)ignored;
    errno = saved;
}

static void stop_step(struct agent *agent)
{
    if (agent->stop_level >= 2 || (agent->stop_level == 1 && !agent->ever_welcomed)) {
        agent_finish(agent, 1);
    } else if (agent->stop_level == 1 && !agent->interrupting) {
        log_info(agent->log, "", "asked to stop: checkpointing and handing back, at most %g s",
                 agent->stop_seconds);
        agent_interrupt(agent);
    }
}

static int turn_timeout(const struct agent *agent, bool busy)
{
    if (busy) {
        return 0;
    }
    int timeout = agent->welcomed ? TURN_MS : JOIN_TURN_MS;
    int64_t heartbeat_ms = (agent->heartbeat_ns - clock_now().monotonic_ns) / NS_PER_MS + 1;
    if (agent->welcomed && heartbeat_ms < timeout) {
        timeout = heartbeat_ms > 0 ? (int)heartbeat_ms : 0;
    }
    int64_t upload_ms = (agent->upload_ns - clock_now().monotonic_ns) / NS_PER_MS + 1;
    if (agent->upload_ns > 0 && upload_ms < timeout) {
        timeout = upload_ms > 0 ? (int)upload_ms : 0;
    }
    for (int i = 0; i < agent->slot_count; i++) {
        if (agent->slots[i].state == SLOT_ENDING) {
            timeout = DEATH_TURN_MS;
        }
    }
    return timeout;
}

/* Level-triggered: what is left over is there in the next turn. */
static void read_slots(struct agent *agent)
{
    struct epoll_event events[EVENTS_A_TURN];
    int count = epoll_wait(agent->epoll_fd, events, EVENTS_A_TURN, 0);
    for (int i = 0; i < count && !agent->finished; i++) {
        if (events[i].data.u64 == AGENT_WAKE_EVENT) {
            uint64_t wakes;
            ssize_t ignored = read(agent->wake_fd, &wakes, sizeof wakes);
            (void)ignored;
        } else if (events[i].data.u64 < (uint64_t)agent->slot_count) {
            slot_read(agent, &agent->slots[events[i].data.u64]);
        }
    }
}

static int agent_turn(struct agent *agent, bool *busy, struct error *err)
{
    bool readable[2], slots_readable;
    struct endpoint *endpoints[2] = {agent->endpoint, transfers_endpoint(agent->transfers)};
    if (bus_wait(endpoints, endpoints[1] ? 2 : 1, readable, &agent->epoll_fd, 1, &slots_readable,
                 turn_timeout(agent, *busy), err) < 0) {
        return -1;
    }
    agent->now_ns = clock_now().monotonic_ns;
    stop_step(agent);
    read_slots(agent);
    agent_slots_step(agent);
    agent_receive(agent);
    *busy = transfers_step(agent->transfers, agent->now_ns);
    if (!agent->finished) {
        agent_take_transfers(agent);
    }
    if (!agent->finished) {
        agent->upload_ns = agent_upload_paused(agent);
        agent_dispatch(agent);
        agent_session_step(agent);
    }
    return 0;
}

int agent_run(struct agent *agent, struct error *err)
{
    bool busy = true; /* the first turn does not wait: hello goes out at once */
    agent->begun_ns = agent->now_ns = clock_now().monotonic_ns;
    if (agent_start_slots(agent, &agent->failure) != 0) {
        agent_finish(agent, -1);
    }
    while (!agent->finished) {
        if (agent_turn(agent, &busy, &agent->failure) != 0) {
            agent_finish(agent, -1);
        }
    }
    agent_stop_slots(agent);
    if (agent->result < 0 && err) {
        *err = agent->failure;
    }
    return agent->result;
}

void agent_destroy(struct agent *agent)
{
    if (!agent) {
        return;
    }
    agent_forget_attempts(agent);
    agent_stop_slots(agent);
    agent_forget_data(agent);
    transfers_destroy(agent->transfers);
    endpoint_destroy(agent->endpoint);
    bus_destroy(agent->bus);
    scratch_close(&agent->scratch);
    devices_free(agent->devices, agent->device_count);
    if (agent->wake_fd >= 0) {
        close(agent->wake_fd);
    }
    if (agent->epoll_fd >= 0) {
        close(agent->epoll_fd);
    }
    free(agent->attempts);
    free(agent->ended);
    json_decref(agent->sweep_line);
    free(agent->sweep);
    free(agent->endpoint_address);
    free(agent->name);
    free(agent->program);
    free(agent->server_key);
    free(agent);
}
