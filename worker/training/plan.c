/* Planning a trial's memory. */
#include "worker/training/plan.h"

static int64_t largest_split(const struct dataset *dataset)
{
    int64_t rows = 1;

    for (int i = 0; i < SPLIT_COUNT; i++)
        rows = dataset->rows[i] > rows ? dataset->rows[i] : rows;
    return rows;
}

static size_t data_size(const struct dataset *dataset)
{
    size_t row = (size_t)(dataset->features + dataset->categories + 1) * 4, rows = 0;

    for (int i = 0; i < SPLIT_COUNT; i++)
        rows += (size_t)dataset->rows[i];
    return row * rows;
}

int plan_init(struct plan *plan, const struct training_settings *settings, const struct dataset *dataset,
              enum device_precision precision, int64_t evaluation_rows, struct error *err)
{
    const struct model_input input = {dataset->features, dataset->categories, dataset->cardinality};
    int64_t rows = dataset->rows[SPLIT_TRAIN], most = largest_split(dataset);

    *plan = (struct plan){.data = data_size(dataset)};
    if (rows < 1)
        return error_set(err, ERROR_USAGE, "there are no training rows");
    if (loss_resolve(settings->loss, dataset->classes, &plan->loss, err) != 0)
        return -1;
    training_derive(settings, rows, &plan->derived);
    if (model_init(&plan->model, settings, &input, loss_outputs(plan->loss, dataset->classes), err) != 0)
        return -1;
    plan->shape = (struct memory_shape){
        .model = &plan->model,
        .settings = settings,
        .precision = precision,
        .labels = dataset->classes > 0,
        .training_rows = rows,
        .steps = plan->derived.steps_per_epoch,
        .norm_batch = plan->derived.norm_batch,
        .evaluation_rows = evaluation_rows < most ? evaluation_rows : most,
    };
    plan_fit(plan, 0);
    return 0;
}

void plan_release(struct plan *plan)
{
    model_release(&plan->model);
}

/* Takes these rows, and sees what that comes to. */
static bool try_rows(struct plan *plan, int64_t micro_batch, int64_t evaluation_rows)
{
    derived_set_micro_batch(&plan->derived, micro_batch);
    plan->shape.micro_rows = derived_most_rows(&plan->derived, plan->shape.training_rows);
    plan->shape.evaluation_rows = evaluation_rows;
    plan->bytes = plan->data + memory_size(&plan->shape);
    plan->fits = plan->available == 0 || plan->bytes <= plan->available;
    return plan->fits;
}

/* The most rows, of 1..most, that fit: of a micro batch, or of an evaluation pass beside `micro_batch`. By
 * bisection, since the sizes grow with the rows. */
static int64_t most_that_fit(struct plan *plan, int64_t micro_batch, int64_t most)
{
    int64_t fits = 1, beyond = most + 1;

    while (beyond - fits > 1) {
        int64_t middle = fits + (beyond - fits) / 2;
        bool fit = micro_batch > 0 ? try_rows(plan, micro_batch, middle) : try_rows(plan, middle, 1);
        *(fit ? &fits : &beyond) = middle;
    }
    return fits;
}

void plan_fit(struct plan *plan, size_t available)
{
    int64_t micro_batch = plan->derived.micro_batch, evaluation = plan->shape.evaluation_rows;

    plan->available = available;
    if (try_rows(plan, micro_batch, evaluation))
        return;
    micro_batch = most_that_fit(plan, 0, micro_batch);
    evaluation = most_that_fit(plan, micro_batch, evaluation);
    try_rows(plan, micro_batch, evaluation);
}

bool plan_shrink(struct plan *plan)
{
    int64_t micro_batch = plan->derived.micro_batch, evaluation = plan->shape.evaluation_rows;

    try_rows(plan, micro_batch > 1 ? micro_batch / 2 : 1, evaluation > 1 ? evaluation / 2 : 1);
    return plan->derived.micro_batch < micro_batch || plan->shape.evaluation_rows < evaluation;
}

json_t *plan_to_json(const struct plan *plan)
{
    struct memory_shape none = plan->shape;

    none.micro_rows = none.evaluation_rows = 0;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "parameters", (json_int_t)plan->model.learnt,
        "fixed_bytes", (json_int_t)memory_size(&none), "data_bytes", (json_int_t)plan->data, "bytes_per_row",
        (json_int_t)memory_row_size(&plan->shape), "micro_batch", (json_int_t)plan->derived.micro_batch,
        "accumulation", (json_int_t)plan->derived.accumulation, "evaluation_rows",
        (json_int_t)plan->shape.evaluation_rows, "bytes", (json_int_t)plan->bytes, "available",
        (json_int_t)plan->available, "fits", plan->fits);
}
