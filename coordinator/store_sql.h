/* The store's SQL: the schema of STORE_VERSION and every statement, named. Text only: store.c compiles it.
 *
 * States and outcomes are stored by name, so that the file can be read with any SQLite tool and outlives a
 * renumbered enum. Parameters and metrics are canonical JSON text. NULL in a REAL column is NaN or none. */
#ifndef RUNG_COORDINATOR_STORE_SQL_H
#define RUNG_COORDINATOR_STORE_SQL_H

#define SQL_SCHEMA                                                                                           \
    "CREATE TABLE origin (rung_version TEXT NOT NULL) STRICT;"                                               \
    "CREATE TABLE sweep ("                                                                                   \
    " id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, state TEXT NOT NULL, spec_text TEXT,"                  \
    " normalised TEXT, spec_sha256 TEXT NOT NULL, seed TEXT NOT NULL, version TEXT,"                         \
    " created_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, final TEXT, baseline TEXT,"                    \
    " precision TEXT NOT NULL DEFAULT '') STRICT;"                                                           \
    "CREATE TABLE trial ("                                                                                   \
    " sweep TEXT NOT NULL, number INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,"              \
    " parameters TEXT, derived TEXT, objective REAL,"                                                        \
    " resource INTEGER NOT NULL, bracket INTEGER NOT NULL, checkpoint TEXT NOT NULL,"                        \
    " checkpoint_bytes INTEGER NOT NULL, checkpoint_resource INTEGER NOT NULL, retries INTEGER NOT NULL,"    \
    " losses INTEGER NOT NULL, is_final INTEGER NOT NULL, PRIMARY KEY (sweep, number)) STRICT, WITHOUT "     \
    "ROWID;"                                                                                                 \
    "CREATE TABLE attempt ("                                                                                 \
    " sweep TEXT NOT NULL, trial INTEGER NOT NULL, number INTEGER NOT NULL, worker TEXT, session TEXT,"      \
    " device TEXT, start INTEGER NOT NULL, until INTEGER NOT NULL, started_ms INTEGER NOT NULL,"             \
    " ended_ms INTEGER NOT NULL, last_sequence INTEGER NOT NULL, outcome TEXT NOT NULL, error TEXT,"         \
    " seconds REAL NOT NULL, details TEXT, PRIMARY KEY (sweep, trial, number)) STRICT, WITHOUT ROWID;"       \
    "CREATE TABLE report ("                                                                                  \
    " sweep TEXT NOT NULL, trial INTEGER NOT NULL, resource INTEGER NOT NULL, attempt INTEGER NOT NULL,"     \
    " received_ms INTEGER NOT NULL, seconds REAL NOT NULL, metrics TEXT,"                                    \
    " PRIMARY KEY (sweep, trial, resource, attempt)) STRICT, WITHOUT ROWID;"                                 \
    "CREATE TABLE rung_entry ("                                                                              \
    " sweep TEXT NOT NULL, trial INTEGER NOT NULL, bracket INTEGER NOT NULL, rung INTEGER NOT NULL,"         \
    " entry_order INTEGER NOT NULL, value REAL, tie REAL, promoted INTEGER NOT NULL,"                        \
    " PRIMARY KEY (sweep, trial, rung)) STRICT, WITHOUT ROWID;"                                              \
    "CREATE TABLE worker ("                                                                                  \
    " sweep TEXT NOT NULL, name TEXT NOT NULL, session TEXT, host TEXT, version TEXT, devices TEXT,"         \
    " first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL, connected INTEGER NOT NULL,"                      \
    " PRIMARY KEY (sweep, name)) STRICT, WITHOUT ROWID;"                                                     \
    "INSERT INTO origin VALUES ('" RUNG_VERSION "');"

/* From version 1 to 2. */
#define SQL_MIGRATE_1                                                                                        \
    "ALTER TABLE sweep ADD COLUMN baseline TEXT;"                                                            \
    "ALTER TABLE sweep ADD COLUMN precision TEXT NOT NULL DEFAULT '';"                                       \
    "ALTER TABLE attempt ADD COLUMN details TEXT;"

/* Compiled when a store opens; STATEMENT_x is the index of its text. `write`: of use to a writer only.
 *
 * A sweep is updated and never replaced: REPLACE would silently delete another sweep of the same name. */
#define SQL_SWEEP_COLUMNS                                                                                    \
    "id, name, state, spec_text, normalised, spec_sha256, seed, version, created_ms, ended_ms, final, "      \
    "baseline, precision"
#define STORE_STATEMENTS(X)                                                                                  \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                              \
    X(COMMIT, "COMMIT")                                                                                      \
    X(ROLLBACK, "ROLLBACK")                                                                                  \
    X(BEGIN_READ, "BEGIN")                                                                                   \
    X(PUT_SWEEP, "INSERT INTO sweep (" SQL_SWEEP_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"              \
                 " ON CONFLICT (id) DO UPDATE SET name=excluded.name, state=excluded.state,"                 \
                 " spec_text=excluded.spec_text, normalised=excluded.normalised,"                            \
                 " spec_sha256=excluded.spec_sha256, seed=excluded.seed, version=excluded.version,"          \
                 " created_ms=excluded.created_ms, ended_ms=excluded.ended_ms, final=excluded.final,"        \
                 " baseline=excluded.baseline, precision=excluded.precision")                                \
    X(PUT_TRIAL, "INSERT OR REPLACE INTO trial VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                      \
    X(PUT_ATTEMPT, "INSERT OR REPLACE INTO attempt VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                  \
    X(PUT_REPORT, "INSERT OR REPLACE INTO report VALUES (?,?,?,?,?,?,?)")                                    \
    X(PUT_RUNG_ENTRY, "INSERT OR REPLACE INTO rung_entry VALUES (?,?,?,?,?,?,?,?)")                          \
    X(PUT_WORKER, "INSERT OR REPLACE INTO worker VALUES (?,?,?,?,?,?,?,?,?)")                                \
    X(FIND_SWEEP, "SELECT " SQL_SWEEP_COLUMNS " FROM sweep WHERE id = ?1 OR name = ?1"                       \
                  " ORDER BY id = ?1 DESC LIMIT 1")                                                          \
    X(NEWEST_SWEEP, "SELECT " SQL_SWEEP_COLUMNS " FROM sweep ORDER BY created_ms DESC, rowid DESC LIMIT 1")  \
    X(GET_SWEEPS, "SELECT " SQL_SWEEP_COLUMNS " FROM sweep ORDER BY created_ms DESC, rowid DESC")            \
    X(GET_TRIALS, "SELECT * FROM trial WHERE sweep = ? ORDER BY number")                                     \
    X(GET_ATTEMPTS, "SELECT * FROM attempt WHERE sweep = ? ORDER BY trial, number")                          \
    X(GET_REPORTS, "SELECT * FROM report WHERE sweep = ? ORDER BY trial, resource, attempt")                 \
    X(GET_RUNG_ENTRIES, "SELECT * FROM rung_entry WHERE sweep = ? ORDER BY entry_order, trial, rung")        \
    X(GET_WORKERS, "SELECT * FROM worker WHERE sweep = ? ORDER BY name")                                     \
    X(GET_CHECKPOINTS, "SELECT DISTINCT checkpoint FROM trial WHERE checkpoint != ''")                       \
    X(GET_TRIAL, "SELECT * FROM trial WHERE sweep = ? AND number = ?")                                       \
    X(GET_TRIAL_ATTEMPTS, "SELECT * FROM attempt WHERE sweep = ? AND trial = ? ORDER BY number")             \
    X(GET_CURVE, "SELECT * FROM report AS r WHERE sweep = ? AND trial = ? AND NOT EXISTS (SELECT 1"          \
                 " FROM report AS n WHERE n.sweep = r.sweep AND n.trial = r.trial"                           \
                 " AND n.resource = r.resource AND n.attempt > r.attempt) ORDER BY resource")                \
    X(COUNT_TRIALS, "SELECT state, count(*) FROM trial WHERE sweep = ? AND NOT is_final GROUP BY state")     \
    X(BEST_TRIAL, "SELECT number, objective FROM trial WHERE sweep = ?1 AND NOT is_final"                    \
                  " AND abs(objective) < 9e999 ORDER BY objective * ?2, number LIMIT 1")                     \
    X(NAMES_OF_PARAMETERS, "SELECT key, group_concat(DISTINCT type) FROM trial, json_each(trial.parameters)" \
                           " WHERE sweep = ? AND NOT is_final GROUP BY key")                                 \
    X(NAMES_OF_DERIVED, "SELECT key, group_concat(DISTINCT type) FROM trial, json_each(trial.derived)"       \
                        " WHERE sweep = ? AND NOT is_final GROUP BY key")                                    \
    X(NAMES_OF_METRICS, "SELECT key, 'real' FROM trial AS t, json_each((" SQL_REPORT_LAST "))"               \
                        " WHERE t.sweep = ? AND NOT is_final GROUP BY key")

/* The newest attempt's report per resource is a trial's curve; what is shown is its last point, or its
 * best. ?1 sweep, ?2 the factor that makes smaller better (-1 or 1), ?3 the metric's JSON path (objective
 * `best` only). 9e999 reads as infinity: abs(x) < 9e999 is true for finite numbers alone. */
#define SQL_REPORT_LAST                                                                                      \
    "SELECT metrics FROM report AS r WHERE r.sweep = t.sweep AND r.trial = t.number"                         \
    " AND r.resource <= t.resource ORDER BY resource DESC, attempt DESC LIMIT 1"
#define SQL_REPORT_BEST                                                                                      \
    "SELECT metrics FROM report AS r WHERE r.sweep = t.sweep AND r.trial = t.number"                         \
    " AND r.resource <= t.resource AND NOT EXISTS (SELECT 1 FROM report AS n WHERE n.sweep = r.sweep"        \
    " AND n.trial = r.trial AND n.resource = r.resource AND n.attempt > r.attempt)"                          \
    " ORDER BY CASE WHEN json_type(metrics, ?3) IN ('integer', 'real')"                                      \
    " THEN json_extract(metrics, ?3) * ?2 END NULLS LAST, resource LIMIT 1"
/* `ranked` is cheap and sees every trial; the columns of a board cost a look-up each and are worked out
 * only where they are asked for. With --top the trials are chosen first, then shown. */
#define SQL_BOARD(report, source)                                                                            \
    "(SELECT rank, trial, state, reason, objective, resource, bracket, parameters, derived,"                 \
    " (" report ") AS metrics,"                                                                              \
    " (SELECT sum(seconds) FROM attempt AS a WHERE a.sweep = t.sweep AND a.trial = t.number) AS seconds,"    \
    " (SELECT worker FROM attempt AS a WHERE a.sweep = t.sweep AND a.trial = t.number"                       \
    "  ORDER BY number DESC LIMIT 1) AS worker,"                                                             \
    " (SELECT device FROM attempt AS a WHERE a.sweep = t.sweep AND a.trial = t.number"                       \
    "  ORDER BY number DESC LIMIT 1) AS device,"                                                             \
    " (SELECT count(*) FROM attempt AS a WHERE a.sweep = t.sweep AND a.trial = t.number) AS attempts"        \
    " FROM " source " CROSS JOIN trial AS t ON t.sweep = ?1 AND t.number = " source ".trial)"
#define SQL_RANKED                                                                                           \
    "WITH ranked AS (SELECT number AS trial,"                                                                \
    " CASE WHEN abs(objective) < 9e999 THEN row_number() OVER (ORDER BY"                                     \
    "  CASE WHEN abs(objective) < 9e999 THEN objective * ?2 END NULLS LAST, number) END AS rank"             \
    " FROM trial WHERE sweep = ?1 AND NOT is_final)"
#define SQL_CHOSEN(report) ", chosen AS MATERIALIZED (SELECT trial, rank FROM " SQL_BOARD(report, "ranked")
#define SQL_SHOWN(report, source)                                                                            \
    " SELECT rank, trial, state, reason, objective, resource, parameters, derived, metrics, seconds,"        \
    " worker, device, attempts FROM " SQL_BOARD(report, source)
#define SQL_LEADERBOARD_FIRST_FREE 4 /* number of the first bound value of --where */

#endif
