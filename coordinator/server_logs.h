/* What attempts printed, kept beside the database: DB.files/SWEEP/trial-000001/attempt-1/{stdout,stderr}.
 * Written on a thread of its own, for making three files can take longer than a whole turn, and without
 * fsync: a log is for people, and nothing else depends on it. */
#ifndef RUNG_COORDINATOR_SERVER_LOGS_H
#define RUNG_COORDINATOR_SERVER_LOGS_H

#include "base/log.h"
#include "coordinator/engine.h"

struct log_keeper;
/* Borrows `log`; copies the rest. NULL: err. */
struct log_keeper *log_keeper_create(const char *db, const char *sweep_id, const struct log *log,
                                     struct error *err);
/* Takes the logs of the effects (which then have none). When the disk lags far behind they are dropped. */
void log_keeper_keep(struct log_keeper *keeper, struct effects *effects);
/* Writes what was taken, then ends the thread. NULL-safe. */
void log_keeper_destroy(struct log_keeper *keeper);

#endif
