/* Recordings of a CUDA device: replayed they do what the calls did, however often. */
#include "tests/unit/cuda/device_fixture.h"

#include <string.h>

enum { COUNT = 100 };

/* y = 0, x = 1, 2, ...: sums of them are exact. */
struct vectors {
    float *y, *x;
};

static struct vectors vectors_of(struct fixture *f)
{
    struct vectors vectors;
    float x[COUNT];

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i + 1);
    vectors.y = fixture_put(f, NULL, sizeof x);
    vectors.x = fixture_put(f, x, sizeof x);
    return vectors;
}

static void vectors_release(struct fixture *f, struct vectors vectors)
{
    f->on->release(f->device, vectors.y);
    f->on->release(f->device, vectors.x);
}

/* y is x `times` times. */
static void assert_sum(struct fixture *f, struct vectors vectors, float times)
{
    float seen[COUNT];

    f->on->download(f->device, seen, vectors.y, sizeof seen);
    fixture_wait(f);
    for (int i = 0; i < COUNT; i++)
        assert_float_equal(seen[i], times * (float)(i + 1), 0);
}

static struct device_recording *record_adds(struct fixture *f, struct vectors vectors, int adds)
{
    struct device_recording *recording = NULL;

    f->on->add(f->device, one_lane, vectors.y, vectors.x, COUNT);
    assert_int_equal(f->on->record_begin(f->device, &f->err), 0);
    for (int i = 0; i < adds; i++)
        f->on->add(f->device, one_lane, vectors.y, vectors.x, COUNT);
    assert_int_equal(f->on->record_end(f->device, &recording, &f->err), 0);
    assert_non_null(recording);
    assert_sum(f, vectors, 1); /* noted, not done */
    return recording;
}

/* A short recording, of which several are one graph, and counts around how many those are. */
static void short_ones_are_repeated(void **state)
{
    static const int times[] = {0, 1, 2, 15, 16, 17, 33, 100};
    struct fixture *f = *state;
    struct vectors vectors = vectors_of(f);
    struct device_recording *recording = record_adds(f, vectors, 3);
    float sum = 1;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        f->on->replay(f->device, recording, times[i]);
        sum += 3 * (float)times[i];
        assert_sum(f, vectors, sum);
    }
    f->on->forget(f->device, recording);
    vectors_release(f, vectors);
}

/* Repetitions follow each other: each doubles what the one before left. */
static void repetitions_keep_their_order(void **state)
{
    struct fixture *f = *state;
    struct vectors vectors = vectors_of(f);
    struct device_recording *recording;

    assert_int_equal(f->on->record_begin(f->device, &f->err), 0);
    f->on->add(f->device, one_lane, vectors.y, vectors.x, COUNT);
    f->on->copy(f->device, one_lane, vectors.x, vectors.y, COUNT * sizeof(float));
    assert_int_equal(f->on->record_end(f->device, &recording, &f->err), 0);
    f->on->replay(f->device, recording, 17);
    assert_sum(f, vectors, 65536); /* 1, 2, 4, ... */
    f->on->forget(f->device, recording);
    vectors_release(f, vectors);
}

static void long_ones_are_not(void **state)
{
    struct fixture *f = *state;
    struct vectors vectors = vectors_of(f);
    struct device_recording *recording = record_adds(f, vectors, 1100);

    f->on->replay(f->device, recording, 3);
    assert_sum(f, vectors, 3301);
    f->on->forget(f->device, recording);
    vectors_release(f, vectors);
}

static void work_stays_in_order(void **state)
{
    struct fixture *f = *state;
    struct vectors vectors = vectors_of(f);
    struct device_recording *recording = record_adds(f, vectors, 2);

    f->on->replay(f->device, recording, 20); /* 41 */
    f->on->zero(f->device, one_lane, vectors.y, COUNT * sizeof(float));
    f->on->replay(f->device, recording, 1);
    f->on->copy(f->device, one_lane, vectors.x, vectors.y, COUNT * sizeof(float)); /* x doubled */
    f->on->replay(f->device, recording, 1);
    assert_sum(f, vectors, 6);
    f->on->forget(f->device, recording); /* and before what is still to come */
    vectors_release(f, vectors);
}

/* Numbers of a lane's state are read at each replay. */
static void state_moves_on(void **state)
{
    struct fixture *f = *state;
    struct lane_state lane = {.step = 5, .epoch_first = 3, .finite = 1, .loss_scale = 1};
    double rates[64];
    struct device_recording *recording;
    struct lane_state *memory = fixture_put(f, &lane, sizeof lane);
    double *table;

    for (int i = 0; i < 64; i++)
        rates[i] = i;
    table = fixture_put(f, rates, sizeof rates);
    assert_int_equal(f->on->record_begin(f->device, &f->err), 0);
    f->on->step_begin(f->device, one_lane, memory, table);
    f->on->step_end(f->device, one_lane, memory);
    assert_int_equal(f->on->record_end(f->device, &recording, &f->err), 0);
    f->on->replay(f->device, recording, 21);
    f->on->download(f->device, &lane, memory, sizeof lane);
    fixture_wait(f);
    assert_int_equal(lane.step, 26);
    assert_int_equal(lane.updates, 21);
    assert_float_equal(lane.learning_rate, 25 - 3, 0); /* of the last step begun */
    f->on->forget(f->device, recording);
    f->on->release(f->device, memory);
    f->on->release(f->device, table);
}

/* What may not stand in a recording makes it fail, and nothing else. */
static void assert_unrecordable(struct fixture *f, void (*act)(struct fixture *f, struct vectors vectors))
{
    struct vectors vectors = vectors_of(f);
    struct device_recording *recording = NULL;

    assert_int_equal(f->on->record_begin(f->device, &f->err), 0);
    f->on->add(f->device, one_lane, vectors.y, vectors.x, COUNT);
    act(f, vectors);
    assert_int_equal(f->on->record_end(f->device, &recording, &f->err), -1);
    assert_int_equal(f->err.code, ERROR_INTERNAL);
    assert_contains(f->err.message, "recording");
    assert_null(recording);
    f->on->add(f->device, one_lane, vectors.y, vectors.x, COUNT); /* unrecorded it goes on */
    assert_sum(f, vectors, 1);
    vectors_release(f, vectors);
}

static void upload(struct fixture *f, struct vectors vectors)
{
    float value = 1;
    f->on->upload(f->device, vectors.y, &value, sizeof value);
}

static void download(struct fixture *f, struct vectors vectors)
{
    float value = 1;
    f->on->download(f->device, &value, vectors.y, sizeof value);
}

static void uploads_and_downloads_are_refused(void **state)
{
    assert_unrecordable(*state, upload);
    assert_unrecordable(*state, download);
}

static void waiting_and_allocating_are_refused(void **state)
{
    struct fixture *f = *state;
    struct vectors vectors = vectors_of(f);
    struct device_recording *recording;
    void *memory = NULL;

    assert_int_equal(f->on->record_begin(f->device, &f->err), 0);
    f->on->add(f->device, one_lane, vectors.y, vectors.x, COUNT);
    assert_int_equal(f->on->synchronize(f->device, &f->err), -1);
    assert_int_equal(f->err.code, ERROR_INTERNAL);
    assert_int_equal(f->on->allocate(f->device, &memory, 64, &f->err), -1);
    assert_int_equal(f->err.code, ERROR_INTERNAL);
    assert_int_equal(f->on->record_end(f->device, &recording, &f->err), 0); /* they did nothing */
    f->on->replay(f->device, recording, 2);
    assert_sum(f, vectors, 2);
    f->on->forget(f->device, recording);
    vectors_release(f, vectors);
}

/* An earlier failure is told before, not taken for the recording's. */
static void earlier_failures_come_first(void **state)
{
    struct fixture *f = *state;
    float value = 0;

    f->on->download(f->device, &value, &value, sizeof value); /* not the device's memory */
    assert_int_equal(f->on->record_begin(f->device, &f->err), -1);
    assert_contains(f->err.message, "copying from the device");
    fixture_wait(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(short_ones_are_repeated, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(repetitions_keep_their_order, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(long_ones_are_not, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(work_stays_in_order, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(state_moves_on, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(uploads_and_downloads_are_refused, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(waiting_and_allocating_are_refused, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(earlier_failures_come_first, fixture_open, fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
