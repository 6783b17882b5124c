/* What `rung check` has to say, as one JSON object; the table for people is printed from the same. */
#ifndef RUNG_CLI_CHECK_REPORT_H
#define RUNG_CLI_CHECK_REPORT_H

#include "coordinator/spec.h"
#include "wire/message.h"
#include "worker/training/data.h"

#include <stdio.h>

/* {"name", "method", "metric", "seed", "seed_given", "run_cap", "points", "trials", "parameters": [], "data":
 * {}, "rungs":
 * [], "rule", "epochs": {"planned", "without"}, "derived": {"batch_sizes": []}, "notes": [], "sample": []};
 * null where a number is not finite. `sample`: trials to propose. New reference; NULL without memory. */
json_t *check_report(const struct spec *spec, const struct dataset *dataset, int64_t sample);
/* check_plan.c: rungs and epochs, into the report, and "replicates": each of these trains a trial's epochs.
 * -1 without memory. */
int check_plan(json_t *report, const struct stopping_settings *stopping, int64_t replicates);
/* Epochs that the sweep is expected to train, all trials together; 0: not known. Exact for successive
 * halving. */
double plan_resource(const struct stopping_settings *stopping);
/* check_warnings.c: more notes, of batches that are too large or too small and of a refit without test rows.
 * `derived`: of the report. -1 without memory. */
int check_warn(json_t *notes, const struct spec *spec, const struct dataset *dataset, const json_t *derived);
/* check_ignored.c: more notes, of settings that change nothing. -1 without memory. */
int check_ignored(json_t *notes, const struct spec *spec, const struct dataset *dataset);
/* check_memory.c: "plan" into the report: {"device": {}, "smallest": {}, "largest": {}, "fits"}, of the
 * points that take the least and the most memory on that device; each as trainer_plan has it, with
 * "precision", "replicates" and "point". null without a point that can be trained. And a note
 * for each precision of theirs that the device only emulates. -1 without memory. */
int check_memory(json_t *report, const struct spec *spec, const struct dataset *dataset,
                 const struct device_description *device);
/* check_table.c: for people. */
void check_print(const json_t *report, FILE *out);

#endif
