/* One table of loops; compiled once for each instruction set. */
#include "kernels/cpu/loops_internal.h"

#define TEXT_EXPANDED(x) #x
#define TEXT(x) TEXT_EXPANDED(x)

const struct cpu_loops LOOPS(loops) = {
    .instruction_set = TEXT(RUNG_LOOPS),
    .bias_activation = LOOPS(bias_activation),
    .column_sums = LOOPS(column_sums),
    .activation_backward = LOOPS(activation_backward),
    .dropout = LOOPS(dropout),
    .softmax_cross_entropy = LOOPS(softmax_cross_entropy),
    .squared_error = LOOPS(squared_error),
    .sgd = LOOPS(sgd),
    .adamw = LOOPS(adamw),
    .finite = LOOPS(finite),
};
