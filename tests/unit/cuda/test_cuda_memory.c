/* Memory of a CUDA device: blocks, transfers, what is shared, and how much is left. */
#include "tests/unit/cuda/device_fixture.h"

#include "tests/emulated_gpu/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static void *bytes_of(size_t count, unsigned seed)
{
    unsigned char *bytes = malloc(count ? count : 1);

    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
    return bytes;
}

static void blocks_are_zeroed_and_aligned(void **state)
{
    struct fixture *f = *state;
    unsigned char *dirt = bytes_of(1001, 1), seen[1001];

    for (int turn = 0; turn < 3; turn++) { /* from the second on, of what was released */
        unsigned char *memory = fixture_put(f, NULL, sizeof seen);
        assert_int_equal((uintptr_t)memory % DEVICE_ALIGNMENT, 0);
        f->on->download(f->device, seen, memory, sizeof seen);
        for (size_t i = 0; i < sizeof seen; i++)
            assert_int_equal(seen[i], 0);
        f->on->upload(f->device, memory, dirt, sizeof seen);
        f->on->release(f->device, memory);
    }
    fixture_wait(f);
    free(dirt);
}

static void uploads_have_finished_with_the_host(void **state)
{
    static const size_t sizes[] = {1, 15, 16, 17, 4096, MIB - 1, MIB, MIB + 1, 9 * MIB + 3};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *sent = bytes_of(sizes[i], (unsigned)i), *kept = bytes_of(sizes[i], (unsigned)i);
        unsigned char *seen = malloc(sizes[i]);
        void *memory = fixture_put(f, sent, sizes[i]);
        memset(sent, 0xee, sizes[i]);
        f->on->download(f->device, seen, memory, sizes[i]);
        assert_memory_equal(seen, kept, sizes[i]);
        f->on->release(f->device, memory);
        free(sent);
        free(kept);
        free(seen);
    }
    fixture_wait(f);
}

/* More small copies than all of the pinned memory holds, each from the same variable. */
static void many_small_uploads(void **state)
{
    enum { COUNT = 300000 };
    struct fixture *f = *state;
    int32_t *memory = fixture_put(f, NULL, COUNT * sizeof *memory), *seen = malloc(COUNT * sizeof *seen);

    for (int32_t i = 0; i < COUNT; i++) {
        int32_t value = 7 * i;
        f->on->upload(f->device, memory + i, &value, sizeof value);
    }
    f->on->download(f->device, seen, memory, COUNT * sizeof *seen);
    for (int32_t i = 0; i < COUNT; i++)
        assert_int_equal(seen[i], 7 * i);
    f->on->release(f->device, memory);
    free(seen);
    fixture_wait(f);
}

/* Three lanes of 1,024 bytes; only the first 100 of each are asked for. */
static void lanes_keep_to_themselves(void **state)
{
    enum { LANES = 3, STRIDE = 1024, PART = 100, ALL = LANES * STRIDE };
    struct lanes lanes = {.count = LANES, .stride = STRIDE};
    struct fixture *f = *state;
    unsigned char *from = bytes_of(ALL, 5), *to = bytes_of(ALL, 6), seen[ALL];
    void *source = fixture_put(f, from, ALL), *target = fixture_put(f, to, ALL);

    f->on->copy(f->device, lanes, target, source, PART);
    f->on->download(f->device, seen, target, ALL);
    for (int i = 0; i < ALL; i++)
        assert_int_equal(seen[i], i % STRIDE < PART ? from[i] : to[i]);
    f->on->zero(f->device, lanes, (char *)target + 50, PART);
    f->on->download(f->device, seen, target, ALL);
    for (int i = 0; i < ALL; i++) {
        int at = i % STRIDE;
        assert_int_equal(seen[i], at >= 50 && at < 150 ? 0 : at < PART ? from[i] : to[i]);
    }
    f->on->copy(f->device, one_lane, target, (char *)source + 256, PART);
    f->on->download(f->device, seen, target, PART);
    assert_memory_equal(seen, from + 256, PART);
    f->on->release(f->device, source);
    f->on->release(f->device, target);
    fixture_wait(f);
    free(from);
    free(to);
}

static size_t available(struct fixture *f)
{
    size_t available, total;

    f->on->memory(f->device, &available, &total);
    assert_int_equal(total, FIXTURE_MEMORY);
    return available;
}

static void what_is_released_is_available(void **state)
{
    struct fixture *f = *state;
    size_t before = available(f);
    void *first = fixture_put(f, NULL, 40 * MIB), *second = fixture_put(f, NULL, 20 * MIB);

    assert_true(before > 0 && before < FIXTURE_MEMORY);
    assert_true(available(f) <= before - 60 * MIB);
    f->on->release(f->device, first);
    assert_true(available(f) > before - 21 * MIB - DEVICE_ALIGNMENT);
    f->on->release(f->device, second);
    assert_int_equal(available(f), before);
    second = fixture_put(f, NULL, before - MIB); /* one block of what were several */
    f->on->release(f->device, second);
    fixture_wait(f);
}

static void a_block_too_large_is_refused(void **state)
{
    struct fixture *f = *state;
    void *memory = f, *kept;
    float value = 3, seen = 0;

    assert_int_equal(f->on->allocate(f->device, &memory, 2 * FIXTURE_MEMORY, &f->err), -1);
    assert_int_equal(f->err.code, ERROR_MEMORY);
    assert_contains(f->err.message, "536870912 bytes");
    assert_contains(f->err.message, "268435456");
    assert_ptr_equal(memory, f);
    assert_int_equal(f->on->allocate(f->device, &memory, SIZE_MAX - 3, &f->err), -1);
    assert_int_equal(f->err.code, ERROR_MEMORY);
    kept = fixture_put(f, &value, sizeof value);
    f->on->download(f->device, &seen, kept, sizeof seen);
    assert_float_equal(seen, 3, 0);
    f->on->release(f->device, kept);
    fixture_wait(f); /* nothing of it is told later */
}

/* One refusal is no reason to give up: what the pool holds back may be in the way. */
static void a_refusal_is_tried_again(void **state)
{
    struct fixture *f = *state;
    void *memory;

    plant("allocation:1");
    memory = fixture_put(f, NULL, 4096);
    f->on->release(f->device, memory);
    fixture_wait(f);
}

static void shared_data_is_there_once(void **state)
{
    struct fixture *f = *state;
    size_t before = available(f);
    unsigned char *data = bytes_of(2 * MIB, 9), *seen = malloc(2 * MIB);
    const void *first, *second, *other;

    assert_int_equal(f->on->share(f->device, &first, data, 2 * MIB, &f->err), 0);
    assert_int_equal(f->on->share(f->device, &second, data, 2 * MIB, &f->err), 0);
    assert_int_equal(f->on->share(f->device, &other, data, 100, &f->err), 0);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, other);
    assert_true(available(f) >= before - 2 * MIB - 2 * DEVICE_ALIGNMENT - 4096);
    f->on->unshare(f->device, first);
    f->on->download(f->device, seen, second, 2 * MIB);
    assert_memory_equal(seen, data, 2 * MIB);
    f->on->unshare(f->device, second);
    f->on->unshare(f->device, other);
    assert_int_equal(available(f), before);
    fixture_wait(f);
    free(data);
    free(seen);
}

static void shared_data_goes_with_the_device(void **state)
{
    struct fixture *f = *state;
    const void *memory;

    assert_int_equal(f->on->share(f->device, &memory, f, sizeof *f, &f->err), 0);
}

/* A device, two blocks, shared data, a product: with ERROR_MEMORY or none. */
static int use_a_device(struct error *err)
{
    static const float ones[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct device *device = rung_device_plugin()->create(0, err);
    void *x = NULL, *y = NULL;
    const void *shared = NULL;
    float seen = 0;
    int result = -1;

    if (!device)
        return -1;
    if (device->operations->allocate(device, &x, sizeof ones, err) == 0 &&
        device->operations->allocate(device, &y, sizeof ones, err) == 0 &&
        device->operations->share(device, &shared, ones, sizeof ones, err) == 0) {
        device->operations->upload(device, x, ones, sizeof ones);
        device->operations->linear_backward_data(device, one_lane, y, x, shared, 4, 4, 4);
        device->operations->download(device, &seen, y, sizeof seen);
        result = device->operations->synchronize(device, err);
    }
    if (result == 0)
        assert_float_equal(seen, 4, 0);
    if (shared)
        device->operations->unshare(device, shared);
    device->operations->release(device, x);
    device->operations->release(device, y);
    device->operations->destroy(device);
    return result;
}

/* The n-th allocation fails, whichever it is, until there are no more. */
static void any_allocation_may_fail(void **state)
{
    struct error err = {0};
    int failures = 0, clean = 0;

    (void)state;
    for (int n = 1; clean < 3; n++) { /* some are tried twice: the retry must be over too */
        char faults[64];
        assert_true(n < 100);
        snprintf(faults, sizeof faults, "allocation:%d:count=2", n);
        emulated_reset();
        plant(faults);
        if (use_a_device(&err) == 0) {
            clean++;
        } else {
            clean = 0;
            failures++;
            assert_int_equal(err.code, ERROR_MEMORY);
        }
        assert_int_equal(emulated_allocation_count(0), 0);
    }
    assert_true(failures >= 4); /* workspaces, two blocks, shared data */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocks_are_zeroed_and_aligned, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(uploads_have_finished_with_the_host, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(many_small_uploads, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(lanes_keep_to_themselves, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(what_is_released_is_available, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_block_too_large_is_refused, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_refusal_is_tried_again, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(shared_data_is_there_once, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(shared_data_goes_with_the_device, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, fixture_empty, fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
