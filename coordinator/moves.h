/* Moves of a trial: the one table of allowed changes of state, checked on every move. */
#ifndef RUNG_COORDINATOR_MOVES_H
#define RUNG_COORDINATOR_MOVES_H

#include "base/error.h"
#include "coordinator/record.h"

#include <stdbool.h>

/* May a trial in state `from` become `to` for `reason` (REASON_NONE for states that are no end)? */
bool move_is_allowed(enum trial_state from, enum trial_state to, enum trial_reason reason);

/* Makes the move, or returns -1 (ERROR_INTERNAL, naming trial and states) and changes nothing. */
int trial_move(struct trial_record *trial, enum trial_state to, enum trial_reason reason, struct error *err);

/* completed, stopped, failed and cancelled are ends: nothing follows them. */
bool trial_state_is_end(enum trial_state state);

#endif
