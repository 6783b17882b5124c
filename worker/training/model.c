/* A model's nodes and the layout of its parameters. */
#include "worker/training/model.h"

#include "worker/training/random.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What building a model needs besides it. */
struct builder {
    struct model *model;
    const struct training_settings *settings;
    enum device_activation activation;
    bool dropout;
    int layers; /* linear ones so far */
    int last;   /* the node built last */
};

int64_t embedding_width(int64_t entries)
{
    int64_t width = (int64_t)round(1.6 * pow((double)entries, 0.56));
    return width < 50 ? width : 50;
}

static enum device_activation activation_of(enum activation activation)
{
    static const enum device_activation of[] = {
        [ACTIVATION_RELU] = DEVICE_RELU,
        [ACTIVATION_GELU] = DEVICE_GELU,
        [ACTIVATION_SILU] = DEVICE_SILU,
        [ACTIVATION_TANH] = DEVICE_TANH,
    };
    return of[activation];
}

/* ---- parameters: listed in the order of the nodes, then placed in the order of the block ---- */

__attribute__((format(printf, 5, 6))) static struct parameter *add_parameter(struct builder *builder,
                                                                             enum parameter_kind kind,
                                                                             int64_t rows, int64_t columns,
                                                                             const char *name, ...)
{
    struct parameter *parameter = &builder->model->list[builder->model->parameter_count++];
    va_list arguments;

    *parameter = (struct parameter){.kind = kind, .rows = rows, .columns = columns};
    va_start(arguments, name);
    vsnprintf(parameter->name, sizeof(parameter->name), name, arguments);
    va_end(arguments);
    return parameter;
}

static int place_of(enum parameter_kind kind)
{
    static const int places[] = {
        [PARAMETER_WEIGHT] = 0,    [PARAMETER_BIAS] = 1, [PARAMETER_GAIN] = 2,     [PARAMETER_OFFSET] = 2,
        [PARAMETER_EMBEDDING] = 3, [PARAMETER_MEAN] = 4, [PARAMETER_VARIANCE] = 4,
    };
    return places[kind];
}

static int64_t aligned(int64_t size)
{
    return (size + PARAMETER_ALIGNMENT - 1) / PARAMETER_ALIGNMENT * PARAMETER_ALIGNMENT;
}

/* Variances lie right behind their means, without a gap: the device reads them as one tensor (2, width). */
static void place_parameters(struct model *model)
{
    int64_t at = 0, sizes[5];

    for (int place = 0; place < 5; place++) {
        for (int i = 0; i < model->parameter_count; i++) {
            struct parameter *parameter = &model->list[i];
            if (place_of(parameter->kind) != place)
                continue;
            parameter->at = at;
            at += parameter->rows * parameter->columns;
            if (place <= 3)
                model->learnt += parameter->rows * parameter->columns;
            if (parameter->kind != PARAMETER_MEAN)
                at = aligned(at);
            if (place == 0)
                model->tensor_end[model->tensors++] = at;
        }
        sizes[place] = at;
    }
    model->weights = sizes[0];
    model->parameters = sizes[3];
    model->values = sizes[4];
}

/* ---- nodes ---- */

static int add_node(struct builder *builder, struct node node)
{
    builder->model->nodes[builder->model->count] = node;
    builder->last = builder->model->count++;
    return builder->last;
}

/* A linear layer on the last node; its gradient goes to `slot`. */
static struct node *add_linear(struct builder *builder, int64_t width, enum device_activation f, bool dropout,
                               int slot, const char *name)
{
    struct model *model = builder->model;
    int64_t inputs = model->nodes[builder->last].width;
    int weight = model->parameter_count, layer = builder->layers++;

    for (int bias = 0; bias < 2; bias++) {
        struct parameter *parameter =
            add_parameter(builder, bias ? PARAMETER_BIAS : PARAMETER_WEIGHT, bias ? 1 : inputs, width,
                          "%s.%s", name, bias ? "bias" : "weight");
        parameter->inputs = inputs;
        parameter->outputs = width;
        parameter->layer = layer;
    }
    add_node(builder, (struct node){.kind = NODE_LINEAR,
                                    .input = builder->last,
                                    .width = width,
                                    .f = f,
                                    .dropout = dropout,
                                    .stream = random_stream(RANDOM_DROPOUT, layer),
                                    .weight = weight,
                                    .bias = weight + 1,
                                    .gradient = slot});
    return &model->nodes[builder->last];
}

/* A norm of the last node, if there are norms. */
static void add_norm(struct builder *builder, int slot, const char *name)
{
    struct model *model = builder->model;
    int64_t width = model->nodes[builder->last].width;
    int gain = model->parameter_count;

    if (model->norm == NORM_NONE)
        return;
    add_parameter(builder, PARAMETER_GAIN, 1, width, "%s.weight", name);
    add_parameter(builder, PARAMETER_OFFSET, 1, width, "%s.bias", name);
    if (model->norm == NORM_BATCH) {
        add_parameter(builder, PARAMETER_MEAN, 1, width, "%s.running_mean", name);
        add_parameter(builder, PARAMETER_VARIANCE, 1, width, "%s.running_var", name);
    }
    add_node(builder, (struct node){.kind = NODE_NORM,
                                    .input = builder->last,
                                    .width = width,
                                    .weight = gain,
                                    .bias = gain + 1,
                                    .running = gain + 2,
                                    .gradient = slot});
}

static void add_input(struct builder *builder, const struct model_input *input)
{
    int64_t width = input->features;

    for (int64_t i = 0; i < input->categories; i++) {
        int64_t columns = embedding_width(input->cardinality[i]);
        struct parameter *table = add_parameter(builder, PARAMETER_EMBEDDING, input->cardinality[i], columns,
                                                "embeddings.%d.weight", (int)i);
        table->layer = (int)i;
        width += columns;
    }
    /* Nobody asks for the gradient of the data. */
    add_node(builder,
             (struct node){.kind = NODE_INPUT, .width = width, .gradient = input->categories > 0 ? 1 : -1});
}

/* Gradients take turns in slots 0 and 1, from layer to layer. */
static void build_mlp(struct builder *builder)
{
    const struct training_settings *settings = builder->settings;
    struct model *model = builder->model;
    char name[32];

    for (int i = 0; i < settings->hidden_count; i++) {
        bool fused = model->norm == NORM_NONE;
        snprintf(name, sizeof(name), "layers.%d", i);
        add_linear(builder, settings->hidden[i], fused ? builder->activation : DEVICE_IDENTITY,
                   fused && builder->dropout, i % 2, name);
        if (fused)
            continue;
        snprintf(name, sizeof(name), "norms.%d", i);
        add_norm(builder, i % 2, name);
        add_node(builder, (struct node){.kind = NODE_ACTIVATION,
                                        .input = builder->last,
                                        .width = settings->hidden[i],
                                        .f = builder->activation,
                                        .dropout = builder->dropout,
                                        .stream = random_stream(RANDOM_DROPOUT, i),
                                        .in_place = !device_saves_argument(builder->activation),
                                        .gradient = i % 2});
    }
}

/* The stream's gradient stays in slot 0; a branch's goes through 1 and 2. */
static void build_block(struct builder *builder, int block)
{
    const struct training_settings *settings = builder->settings;
    int stream = builder->last;
    char name[32];

    snprintf(name, sizeof(name), "blocks.%d.norm", block);
    add_norm(builder, 1, name);
    snprintf(name, sizeof(name), "blocks.%d.first", block);
    add_linear(builder, settings->width * settings->expansion, builder->activation, builder->dropout, 2,
               name);
    builder->model->nodes[stream + 1].joins = true; /* the norm, or without one this layer */
    snprintf(name, sizeof(name), "blocks.%d.second", block);
    /* Without dropout nothing changes the gradient of the sum on its way, so that it needs no copy. */
    add_linear(builder, settings->width, DEVICE_IDENTITY, builder->dropout, builder->dropout ? 1 : 0, name);
    add_node(builder, (struct node){.kind = NODE_ADD,
                                    .input = builder->last,
                                    .other = stream,
                                    .width = settings->width,
                                    .in_place = true,
                                    .gradient = 0});
}

static void build_resnet(struct builder *builder)
{
    add_linear(builder, builder->settings->width, DEVICE_IDENTITY, false, 0, "first");
    for (int i = 0; i < builder->settings->blocks; i++)
        build_block(builder, i);
    add_norm(builder, 0, "norm");
}

static void build_head(struct builder *builder, int64_t outputs)
{
    int below = builder->model->nodes[builder->last].gradient;
    char name[32] = "head";

    if (builder->settings->model != MODEL_RESNET)
        snprintf(name, sizeof(name), "layers.%d", builder->layers);
    add_linear(builder, outputs, DEVICE_IDENTITY, false, below == 0 ? 1 : 0, name)->wide = true;
}

/* ---- slots ---- */

static void widen(struct model *model, int slot, int64_t width)
{
    if (slot >= 0 && width > model->gradient_width[slot])
        model->gradient_width[slot] = width;
}

static void size_gradients(struct model *model)
{
    for (int i = 0; i < model->count; i++) {
        const struct node *node = &model->nodes[i];
        widen(model, node->gradient, node->width);
        if (node->joins)
            widen(model, MODEL_JOIN_SLOT, model->nodes[node->input].width);
    }
}

static bool is_read_after(const struct model *model, int value, int node)
{
    for (int i = node + 1; i < model->count; i++)
        if (model->nodes[i].input == value ||
            (model->nodes[i].kind == NODE_ADD && model->nodes[i].other == value))
            return true;
    return false;
}

/* In evaluation a value lives until its last reader. */
static void assign_evaluation_slots(struct model *model)
{
    for (int i = 0; i < model->count; i++) {
        struct node *node = &model->nodes[i];
        bool taken[MODEL_SLOTS] = {false};

        if (node->in_place) {
            node->evaluation = model->nodes[node->input].evaluation;
            continue;
        }
        for (int j = 0; j < i; j++)
            if (is_read_after(model, j, i - 1))
                taken[model->nodes[j].evaluation] = true;
        while (node->evaluation + 1 < MODEL_SLOTS && taken[node->evaluation])
            node->evaluation++;
    }
}

int model_init(struct model *model, const struct training_settings *settings, const struct model_input *input,
               int64_t outputs, struct error *err)
{
    struct builder builder = {.model = model, .settings = settings, .dropout = settings->dropout > 0};
    size_t capacity = 6 * (size_t)MODEL_NODES + (size_t)input->categories;

    *model = (struct model){.features = input->features, .categories = input->categories};
    model->norm = settings->model == MODEL_LINEAR ? NORM_NONE : settings->norm;
    model->list = calloc(capacity, sizeof(*model->list));
    model->tensor_end = calloc(capacity, sizeof(*model->tensor_end));
    if (!model->list || !model->tensor_end) {
        model_release(model);
        return error_set(err, ERROR_MEMORY, "no memory for a model");
    }
    builder.activation = activation_of(settings->activation);
    add_input(&builder, input);
    if (settings->model == MODEL_MLP)
        build_mlp(&builder);
    else if (settings->model == MODEL_RESNET)
        build_resnet(&builder);
    build_head(&builder, outputs);
    place_parameters(model);
    size_gradients(model);
    assign_evaluation_slots(model);
    return 0;
}

void model_release(struct model *model)
{
    free(model->list);
    free(model->tensor_end);
    *model = (struct model){0};
}
