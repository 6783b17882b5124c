/* The choice among the tables of loops. */
#include "kernels/cpu/loops.h"

#include <string.h>

extern const struct cpu_loops cpu_loops_generic;
#ifdef RUNG_LOOPS_X86
extern const struct cpu_loops cpu_loops_avx512, cpu_loops_avx2;
#endif

const struct cpu_loops *const cpu_loops_all[] = {
#ifdef RUNG_LOOPS_X86
    &cpu_loops_avx512,
    &cpu_loops_avx2,
#endif
    &cpu_loops_generic,
    NULL,
};

bool cpu_loops_runs_here(const struct cpu_loops *loops)
{
#ifdef RUNG_LOOPS_X86
    /* The features of the x86-64-v4 and v3 levels that the compiler may use in these loops. */
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    if (loops == &cpu_loops_avx512)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    if (loops == &cpu_loops_avx2)
        return avx2;
#endif
    return loops == &cpu_loops_generic;
}

const struct cpu_loops *cpu_loops_best(void)
{
    const struct cpu_loops *const *loops = cpu_loops_all;
    while (!cpu_loops_runs_here(*loops))
        loops++;
    return *loops;
}
