/* Slots: one long-lived runner child each. What a runner says is turned into attempts' moves; how it dies
 * into the end of the attempt it had, and a new runner. */
#include "worker/agent_private.h"

#include "worker/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define RESTART_NS (200 * NS_PER_MS) /* times the early deaths so far */
#define DEATH_WAIT_NS NS_PER_SECOND  /* between a closed link and SIGKILL */
#define ASK_NS NS_PER_SECOND
#define SEND_TIMEOUT_MS 1000 /* a runner reads between epochs; its socket buffer holds hundreds of lines */
#define ERROR_TEXT_SIZE 8192 /* of a runner's last words, sent with `ended` */

static int slot_watch(struct agent *agent, const struct slot *slot)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)slot->number};
    return epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, slot->child.link_fd, &event) == 0 &&
                   epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, slot->child.log_fd, &event) == 0
               ? 0
               : -1;
}

/* A closed link stays readable for ever: once its end was seen only the death is waited for. */
static void slot_await_death(struct agent *agent, struct slot *slot)
{
    if (slot->state != SLOT_ENDING && slot->child.link_fd >= 0) {
        epoll_ctl(agent->epoll_fd, EPOLL_CTL_DEL, slot->child.link_fd, NULL);
    }
    slot->state = SLOT_ENDING;
    slot->kill_ns = agent->now_ns + DEATH_WAIT_NS;
}

static void slot_start(struct agent *agent, struct slot *slot)
{
    const char *argv[] = {agent->program, "runner", agent->devices[slot->number].id, NULL};
    struct error err = {0};
    slot->fault[0] = '\0';
    if (child_start(&slot->child, argv, &err) == 0 && slot_watch(agent, slot) != 0) {
        error_set(&err, ERROR_RESOURCE, "watch a runner: %s", strerror(errno));
    }
    if (err.code != ERROR_NONE) {
        agent_break(agent, err.message);
        return;
    }
    link_release(&slot->link);
    link_init(&slot->link, slot->child.link_fd);
    slot->link.send_timeout_ms = SEND_TIMEOUT_MS;
    slot->state = SLOT_STARTING;
    if (agent->data_ready) {
        slot_send_sweep(agent, slot);
    }
}

/* Each slot needs two descriptors here, and ZeroMQ some: many slots do not fit the usual soft limit of 1024.
 */
static void raise_descriptor_limit(int slots)
{
    struct rlimit limit;
    rlim_t wanted = 256 + 4 * (rlim_t)slots;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int agent_start_slots(struct agent *agent, struct error *err)
{
    raise_descriptor_limit(agent->device_count);
    agent->slots = calloc((size_t)agent->device_count, sizeof *agent->slots);
    if (!agent->slots) {
        return error_set(err, ERROR_MEMORY, "no memory for the slots");
    }
    agent->slot_count = agent->device_count;
    agent->oom_kills = out_of_memory_kills("");
    for (int i = 0; i < agent->slot_count; i++) {
        agent->slots[i].number = i;
        child_init(&agent->slots[i].child);
        link_init(&agent->slots[i].link, -1);
    }
    for (int i = 0; i < agent->slot_count && !agent->finished && agent->broken.code == ERROR_NONE; i++) {
        slot_start(agent, &agent->slots[i]);
    }
    return 0;
}

int agent_join_slots(struct agent *agent, int64_t devices_per_trial, struct error *err)
{
    if (devices_per_trial != 1) {
        return error_set(err, ERROR_USAGE,
                         "the sweep wants %lld devices for a trial; on CPUs a trial has one "
                         "(resources.devices_per_trial: 1)",
                         (long long)devices_per_trial);
    }
    if (!agent->slots) {
        return agent_start_slots(agent, err);
    }
    for (int i = 0; i < agent->slot_count && agent->data_ready; i++) {
        if (agent->slots[i].state == SLOT_STARTING) {
            slot_send_sweep(agent, &agent->slots[i]);
        }
    }
    return 0;
}

void agent_stop_slots(struct agent *agent)
{
    for (int i = 0; i < agent->slot_count; i++) {
        child_kill(&agent->slots[i].child); /* all at once; then each is waited for */
    }
    for (int i = 0; i < agent->slot_count; i++) {
        child_release(&agent->slots[i].child);
        link_release(&agent->slots[i].link);
        free(agent->slots[i].device);
    }
    free(agent->slots);
    agent->slots = NULL;
    agent->slot_count = 0;
}

void slot_kill(struct agent *agent, struct slot *slot, const char *fault)
{
    snprintf(slot->fault, sizeof slot->fault, "%.*s", (int)sizeof slot->fault - 1, fault);
    child_kill(&slot->child);
    slot_await_death(agent, slot);
}

static void slot_send(struct agent *agent, struct slot *slot, json_t *line)
{
    struct error err = {0};
    if (!line) {
        slot_kill(agent, slot, "no memory for a line to the runner");
    } else if (link_send(&slot->link, line, &err) != 0 && slot->state != SLOT_ENDING) {
        /* A closed link is its death, seen by the next read; a full one is a runner that hangs. */
        log_debug(agent->log, "", "slot %d: %s", slot->number, err.message);
        slot_kill(agent, slot, "the runner does not read its link");
    }
    json_decref(line);
}

void slot_send_sweep(struct agent *agent, struct slot *slot)
{
    slot_send(agent, slot, json_incref(agent->sweep_line));
}

void slot_run(struct agent *agent, struct slot *slot)
{
    struct attempt *attempt = slot->attempt;
    attempt->state = ATTEMPT_RUNNING;
    attempt->has_saved = false;
    slot->state = SLOT_RUNNING;
    child_clear_log(&slot->child);
    log_debug(agent->log, "", "slot %d runs trial %lld attempt %lld from %lld until %lld", slot->number,
              (long long)attempt->trial, (long long)attempt->number, (long long)attempt->start,
              (long long)attempt->until);
    slot_send(agent, slot,
              json_pack("{s:s,s:I,s:I,s:O,s:I,s:I,s:s?,s:s,s:O?}", "type", "run", "trial",
                        (json_int_t)attempt->trial, "attempt", (json_int_t)attempt->number, "parameters",
                        attempt->parameters, "start", (json_int_t)attempt->start, "until",
                        (json_int_t)attempt->until, "checkpoint", attempt->start_path, "save",
                        attempt->save_path, "final", attempt->final));
}

void slot_send_until(struct agent *agent, struct slot *slot, const struct attempt *attempt)
{
    slot_send(agent, slot,
              json_pack("{s:s,s:I,s:I,s:I}", "type", "until", "trial", (json_int_t)attempt->trial, "attempt",
                        (json_int_t)attempt->number, "until", (json_int_t)attempt->until));
}

void slot_send_stop(struct agent *agent, struct slot *slot, const struct attempt *attempt, const char *reason)
{
    slot_send(agent, slot,
              json_pack("{s:s,s:I,s:I,s:s}", "type", "stop", "trial", (json_int_t)attempt->trial, "attempt",
                        (json_int_t)attempt->number, "reason", reason));
}

static void slot_idle(struct agent *agent, struct slot *slot, const json_t *line)
{
    if (slot->state != SLOT_STARTING) {
        return;
    }
    free(slot->device);
    slot->device = strdup(json_get_string(line, "device", "cpu"));
    slot->state = SLOT_READY;
    slot->early_deaths = 0;
    log_debug(agent->log, "", "slot %d is ready on %s", slot->number, slot->device ? slot->device : "");
}

/* One line of a runner. Only about the attempt the slot has; anything else is of a run that is over for the
 * agent. */
static void slot_take(struct agent *agent, struct slot *slot, json_t *line)
{
    const char *type = json_get_string(line, "type", "");
    if (strcmp(type, "idle") == 0) {
        slot_idle(agent, slot, line);
        return;
    }
    bool ended = strcmp(type, "ended") == 0;
    bool spoilt = ended && json_get_boolean(line, "device_failed", false);
    if (ended && slot->state == SLOT_RUNNING) {
        slot->state = SLOT_READY;
        slot->device_failures = spoilt ? slot->device_failures : 0;
    }
    if (spoilt) {
        snprintf(slot->failure, sizeof slot->failure, "%s", json_get_string(line, "error", ""));
        slot->failing = json_get_integer(line, "trial", -1);
        log_warning(agent->log, "", "slot %d: %s failed: %s", slot->number, agent->devices[slot->number].id,
                    slot->failure);
        slot_await_death(agent, slot); /* it ends by itself; the next one begins afresh */
    }
    struct attempt *attempt = slot->attempt;
    if (!attempt || attempt->state != ATTEMPT_RUNNING ||
        json_get_integer(line, "trial", -1) != attempt->trial ||
        json_get_integer(line, "attempt", -1) != attempt->number) {
        return;
    }
    if (ended) {
        attempt_runner_ended(agent, attempt, line);
    } else if (strcmp(type, "report") == 0) {
        attempt_take_report(agent, attempt, line);
    }
}

void slot_read(struct agent *agent, struct slot *slot)
{
    struct error err = {0};
    json_t *line = NULL;
    int result = 0;
    child_read_log(&slot->child);
    /* Reports that came before a death count: they are read to the end. Those behind nonsense do not. */
    while (slot->child.link_fd >= 0 && slot->fault[0] == '\0' &&
           (result = link_receive(&slot->link, &line, &err)) == 1) {
        slot_take(agent, slot, line);
        json_decref(line);
    }
    if (result == 0 || slot->state == SLOT_ENDING || slot->state == SLOT_EMPTY) {
        return;
    }
    if (err.code == ERROR_CONNECT) {
        slot_await_death(agent, slot); /* it is on its way out by itself: let it tell how */
    } else {
        slot_kill(agent, slot, err.message);
    }
}

static bool kernel_ended_for_memory(struct agent *agent, const struct slot *slot, int status)
{
    int64_t kills = out_of_memory_kills("");
    bool more = kills > agent->oom_kills;
    agent->oom_kills = kills;
    if (WIFEXITED(status) && WEXITSTATUS(status) == ENOMEM) {
        return true; /* the runner's own word for it */
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !slot->child.killed && more;
}

/* "the runner was ended by signal 11 (Segmentation fault)" and its last words. free() it. */
static char *death_text(const struct slot *slot, int status)
{
    struct text text;
    text_init(&text);
    if (slot->fault[0]) {
        text_printf(&text, "the runner was ended: %s", slot->fault);
    } else if (WIFSIGNALED(status)) {
        text_printf(&text, "the runner was ended by signal %d (%s)", WTERMSIG(status),
                    strsignal(WTERMSIG(status)));
    } else {
        text_printf(&text, "the runner ended with exit code %d", WEXITSTATUS(status));
    }
    char *words = child_log_end(&slot->child, ERROR_TEXT_SIZE);
    if (words && words[0]) {
        text_append(&text, "; it printed:\n");
        text_append(&text, words);
    }
    free(words);
    return text_steal(&text);
}

static void slot_attempt_died(struct agent *agent, struct slot *slot, enum outcome outcome, const char *text)
{
    struct attempt *attempt = slot->attempt;
    if (!attempt) {
        return;
    }
    if (attempt->state == ATTEMPT_RUNNING) {
        log_warning(agent->log, "", "trial %lld attempt %lld: %s", (long long)attempt->trial,
                    (long long)attempt->number, text ? text : "crashed");
        attempt_end(agent, attempt, outcome, text);
    } else if (attempt->state == ATTEMPT_HELD || attempt->state == ATTEMPT_UPLOADING) {
        attempt->slot = NULL; /* saved already; it only cannot go on in memory */
        slot->attempt = NULL;
    }
}

static void slot_died(struct agent *agent, struct slot *slot, int status)
{
    slot_read(agent, slot); /* its last reports */
    child_close(&slot->child);
    bool early = slot->device == NULL, gpu = slot_has_gpu(agent, slot);
    bool memory = kernel_ended_for_memory(agent, slot, status);
    char *text = death_text(slot, status);
    free(slot->device);
    slot->device = NULL;
    slot->state = SLOT_EMPTY;
    slot_attempt_died(agent, slot, memory ? OUTCOME_OUT_OF_MEMORY : OUTCOME_CRASHED, text);
    slot->early_deaths = early ? slot->early_deaths + 1 : 0;
    slot->restart_ns = agent->now_ns + (slot->early_deaths + slot->device_failures) * RESTART_NS;
    if (gpu && (early || slot->failure[0])) {
        slot_device_failed(agent, slot, early ? -1 : slot->failing,
                           early ? (text ? text : "") : slot->failure);
    }
    slot->failure[0] = '\0';
    if (!gpu && slot->early_deaths >= EARLY_DEATHS_LIMIT) {
        struct error err;
        error_set(&err, ERROR_RESOURCE, "slot %d: the runner ended %d times before it was ready: %s",
                  slot->number, slot->early_deaths, text ? text : "");
        agent_break(agent, err.message);
    }
    free(text);
}

void agent_slots_step(struct agent *agent)
{
    /* A death shows at the link at once; asking for it otherwise is for a link that something else keeps
     * open. */
    bool ask_all = agent->now_ns >= agent->ask_ns;
    if (ask_all) {
        agent->ask_ns = agent->now_ns + ASK_NS;
    }
    for (int i = 0; i < agent->slot_count; i++) {
        struct slot *slot = &agent->slots[i];
        int status = 0;
        if (slot->state == SLOT_ENDING && agent->now_ns >= slot->kill_ns) {
            child_kill(&slot->child);
        }
        if ((slot->state == SLOT_ENDING ||
             (ask_all && slot->state != SLOT_EMPTY && slot->state != SLOT_OUT)) &&
            child_has_ended(&slot->child, &status)) {
            slot_died(agent, slot, status);
        }
        if (slot->state == SLOT_EMPTY && !agent->finished && agent->now_ns >= slot->restart_ns &&
            !agent->interrupting) {
            slot_start(agent, slot);
        }
    }
}
