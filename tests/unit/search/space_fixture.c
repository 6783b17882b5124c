#include "space_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct parameter *space_add(struct space *space, const char *name, enum distribution distribution)
{
    space->parameters = realloc(space->parameters, (space->count + 1) * sizeof *space->parameters);
    assert_non_null(space->parameters);
    struct parameter *parameter = &space->parameters[space->count++];
    *parameter = (struct parameter){.name = strdup(name), .distribution = distribution};
    return parameter;
}

struct parameter *space_add_range(struct space *space, const char *name, enum distribution distribution,
                                  double minimum, double maximum)
{
    struct parameter *parameter = space_add(space, name, distribution);
    parameter->minimum = minimum;
    parameter->maximum = maximum;
    return parameter;
}

struct parameter *space_add_values(struct space *space, const char *name, const char *values)
{
    struct error err;
    json_t *array = json_parse(values, strlen(values), &err);
    if (!array)
        fail_msg("%s: %s", values, err.message);
    struct parameter *parameter = space_add(space, name, DISTRIBUTION_CATEGORICAL);
    parameter->values = array;
    return parameter;
}

const char *text_of(json_t *value)
{
    static char texts[8][500];
    static int next;
    char *text = texts[next++ % 8];
    char *canonical = json_canonical(value);
    snprintf(text, sizeof texts[0], "%s", canonical ? canonical : "(null)");
    free(canonical);
    json_decref(value);
    return text;
}
