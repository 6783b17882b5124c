/* simulate [--seed N] [--seeds N] [--first N] [--verbose]: calm and faulty runs from seeds, compared; and one
 * that is stopped.
 * Ends with 1, naming the seed, when anything does not hold. */
#include "simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEEDS 1000

struct options {
    uint64_t first, count;
    bool verbose;
};

struct totals {
    int64_t fired[FAULT_COUNT], least[FAULT_COUNT];
    int64_t messages, turns, restarts;
    double virtual_seconds;
};

static void first_difference(const char *calm, const char *faulty)
{
    size_t at = 0, line = 0;
    for (; calm[at] && calm[at] == faulty[at]; at++)
        if (calm[at] == '\n')
            line = at + 1;
    printf("  calm:   %.*s\n  faulty: %.*s\n", (int)strcspn(calm + line, "\n"), calm + line,
           (int)strcspn(faulty + line, "\n"), faulty + line);
}

static bool report_violation(const struct simulation *simulation)
{
    if (*simulation->violation)
        printf("seed %llu (%s%s): %s\n", (unsigned long long)simulation->seed,
               scheme_names[simulation->scheme],
               simulation->calm      ? ", calm"
               : simulation->stop_at ? ", stopped"
                                     : "",
               simulation->violation);
    return !*simulation->violation;
}

static void totals_add(struct totals *totals, const struct simulation *simulation)
{
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        totals->fired[fault] += simulation->fired[fault];
        if (simulation->fired[fault] < totals->least[fault])
            totals->least[fault] = simulation->fired[fault];
    }
    totals->messages += simulation->messages;
    totals->turns += simulation->turns;
    totals->restarts += simulation->restarts;
    totals->virtual_seconds += (double)simulation->now_ns / SECOND;
}

static bool run_faulty(uint64_t seed, bool verbose, int64_t points, const char *calm_board,
                       struct totals *totals, uint64_t *trace)
{
    struct simulation simulation;
    simulation_init(&simulation, seed, false, points);
    simulation.verbose = verbose;
    simulation_run(&simulation);
    bool passed = report_violation(&simulation);
    char *board = simulation_leaderboard(&simulation);
    if (passed && scheme_is_deterministic(simulation.scheme) && strcmp(board, calm_board) != 0) {
        printf("seed %llu (%s): the leaderboard is not the calm run's\n", (unsigned long long)seed,
               scheme_names[simulation.scheme]);
        first_difference(calm_board, board);
        passed = false;
    }
    *trace = simulation.trace;
    if (totals)
        totals_add(totals, &simulation);
    free(board);
    simulation_release(&simulation);
    return passed;
}

/* The same sweep, which somebody stops; there is no calm run to compare it with. */
static bool run_stopped(uint64_t seed, bool verbose, int64_t points)
{
    struct simulation simulation;
    simulation_init(&simulation, seed, false, points);
    simulation_plan_stop(&simulation);
    simulation.verbose = verbose;
    simulation_run(&simulation);
    bool passed = report_violation(&simulation);
    simulation_release(&simulation);
    return passed;
}

static bool run_seed(uint64_t seed, bool verbose, struct totals *totals)
{
    struct simulation calm;
    uint64_t trace, again;
    simulation_init(&calm, seed, true, 0);
    simulation_run(&calm);
    bool passed = report_violation(&calm);
    char *board = simulation_leaderboard(&calm);
    int64_t points = calm.store.points;
    simulation_release(&calm);
    passed = passed && run_faulty(seed, verbose, points, board, totals, &trace);
    if (passed && seed % 50 == 0) {
        passed = run_faulty(seed, false, points, board, NULL, &again);
        if (passed && trace != again) {
            printf("seed %llu does not replay\n", (unsigned long long)seed);
            passed = false;
        }
    }
    free(board);
    return passed && run_stopped(seed, verbose, points);
}

static void totals_print(const struct totals *totals, uint64_t seeds, double seconds)
{
    printf("%llu seeds, %.0f virtual hours, %.1f million messages, %.1f million turns, %lld recoveries, in "
           "%.1f s\n",
           (unsigned long long)seeds, totals->virtual_seconds / 3600, (double)totals->messages / 1e6,
           (double)totals->turns / 1e6, (long long)totals->restarts, seconds);
    for (int fault = 0; fault < FAULT_COUNT; fault++)
        printf("  %-24s %8lld in all, at least %lld a seed\n", fault_name((enum fault)fault),
               (long long)totals->fired[fault], (long long)totals->least[fault]);
}

static bool options_read(struct options *options, int argc, char **argv)
{
    const char *seeds = getenv("RUNG_SIMULATION_SEEDS"); /* fewer where a sanitizer makes them slow */
    *options = (struct options){.first = 1, .count = seeds ? strtoull(seeds, NULL, 10) : SEEDS};
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--verbose") == 0) {
            options->verbose = true;
        } else if (strcmp(argv[i], "--seed") == 0 && has_value) {
            options->first = strtoull(argv[++i], NULL, 10);
            options->count = 1;
        } else if (strcmp(argv[i], "--first") == 0 && has_value) {
            options->first = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seeds") == 0 && has_value) {
            options->count = strtoull(argv[++i], NULL, 10);
        } else {
            fprintf(stderr, "usage: simulate [--seed N] [--first N] [--seeds N] [--verbose]\n");
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options options;
    struct totals totals = {0};
    if (!options_read(&options, argc, argv))
        return 2;
    for (int fault = 0; fault < FAULT_COUNT; fault++)
        totals.least[fault] = INT64_MAX;
    clock_t begin = clock();
    for (uint64_t i = 0; i < options.count; i++) {
        if (!run_seed(options.first + i, options.verbose, &totals)) {
            printf("replay with: simulate --seed %llu --verbose\n", (unsigned long long)(options.first + i));
            return 1;
        }
    }
    totals_print(&totals, options.count, (double)(clock() - begin) / CLOCKS_PER_SEC);
    return 0;
}
