/* The table of samplers. */
#include "search/sampler.h"

#include <string.h>

static const struct sampler_methods *const samplers[] = {&random_sampler, &grid_sampler, NULL};
static const char *const names[] = {"random", "grid", NULL};

const struct sampler_methods *sampler_find(const char *method)
{
    for (const struct sampler_methods *const *sampler = samplers; *sampler; sampler++) {
        if (strcmp((*sampler)->name, method) == 0)
            return *sampler;
    }
    return NULL;
}

const char *const *sampler_names(void)
{
    return names;
}
