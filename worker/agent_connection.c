/* Coming and going: the connection, how long to wait for it, and leaving in order. */
#include "worker/agent_private.h"

static void refused(struct agent *agent)
{
    struct error err;
    if (agent->server_key) {
        error_set(&err, ERROR_CONNECT,
                  "%s refused this worker's key, or has another one than expected. The public key of this "
                  "worker must be in the coordinator's `authorized` file, and --server-key must be the "
                  "coordinator's: see rung keygen",
                  agent->endpoint_address);
    } else {
        error_set(&err, ERROR_CONNECT, "%s refused a connection without encryption: leave out --insecure",
                  agent->endpoint_address);
    }
    agent_fail(agent, &err);
}

static void connect_step(struct agent *agent)
{
    enum connection_state state = endpoint_state(agent->endpoint);
    if (state == CONNECTION_REFUSED && !agent->ever_welcomed) {
        refused(agent);
        return;
    }
    if (state == CONNECTION_DOWN || state == CONNECTION_REFUSED) {
        if (!agent->down) {
            agent->down = true;
            log_info(agent->log, "", "no connection to %s: %s", agent->endpoint_address,
                     agent->attempt_count > 0 ? "training goes on" : "trying again");
        }
        agent->welcomed = false;
        agent->hello_ns = 0; /* at once when it is back */
        return;
    }
    if (state == CONNECTION_UP) {
        agent->down = false;
        if (agent->hello_ns == INT64_MAX) {
            agent->hello_ns = agent->now_ns + HELLO_REPEAT_NS; /* that one is on its way now */
        }
    }
    if (!agent->welcomed && agent->now_ns >= agent->hello_ns) {
        agent_send_hello(agent);
        if (state == CONNECTION_NONE) {
            agent->hello_ns = INT64_MAX; /* it waits in the socket: one is enough */
        }
    }
}

static void connect_deadline(struct agent *agent)
{
    struct error err;
    if (agent->welcomed) {
        agent->away_ns = 0;
    } else if (agent->away_ns == 0) {
        agent->away_ns = agent->now_ns;
    }
    double waited = (double)(agent->now_ns - agent->begun_ns) / NS_PER_SECOND;
    double away = agent->away_ns ? (double)(agent->now_ns - agent->away_ns) / NS_PER_SECOND : 0;
    if (!agent->ever_welcomed && waited > agent->wait_seconds) {
        if (agent->refusal.code == ERROR_NONE) {
            error_set(&agent->refusal, ERROR_CONNECT, "no coordinator answered at %s within %g s",
                      agent->endpoint_address, agent->wait_seconds);
        }
        agent_fail(agent, &agent->refusal);
    } else if (agent->ever_welcomed && away > agent->reconnect_seconds && !(agent->stay && !agent->sweep)) {
        error_set(&err, ERROR_CONNECT, "lost the coordinator at %s, and it did not come back within %g s",
                  agent->endpoint_address, agent->reconnect_seconds);
        agent_fail(agent, agent->refusal.code == ERROR_NONE ? &err : &agent->refusal);
    }
}

/* Runners that have not come to an epoch's end in time: their trials go back as they came. */
static void end_the_slow(struct agent *agent)
{
    for (int i = 0; i < agent->slot_count; i++) {
        struct slot *slot = &agent->slots[i];
        struct attempt *attempt = slot->attempt;
        if (attempt && attempt->state == ATTEMPT_RUNNING) {
            attempt->resource = attempt->start;
            attempt_end(agent, attempt, OUTCOME_INTERRUPTED, "the epoch did not end in time");
            slot_kill(agent, slot, "time is up");
        }
    }
}

void agent_end_rest(struct agent *agent)
{
    agent->resting = false;
    if (agent->broken.code != ERROR_NONE) {
        return;
    }
    agent->draining = false;
    agent->interrupting = false;
    agent->stop_ns = 0;
}

/* The next sweep, with --stay: a new session, as if just started, but waiting as long as it takes. */
static void begin_again(struct agent *agent)
{
    agent_forget_sweep(agent);
    random_hex(agent->session, (SESSION_SIZE - 1) / 2);
    agent->welcomed = false;
    agent_end_rest(agent);
    agent->hello_ns = agent->now_ns + HELLO_REPEAT_NS;
}

static void leave(struct agent *agent, const char *reason)
{
    if (agent->welcomed || !agent->ever_welcomed) {
        agent_send_bye(agent, reason);
    }
    if (agent->broken.code != ERROR_NONE) {
        agent_fail(agent, &agent->broken);
    } else if (agent->stay && agent->stop_level == 0) {
        begin_again(agent);
    } else {
        agent_finish(agent, agent->stop_level > 0 ? 1 : 0);
    }
}

/* After drain or a wish to stop: until everything is acknowledged, or time is up. */
static void leave_step(struct agent *agent)
{
    bool running = false;
    for (size_t i = 0; i < agent->attempt_count; i++) {
        running = running || agent->attempts[i]->state != ATTEMPT_ENDED;
    }
    if (!running && agent->stop_ns == 0) {
        agent->stop_ns = agent->now_ns; /* only answers are missing: they too get that long */
    }
    double passed = agent->stop_ns ? (double)(agent->now_ns - agent->stop_ns) / NS_PER_SECOND : 0;
    bool rests = agent->resting && agent->stop_level == 0 && agent->broken.code == ERROR_NONE;
    if (rests) {
        /* What is not acknowledged yet will be when the coordinator is back. One that is there, but does not
         * say again that it goes, is another than said so. */
        if (agent->welcomed &&
            agent->now_ns - agent->rest_ns > REST_HEARTBEATS * agent->heartbeat_interval_ns) {
            agent->welcomed = false;
            agent->hello_ns = 0;
        }
        if (passed >= STOP_KILL_SHARE * agent->stop_seconds) {
            end_the_slow(agent);
        }
    } else if (agent->attempt_count == 0) {
        leave(agent, "drained");
    } else if (passed >= agent->stop_seconds) {
        log_warning(agent->log, "", "leaving with %zu attempts not handed back in time",
                    agent->attempt_count);
        leave(agent, "time is up");
    } else if (agent->interrupting && passed >= STOP_KILL_SHARE * agent->stop_seconds) {
        end_the_slow(agent);
    }
}

void agent_session_step(struct agent *agent)
{
    connect_step(agent);
    if (!agent->finished) {
        connect_deadline(agent);
    }
    if (!agent->finished && agent->welcomed) {
        agent_send_due(agent);
    }
    if (!agent->finished && (agent->draining || agent->interrupting)) {
        leave_step(agent);
    }
}
