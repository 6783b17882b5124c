/* What a trial takes of a device's memory, and the largest micro batch that fits:
 *
 *     bytes = data + fixed + row * micro batch (each tensor rounded up to the device's alignment)
 *
 * computed by memory.h's own layout. */
#ifndef RUNG_WORKER_TRAINING_PLAN_H
#define RUNG_WORKER_TRAINING_PLAN_H

#include "base/json.h"
#include "worker/training/data.h"
#include "worker/training/loss.h"
#include "worker/training/memory.h"

struct plan {
    struct model model;
    enum loss_kind loss;
    struct derived derived; /* with the micro batch that was chosen */
    struct memory_shape shape;
    size_t data, bytes; /* of the shared data; of that and the block */
    size_t available;   /* for both; 0: unbounded */
    bool fits;
};

/* precision: resolved. evaluation_rows: of an evaluation pass, where there are that many and they fit. The
 * settings are borrowed as long as the plan. ERROR_USAGE for a loss that does not suit the data. */
int plan_init(struct plan *plan, const struct training_settings *settings, const struct dataset *dataset,
              enum device_precision precision, int64_t evaluation_rows, struct error *err);
void plan_release(struct plan *plan);
/* Chooses for `available` bytes (0: unbounded, all as the settings say): the largest micro batch that fits,
 * then the most evaluation rows. Where nothing fits: the least there is, and fits is false. */
void plan_fit(struct plan *plan, size_t available);
/* Makes do with less than was planned, after a device refused; false: there is nothing less. */
bool plan_shrink(struct plan *plan);
/* The object of records. New reference; NULL without memory. */
json_t *plan_to_json(const struct plan *plan);

#endif
