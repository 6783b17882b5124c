/* What a trial's record says besides its metrics. */
#include "trainer_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct trainer_world world;

static int setup(void **state)
{
    (void)state;
    world_init(&world, 3);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_release(&world);
    return 0;
}

/* The record's notes must have `words` in them; NULL: there must be none. */
static void expect_notes(const struct training_settings *settings, const char *words)
{
    struct trainer *trainer = world_trainer(&world, settings, 1);
    json_t *details = trainer_details(trainer);
    char *notes = json_canonical(json_object_get(details, "notes"));

    if (words && (!notes || !strstr(notes, words)))
        fail_msg("no '%s' in %s", words, notes ? notes : "none");
    if (!words && notes && strcmp(notes, "null") != 0)
        fail_msg("notes: %s", notes);
    free(notes);
    json_decref(details);
    trainer_destroy(trainer);
}

static void test_nothing_to_say(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    expect_notes(&settings, NULL);
    settings.warmup_epochs = (double)settings.epochs;
    settings.norm = NORM_BATCH;
    settings.batch_size = 2;
    expect_notes(&settings, NULL);
    settings.norm = NORM_LAYER;
    settings.batch_size = 1;
    settings.micro_batch = 500;
    expect_notes(&settings, NULL);
}

static void test_warm_ups(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    settings.warmup_epochs = 6.5;
    expect_notes(&settings, "warmup_epochs is more than the 6 epochs");
    settings.schedule = SCHEDULE_ONE_CYCLE;
    expect_notes(&settings, "warmup_epochs is not used");
}

static void test_a_batch_norm_of_one_row(void **state)
{
    struct training_settings settings = world_settings();

    (void)state;
    settings.norm = NORM_BATCH;
    settings.norm_batch = 8;
    settings.batch_size = 1;
    expect_notes(&settings, "take a batch_size of 2 or more");
}

static const struct device_operations *working;
static size_t room;

static void little_memory(struct device *device, size_t *available, size_t *total)
{
    (void)device;
    *available = *total = room;
}

static void test_a_batch_that_does_not_fit(void **state)
{
    struct training_settings settings = world_settings();
    struct device_operations operations;
    struct error err;
    json_t *plan = trainer_plan(&settings, &world.dataset, 4096, 0, &err);

    (void)state;
    working = world.device->operations;
    operations = *working;
    operations.memory = little_memory;
    world.device->operations = &operations;
    room = (size_t)(json_get_integer(plan, "bytes", 0) - json_get_integer(plan, "data_bytes", 0));
    json_decref(plan);
    expect_notes(&settings, NULL);
    room -= 4000;
    expect_notes(&settings, "32 rows at once do not fit the device's memory: ");
    expect_notes(&settings, " at a time, to the same batch of 32\"");
    world.device->operations = working;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_to_say),
        cmocka_unit_test(test_warm_ups),
        cmocka_unit_test(test_a_batch_norm_of_one_row),
        cmocka_unit_test(test_a_batch_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
