/* A model as a list of nodes, each of which makes one value (rows, width) from those of nodes before it, and
 * the layout of its parameters.
 *
 *   linear: input, head
 *   mlp:    input, { linear, activation } or { linear, norm, activation }, ..., head
 *   resnet: input, linear, { norm, linear + activation, linear, add } ..., norm, head
 *
 * Linear layers carry their activation and dropout with them (one pass over the value less).
 *
 * Parameters are one flat block: weights of linear layers first (they know weight decay), then biases, gains
 * and offsets of norms, embeddings; behind them, not parameters but kept with them, the running statistics of
 * batch norms. Each tensor begins at a multiple of PARAMETER_ALIGNMENT; what fills the gaps is and stays 0.
 */
#ifndef RUNG_WORKER_TRAINING_MODEL_H
#define RUNG_WORKER_TRAINING_MODEL_H

#include "kernels/device.h"
#include "worker/training/settings.h"

#include <stdbool.h>
#include <stdint.h>

#define PARAMETER_ALIGNMENT 64 /* elements: 128 bytes of 16-bit weights, which tensor cores load at once */
#define MODEL_NODES (4 * RESIDUAL_BLOCKS + 4) /* of a resnet; an mlp has 3 * HIDDEN_LAYERS + 2 at most */
#define MODEL_SLOTS 3 /* memory for values or gradients that do not live long: what a block needs at once */
#define MODEL_JOIN_SLOT 1 /* where a linear layer's gradient waits to join others */

enum parameter_kind {
    PARAMETER_WEIGHT,    /* (inputs, outputs) */
    PARAMETER_BIAS,      /* (outputs) */
    PARAMETER_GAIN,      /* (width), of a norm; begins at 1 */
    PARAMETER_OFFSET,    /* (width), of a norm; begins at 0 */
    PARAMETER_EMBEDDING, /* (entries, width) */
    PARAMETER_MEAN,      /* (width), running, of a batch norm; begins at 0 */
    PARAMETER_VARIANCE,  /* the same; begins at 1 */
};

struct parameter {
    enum parameter_kind kind;
    char name[48];           /* as in checkpoints: "layers.0.weight" */
    int64_t at;              /* where it begins in the flat block */
    int64_t rows, columns;   /* rows 1 for vectors */
    int64_t inputs, outputs; /* weights and biases: of their layer */
    int layer;               /* which of the linear layers or embeddings */
};

enum node_kind { NODE_INPUT, NODE_LINEAR, NODE_NORM, NODE_ACTIVATION, NODE_ADD };

struct node {
    enum node_kind kind;
    int input;                /* the node it reads */
    int other;                /* NODE_ADD: the one added to it */
    int64_t width;            /* of its value */
    enum device_activation f; /* linear, activation */
    bool dropout;
    uint32_t stream;  /* of dropout's random numbers */
    int weight, bias; /* linear; norm: gain, offset */
    int running;      /* batch norm: the parameter of its means; its variances lie behind them */
    bool wide;        /* its value is real, not stored: the head */
    bool in_place;    /* its value takes the place of its input's */
    bool joins;       /* its input's gradient has other sources, which came before it in the backward pass */
    int gradient;     /* slot of its value's gradient; -1: nobody needs it */
    int evaluation;   /* slot of its value where nothing is kept for a backward pass */
};

struct model {
    int count;
    struct node nodes[MODEL_NODES]; /* [0]: the input; the last: the head */
    enum norm_kind norm;
    int64_t features, categories; /* of the input: numbers first, then embeddings */
    int parameter_count;          /* with running statistics */
    struct parameter *list;       /* (parameter_count); its first `categories` are the embeddings */
    int64_t *tensor_end;          /* (tensors): where each weight's part of the block ends */
    int tensors;
    int64_t weights, parameters, values; /* sizes: the decayed part, all that is learnt, the whole block */
    int64_t learnt;                      /* elements of all that is learnt, without the gaps of the block */
    int64_t gradient_width[MODEL_SLOTS]; /* widest use of each slot; 0: unused */
};

/* What a pass over a batch keeps, in device memory; laid out by memory.h. */
struct activations {
    void *value[MODEL_NODES];         /* (rows, width) stored; the head's real */
    void *kept[MODEL_NODES];          /* (rows, width) stored, see model_keeps; else NULL */
    unsigned char *mask[MODEL_NODES]; /* (rows, width) of dropout; NULL without */
    real *saved[MODEL_NODES];         /* of norms: see kernels/device.h */
    int32_t *category;                /* (rows, categories) */
    void *gradient[MODEL_SLOTS];      /* (rows, gradient_width) stored */
};

/* A lane's parameters in device memory. */
struct blocks {
    real *parameters, *gradients; /* (values), (parameters) */
    void *stored;                 /* (parameters) 16-bit copy for products, or NULL */
};

struct model_input {
    int64_t features, categories;
    const int64_t *cardinality; /* (categories) */
};

/* outputs: of the head. Fails without memory only. */
int model_init(struct model *model, const struct training_settings *settings, const struct model_input *input,
               int64_t outputs, struct error *err);
void model_release(struct model *model);

/* Width of an embedding of so many entries: min(50, round(1.6 n^0.56)), the rule of thumb of fast.ai's
 * tabular models (Howard & Gugger 2020, "fastai: A Layered API for Deep Learning"). */
int64_t embedding_width(int64_t entries);

/* Initial values of the whole block (on the host), from the trial's seed. default: weights and biases uniform
 * within 1/sqrt(inputs), as PyTorch's Linear; he: weights uniform within sqrt(6/inputs) (He et al. 2015);
 * xavier: sqrt(6/(inputs + outputs)) (Glorot & Bengio 2010), biases 0 in both. Embeddings are standard
 * normal, as PyTorch's: of the size of a standardised number. -1 on no memory. */
int model_draw(const struct model *model, enum init_kind init, uint64_t seed, real *values,
               struct error *err);

/* Whether a node keeps a tensor besides its value for the backward pass: f's argument, or tanh's output, of
 * which dropout leaves nothing. */
bool model_keeps(const struct node *node);

/* The outputs of a batch whose numbers are in the input's value and whose categories in `category`. state:
 * training mode, for rows from first_row of the effective batch on, batch norms in groups of `group`; NULL:
 * evaluation mode. */
void model_forward(const struct model *model, struct device *device, struct lanes lanes,
                   const struct blocks *blocks, const struct activations *activations, int64_t first_row,
                   int64_t rows, int64_t group, const struct lane_state *state);

/* The gradient of all parameters, from that of the outputs in model_output_gradient; after model_forward in
 * training mode. Added to what is there when `accumulate`. */
void model_backward(const struct model *model, struct device *device, struct lanes lanes,
                    const struct blocks *blocks, const struct activations *activations, int64_t rows,
                    int64_t group, bool accumulate, const struct lane_state *state);

const struct node *model_head(const struct model *model);
real *model_outputs(const struct model *model, const struct activations *activations);
void *model_output_gradient(const struct model *model, const struct activations *activations);

#endif
