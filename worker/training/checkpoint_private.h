/* What writing and reading a checkpoint share. */
#ifndef RUNG_WORKER_TRAINING_CHECKPOINT_PRIVATE_H
#define RUNG_WORKER_TRAINING_CHECKPOINT_PRIVATE_H

#include "worker/training/checkpoint.h"

#define CHECKPOINT_FORMAT "rung-2"
#define CHECKPOINT_BLOCKS (2 + MOMENTS)
#define NUMERICS_SIZE 128

/* One flat block and what its tensors' names begin with. */
struct checkpoint_block {
    const char *prefix;
    real *memory;  /* on the device */
    int64_t count; /* its elements: the model's values, or its parameters only */
};

/* Fills blocks (CHECKPOINT_BLOCKS); returns how many. */
int checkpoint_blocks(const struct checkpoint_subject *subject, bool best, struct checkpoint_block *blocks);
/* Tensors of a block. */
int checkpoint_tensor_count(const struct model *model, const struct checkpoint_block *block);
/* Name and shape of the block's tensor for a parameter of the model. */
void checkpoint_tensor(struct tensor *tensor, const struct checkpoint_block *block,
                       const struct parameter *parameter);

/* What says of which trial a file is: keys and values of its metadata, up to a NULL key. */
struct checkpoint_identity {
    const char *key, *value;
};
#define CHECKPOINT_IDENTITIES 9
/* seed: room for the seed's text. */
void checkpoint_identities(const struct checkpoint_subject *subject, char seed[24],
                           struct checkpoint_identity identities[CHECKPOINT_IDENTITIES]);
void checkpoint_numerics(const struct checkpoint_subject *subject, char numerics[NUMERICS_SIZE]);

/* to (columns, rows) = from (rows, columns), transposed: our (inputs, outputs), PyTorch's (outputs, inputs).
 */
void checkpoint_transpose(float *to, const float *from, int64_t rows, int64_t columns);

#endif
