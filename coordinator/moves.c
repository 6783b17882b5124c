/* The table of moves. The diagram stands in engine.h. */
#include "coordinator/moves.h"

#include <stddef.h>

#define REASON(reason) (1u << (reason))

#define NO_REASON REASON(REASON_NONE)
#define FAILED_REASONS                                                                                       \
    (REASON(REASON_DIVERGED) | REASON(REASON_OUT_OF_MEMORY) | REASON(REASON_TIMED_OUT) |                     \
     REASON(REASON_CRASHED) | REASON(REASON_NO_METRIC) | REASON(REASON_INVALID) | REASON(REASON_LOST))

static const struct move {
    enum trial_state from, to;
    unsigned reasons; /* a bit for each allowed one */
} moves[] = {
    {TRIAL_WAITING, TRIAL_RUNNING, NO_REASON},
    {TRIAL_WAITING, TRIAL_CANCELLED, REASON(REASON_USER)},
    /* Its rung closed, or the sweep was stopped, while it waited to go on. */
    {TRIAL_WAITING, TRIAL_STOPPED, REASON(REASON_PRUNED) | REASON(REASON_USER)},
    {TRIAL_RUNNING, TRIAL_WAITING, NO_REASON},
    {TRIAL_RUNNING, TRIAL_PAUSED, NO_REASON},
    {TRIAL_RUNNING, TRIAL_COMPLETED, REASON(REASON_FINISHED)},
    {TRIAL_RUNNING, TRIAL_STOPPED, REASON(REASON_PRUNED) | REASON(REASON_THRESHOLD) | REASON(REASON_USER)},
    {TRIAL_RUNNING, TRIAL_FAILED, FAILED_REASONS},
    {TRIAL_PAUSED, TRIAL_WAITING, NO_REASON},
    {TRIAL_PAUSED, TRIAL_STOPPED, REASON(REASON_PRUNED) | REASON(REASON_USER)},
};

bool move_is_allowed(enum trial_state from, enum trial_state to, enum trial_reason reason)
{
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
        if (moves[i].from == from && moves[i].to == to)
            return moves[i].reasons & REASON(reason);
    return false;
}

int trial_move(struct trial_record *trial, enum trial_state to, enum trial_reason reason, struct error *err)
{
    if (!move_is_allowed(trial->state, to, reason))
        return error_set(err, ERROR_INTERNAL, "trial %lld: the move %s -> %s/%s is not allowed",
                         (long long)trial->number, trial_state_name(trial->state), trial_state_name(to),
                         trial_reason_name(reason));
    trial->state = to;
    trial->reason = reason;
    return 0;
}

bool trial_state_is_end(enum trial_state state)
{
    return state == TRIAL_COMPLETED || state == TRIAL_STOPPED || state == TRIAL_FAILED ||
           state == TRIAL_CANCELLED;
}
