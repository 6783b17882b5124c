/* One table of loops; compiled once for each instruction set. */
#include "kernels/cpu/loops_internal.h"

#define TEXT_EXPANDED(x) #x
#define TEXT(x) TEXT_EXPANDED(x)

const struct cpu_loops LOOPS(loops) = {
    .instruction_set = TEXT(RUNG_LOOPS),
    .widen = LOOPS(widen),
    .narrow = LOOPS(narrow),
    .round_tf32 = LOOPS(round_tf32),
    .bias_activation = LOOPS(bias_activation),
    .column_sums = LOOPS(column_sums),
    .activation = LOOPS(activation),
    .add = LOOPS(add),
    .activation_backward = LOOPS(activation_backward),
    .dropout = LOOPS(dropout),
    .layer_norm = LOOPS(layer_norm),
    .layer_norm_backward = LOOPS(layer_norm_backward),
    .batch_norm = LOOPS(batch_norm),
    .batch_norm_apply = LOOPS(batch_norm_apply),
    .batch_norm_backward = LOOPS(batch_norm_backward),
    .softmax_cross_entropy = LOOPS(softmax_cross_entropy),
    .binary_cross_entropy = LOOPS(binary_cross_entropy),
    .squared_error = LOOPS(squared_error),
    .huber_error = LOOPS(huber_error),
    .squares = LOOPS(squares),
    .sgd = LOOPS(sgd),
    .lars = LOOPS(lars),
    .adam = LOOPS(adam),
    .lamb_moments = LOOPS(lamb_moments),
    .lamb = LOOPS(lamb),
    .finite = LOOPS(finite),
};
