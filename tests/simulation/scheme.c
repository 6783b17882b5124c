/* The sweeps that are simulated, and their trials: everything a trial does is a function of its parameters,
 * so that the calm run and the faulty one must agree. */
#include "simulation.h"

#include "base/random.h"

#include <stdio.h>
#include <string.h>

const char *const scheme_names[] = {"random", "grid", "halving", "asha promotion", "asha stopping"};

/* Of every 7 trials one diverges and one runs out of memory. */
#define FATES 7
enum { FATE_DIVERGES = 3, FATE_EXHAUSTS = 5 };

bool scheme_is_deterministic(enum scheme scheme)
{
    return scheme == SCHEME_RANDOM || scheme == SCHEME_GRID || scheme == SCHEME_HALVING;
}

static int64_t endless(const struct space *space)
{
    (void)space;
    return -1;
}

static json_t *propose(const struct space *space, uint64_t seed, int64_t number)
{
    (void)space;
    double x = random_unit(seed, (uint32_t)number, 17, 0);
    return json_pack("{s:f, s:I}", "x", x, "fate", (json_int_t)(number % FATES));
}

/* Random search, with the fates dealt out evenly. */
static const struct sampler_methods fated_sampler = {"random", endless, propose};

static json_t *values_of(int count, bool integer)
{
    json_t *values = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(values, integer ? json_integer(i) : json_real((double)i / count));
    return values;
}

static void space_init(struct simulation *simulation)
{
    simulation->space = (struct space){.parameters = simulation->parameters, .count = 2};
    simulation->parameters[0] = (struct parameter){
        .name = (char *)"fate", .distribution = DISTRIBUTION_CATEGORICAL, .values = values_of(FATES, true)};
    simulation->parameters[1] =
        (struct parameter){.name = (char *)"x",
                           .distribution = DISTRIBUTION_CATEGORICAL,
                           .values = values_of((int)(simulation->trials / FATES), false)};
}

static void stopping_init(struct simulation *simulation, struct stopping_settings *stopping)
{
    static const enum stopping_kind kinds[] = {STOPPING_NONE, STOPPING_NONE, STOPPING_SUCCESSIVE_HALVING,
                                               STOPPING_ASHA_PROMOTION, STOPPING_ASHA_STOPPING};
    bool rungs = simulation->scheme >= SCHEME_HALVING;
    *stopping = (struct stopping_settings){
        .kind = kinds[simulation->scheme],
        .min_iter = rungs ? 1 : 3,
        .max_iter = rungs ? 9 : 3,
        .eta = 3,
        .trials = simulation->trials,
        .bracket_size = simulation->seed / SCHEME_COUNT % 3 == 0 ? 30 : 0,
        .maximize = simulation->settings.maximize,
        .tie_minimize = true,
    };
}

void scheme_init(struct simulation *simulation)
{
    struct engine_settings *settings = &simulation->settings;
    bool deterministic = scheme_is_deterministic(simulation->scheme);
    simulation->trials = 23 * FATES;
    space_init(simulation);
    *settings = (struct engine_settings){
        .sweep_id = "simulate",
        .sweep_name = "simulated",
        .sampler = simulation->scheme == SCHEME_GRID ? &grid_sampler : &fated_sampler,
        .space = &simulation->space,
        .seed = simulation->seed,
        .run_cap = simulation->scheme == SCHEME_GRID ? -1 : simulation->trials,
        .metric = "score",
        .tie_metric = "loss",
        .maximize = simulation->seed & 1,
        .objective_best = simulation->seed & 2,
        .devices_per_trial = 1,
        .trials_per_device = 1,
        /* Losing a trial for good would change what is compared with the calm run. */
        .max_retries = deterministic ? 100000 : 1,
        .max_losses = deterministic ? 100000 : 3,
        .lease_ns = 6 * SECOND,
        .heartbeat_ns = SECOND,
    };
    stopping_init(simulation, &settings->stopping);
    settings->baseline = simulation->seed & 8;
    if (simulation->seed & 4) {
        simulation->final_request =
            json_pack("{s:s, s:i, s:s}", "refit", "train", "seeds", 1, "epochs", "best");
        settings->final = simulation->final_request;
    }
}

static uint64_t trial_hash(const json_t *parameters)
{
    double x = json_get_number(parameters, "x", -1);
    int64_t fate = json_get_integer(parameters, "fate", -1);
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    struct philox block = philox4x32(bits, (uint32_t)fate, 1, 2, 3);
    return block.word[0] | (uint64_t)block.word[1] << 32;
}

double trial_value(const json_t *parameters, int64_t resource)
{
    uint64_t hash = trial_hash(parameters);
    double quality = (double)(hash % 32) / 32; /* coarse, so that there are ties */
    return quality + (double)(hash / 32 * (uint64_t)resource % 8) / 64;
}

int64_t trial_diverges_at(const json_t *parameters, bool *reports_it)
{
    if (json_get_integer(parameters, "fate", -1) != FATE_DIVERGES)
        return 0;
    uint64_t hash = trial_hash(parameters);
    *reports_it = hash & 1;
    return 1; /* later, pruned trials would never get there and the count would depend on luck */
}

bool trial_exhausts_memory(const json_t *parameters)
{
    return json_get_integer(parameters, "fate", -1) == FATE_EXHAUSTS;
}

void trial_checkpoint(const json_t *parameters, int64_t resource, char sha256[65])
{
    uint64_t key = trial_hash(parameters);
    for (int part = 0; part < 4; part++) {
        struct philox block = philox4x32(key, (uint32_t)resource, (uint32_t)part, 7, 8);
        snprintf(sha256 + part * 16, 17, "%08x%08x", block.word[0], block.word[1]);
    }
}
