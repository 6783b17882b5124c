/* The plan of a sweep: how many trials reach each rung, and the epochs that takes against stopping none. */
#include "cli/check_report.h"

#include <math.h>

/* Trials that reach rung k of a bracket of n: max(1, floor(n_k/eta)) of each rung go on. */
static void add_bracket(int64_t trials, double eta, int rungs, double counts[STOPPING_LEVELS])
{
    for (int rung = 0; rung < rungs && trials > 0; rung++) {
        counts[rung] += (double)trials;
        int64_t next = (int64_t)floor((double)trials / eta);
        trials = next > 0 ? next : 1;
    }
}

static void count_trials(const struct stopping_settings *stopping, int rungs, double counts[STOPPING_LEVELS])
{
    int64_t bracket = stopping->bracket_size > 0 ? stopping->bracket_size : stopping->trials;
    if (stopping->kind != STOPPING_SUCCESSIVE_HALVING || bracket > stopping->trials) {
        bracket = stopping->trials;
    }
    int64_t whole = stopping->trials / bracket;
    add_bracket(bracket, stopping->eta, rungs, counts);
    for (int rung = 0; rung < rungs; rung++) {
        counts[rung] *= (double)whole;
    }
    add_bracket(stopping->trials % bracket, stopping->eta, rungs, counts);
}

double plan_resource(const struct stopping_settings *stopping)
{
    int64_t levels[STOPPING_LEVELS];
    double counts[STOPPING_LEVELS] = {0}, planned = 0;
    int rungs = stopping_levels(stopping, levels, NULL);
    if (stopping->trials <= 0) {
        return 0;
    }
    count_trials(stopping, rungs, counts);
    for (int rung = 0; rung < rungs; rung++) {
        planned += counts[rung] * (double)(levels[rung] - (rung > 0 ? levels[rung - 1] : 0));
    }
    return planned;
}

int check_plan(json_t *report, const struct stopping_settings *stopping, int64_t replicates)
{
    int64_t levels[STOPPING_LEVELS];
    double counts[STOPPING_LEVELS] = {0};
    json_t *array = json_array();
    int rungs = stopping_levels(stopping, levels, NULL);
    bool finite = stopping->trials > 0;
    if (finite) {
        count_trials(stopping, rungs, counts);
    }
    for (int rung = 0; rung < rungs; rung++) {
        double epochs =
            counts[rung] * (double)(levels[rung] - (rung > 0 ? levels[rung - 1] : 0)) * (double)replicates;
        json_array_append_new(
            array, json_pack("{s:i, s:I, s:o, s:o}", "rung", rung, "resource", (json_int_t)levels[rung],
                             "trials", finite ? json_integer((json_int_t)counts[rung]) : json_null(),
                             "epochs", finite ? json_integer((json_int_t)epochs) : json_null()));
    }
    double seeds = (double)replicates, planned = plan_resource(stopping) * seeds;
    double without = (double)stopping->trials * (double)stopping->max_iter * seeds;
    json_t *epochs =
        json_pack("{s:o, s:o}", "planned", finite ? json_integer((json_int_t)planned) : json_null(),
                  "without", finite ? json_integer((json_int_t)without) : json_null());
    static const char *const rules[] = {[STOPPING_NONE] = "none",
                                        [STOPPING_SUCCESSIVE_HALVING] = "successive_halving",
                                        [STOPPING_ASHA_PROMOTION] = "asha promotion",
                                        [STOPPING_ASHA_STOPPING] = "asha stopping"};
    int status = json_object_set_new(report, "rungs", array);
    status |= json_object_set_new(report, "replicates", json_integer(replicates));
    status |= json_object_set_new(report, "epochs", epochs);
    status |= json_object_set_new(report, "rule", json_string(rules[stopping->kind]));
    return status == 0 ? 0 : -1;
}
