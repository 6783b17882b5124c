/* The node's devices: found at the start, and given up when they fail again and again. */
#include "worker/agent_private.h"

#include "worker/devices.h"

#include <stdio.h>
#include <string.h>

#define FAULT_SIZE 300 /* of the reason that is told with heartbeats */

int agent_find_devices(struct agent *agent, const char *request, struct error *err)
{
    struct error why;
    int count = devices_find(request, agent->program, &agent->devices, &why, err);
    if (count < 0) {
        return -1;
    }
    agent->device_count = count;
    if (why.code != ERROR_NONE) {
        log_warning(agent->log, "", "%s", why.message);
    } else if (why.message[0]) {
        log_debug(agent->log, "", "%s", why.message);
    }
    return 0;
}

bool slot_has_gpu(const struct agent *agent, const struct slot *slot)
{
    return device_description_is_gpu(&agent->devices[slot->number]);
}

/* Its last line, which says most: what a runner printed stands before. */
static char *short_reason(const char *why)
{
    size_t size = strlen(why);
    while (size > 0 && why[size - 1] == '\n') {
        size--;
    }
    size_t first = size;
    while (first > 0 && why[first - 1] != '\n' && size - first < FAULT_SIZE) {
        first--;
    }
    char *reason = strndup(why + first, size - first);
    if (reason) {
        utf8_mend(reason);
    }
    return reason;
}

static bool any_slot_left(const struct agent *agent)
{
    for (int i = 0; i < agent->slot_count; i++) {
        if (agent->slots[i].state != SLOT_OUT) {
            return true;
        }
    }
    return false;
}

static void slot_take_out(struct agent *agent, struct slot *slot, const char *why)
{
    struct device_description *device = &agent->devices[slot->number];
    slot->state = SLOT_OUT;
    if (!device->fault) {
        device->fault = short_reason(why);
    }
    log_warning(agent->log, "", "slot %d: %s takes no more work after %d failures in a row: %s", slot->number,
                device->id, slot->device_failures, device->fault ? device->fault : "");
    if (slot->attempt) { /* it waited for the runner: not its fault */
        attempt_end(agent, slot->attempt, OUTCOME_INTERRUPTED, device->fault);
    }
    agent->heartbeat_ns = agent->now_ns; /* the coordinator need not offer it more */
    if (!any_slot_left(agent)) {
        agent_break(agent, device->fault ? device->fault : "no device is left");
    }
}

void slot_device_failed(struct agent *agent, struct slot *slot, int64_t trial, const char *why)
{
    bool same = slot->device_failures == 0 || slot->failed_with == trial;
    slot->failed_with = same ? trial : -1;
    slot->device_failures++;
    if (slot->device_failures >= (slot->failed_with < 0 ? DEVICE_FAILURES_LIMIT : DEVICE_FAILURES_OF_ONE)) {
        slot_take_out(agent, slot, why);
    }
}
