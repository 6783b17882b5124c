/* Plugins for test_plugin.c: one source, each with another thing about it that is wrong. */
#include "kernels/plugin.h"

#include <stddef.h>

#ifdef FAKE_NEEDS
int fake_library_number(void);
#endif

static int fake_count(struct error *err)
{
    (void)err;
#ifdef FAKE_NEEDS
    return fake_library_number();
#else
    return 3;
#endif
}

static int fake_describe(int number, struct device_description_of *description, struct error *err)
{
    (void)err;
    *description = (struct device_description_of){.major = number};
    return 0;
}

static struct device *fake_create(int number, struct error *err)
{
    (void)number;
    (void)err;
    return NULL;
}

#ifndef FAKE_VERSION
#define FAKE_VERSION DEVICE_PLUGIN_VERSION
#endif

static const struct device_plugin fake = {
    .version = FAKE_VERSION,
    .kind = FAKE_KIND,
    .count = fake_count,
    .describe = fake_describe,
    .create = fake_create,
};

#ifdef FAKE_NAMELESS
const struct device_plugin *some_other_name(void);
const struct device_plugin *some_other_name(void)
#else
const struct device_plugin *rung_device_plugin(void)
#endif
{
    return &fake;
}
