/* Data on a device: shared by all who train on it, copied once as long as the runner keeps it. */
#include "trainer_fixture.h"

#include "worker/runner_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A device in front of the real one that counts who shares what, and what it would have copied. */
#define SHARES 16
static const struct device_operations *real_operations;
static struct device_operations counting;
static struct {
    const void *memory;
    int users;
} shares[SHARES];
static int copies, refused_at; /* refused_at: the copy that fails; 0: none */

static int counted_share(struct device *device, const void **memory, const void *host, size_t bytes,
                         struct error *err)
{
    const void *shared;
    int i = 0;

    if (copies + 1 == refused_at)
        return error_set(err, ERROR_MEMORY, "no room for the data");
    if (real_operations->share(device, &shared, host, bytes, err) != 0)
        return -1;
    while (i < SHARES - 1 && shares[i].users > 0 && shares[i].memory != shared)
        i++;
    for (int j = 0; j < SHARES; j++) /* an earlier place may have become free */
        i = shares[j].users > 0 && shares[j].memory == shared ? j : i;
    copies += shares[i].users == 0;
    shares[i].memory = shared;
    shares[i].users++;
    *memory = shared;
    return 0;
}

static void counted_unshare(struct device *device, const void *memory)
{
    for (int i = 0; i < SHARES; i++)
        if (shares[i].users > 0 && shares[i].memory == memory) {
            shares[i].users--;
            real_operations->unshare(device, memory);
            return;
        }
    fail_msg("what was not shared is given back");
}

static int users(void)
{
    int all = 0;

    for (int i = 0; i < SHARES; i++)
        all += shares[i].users;
    return all;
}

static struct trainer_world world, other;

static int setup(void **state)
{
    (void)state;
    world_init(&world, 3);
    world_init(&other, 0);
    world.dataset.categories = 2;
    real_operations = world.device->operations;
    counting = *real_operations;
    counting.share = counted_share;
    counting.unshare = counted_unshare;
    world.device->operations = &counting;
    copies = refused_at = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world.device->operations = real_operations;
    world_release(&world);
    world_release(&other);
    assert_int_equal(users(), 0);
    return 0;
}

static void live(void)
{
    struct training_settings settings = world_settings();
    struct trainer *trainer = world_trainer(&world, &settings, 1);

    world_metric(trainer, "validation_loss");
    trainer_destroy(trainer);
}

/* 3 splits of numbers, categories, and labels. */
static void test_kept_data_is_copied_once(void **state)
{
    struct runner runner = {.device = world.device};

    (void)state;
    live();
    live();
    assert_int_equal(copies, 2 * 9);
    copies = 0;
    for (int trial = 0; trial < 3; trial++) {
        runner_keep_data(&runner, &world.dataset);
        live();
        assert_int_equal(copies, 9);
        assert_int_equal(users(), 9);
    }
    runner_keep_data(&runner, &other.dataset); /* of numbers and numbers */
    assert_int_equal(users(), 6);
    runner_keep_data(&runner, NULL);
    assert_int_equal(users(), 0);
}

static void test_data_that_does_not_fit(void **state)
{
    struct training_settings settings = world_settings();
    struct runner runner = {.device = world.device};

    (void)state;
    for (int failing = 1; failing <= 9; failing++) {
        struct error err = {0};
        copies = 0;
        refused_at = failing;
        runner_keep_data(&runner, &world.dataset);
        assert_int_equal(users(), 0);
        copies = 0;
        assert_null(trainer_create(&settings, &world.dataset, world.device, 1, &err));
        assert_string_equal(err.message, "no room for the data");
        assert_int_equal(users(), 0);
    }
    refused_at = copies = 0;
    runner_keep_data(&runner, &world.dataset); /* tried again */
    assert_int_equal(users(), 9);
    runner_keep_data(&runner, NULL);
}

/* ---- memory for several seeds ---- */

static size_t room;

static int little_allocate(struct device *device, void **memory, size_t bytes, struct error *err)
{
    if (bytes > room)
        return error_set(err, ERROR_MEMORY, "refused %zu bytes", bytes);
    if (real_operations->allocate(device, memory, bytes, err) != 0)
        return -1;
    room -= bytes;
    return 0;
}

static void little_memory(struct device *device, size_t *available, size_t *total)
{
    (void)device;
    *available = room;
    *total = 1 << 30;
}

/* The first seed of three must not take what the others need, not even where there is hardly enough. */
static void test_seeds_share_what_is_free(void **state)
{
    struct training_settings settings = world_settings();
    struct error err = {0};
    json_t *metrics = NULL;
    bool diverged;

    (void)state;
    counting.allocate = little_allocate;
    counting.memory = little_memory;
    settings.replicates = 3;
    settings.micro_batch = 4;
    json_t *plan = trainer_plan(&settings, &world.dataset, 1, 0, &err);
    size_t each = (size_t)(json_get_integer(plan, "bytes", 0) - json_get_integer(plan, "data_bytes", 0));
    json_decref(plan);
    settings.micro_batch = 0;
    room = 3 * each + 100;
    struct replicates *replicates = replicates_create(&settings, &world.dataset, world.device, 5, &err);
    if (!replicates)
        fail_msg("%s", err.message);
    assert_true(room < each);
    assert_int_equal(replicates_epoch(replicates, &metrics, &diverged, &err), 0);
    json_decref(metrics);
    assert_in_range(replicates_derived(replicates)->micro_batch, 4, 8);
    replicates_destroy(replicates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept_data_is_copied_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_data_that_does_not_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_seeds_share_what_is_free, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
