/* The CPU device's other tables of loops, which the processor at hand would not choose. */
#include "conformance.h"

#include "kernels/cpu/cpu_internal.h"

bool use_loops(const char *instruction_set)
{
    if (strncmp(device->name, "cpu/", 4) != 0)
        return false;
    for (int i = 0; cpu_loops_all[i]; i++)
        if (strcmp(cpu_loops_all[i]->instruction_set, instruction_set) == 0 &&
            cpu_loops_runs_here(cpu_loops_all[i])) {
            cpu_of(device)->loops = cpu_loops_all[i];
            return true;
        }
    return false;
}
