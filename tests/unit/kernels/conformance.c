/* Runs every check on the device, see conformance.h, and sees to it that no operation is left out. */
#include "conformance.h"

#include <time.h>

struct device *device;
const struct device_operations *operations;

static const struct check {
    const char *operations; /* of the table, as listed below */
    void (*run)(enum device_precision precision);
    bool once; /* has nothing to do with precision */
} checks[] = {
    {"allocate release share unshare upload download memory synchronize destroy", check_memory, true},
    {"copy zero", check_copies, true},
    {"step_begin step_end", check_steps, true},
    {"gather", check_gather, false},
    {"gather_real gather_integers", check_gather_plain, true},
    {"embedding_forward embedding_backward", check_embedding, false},
    {"linear_forward", check_linear_forward, false},
    {"linear_backward_data", check_linear_backward_data, false},
    {"linear_backward_parameters", check_linear_backward_parameters, false},
    {"activation", check_activation, false},
    {"add", check_add, false},
    {"dropout", check_dropout, false},
    {"activation_backward", check_activation_backward, false},
    {"activation_backward_bias", check_activation_backward_bias, false},
    {"layer_norm layer_norm_backward", check_layer_norm, false},
    {"batch_norm batch_norm_apply batch_norm_backward", check_batch_norm, false},
    {"softmax_cross_entropy", check_softmax_cross_entropy, false},
    {"binary_cross_entropy", check_binary_cross_entropy, false},
    {"squared_error huber_error", check_errors, false},
    {"measure_gradient", check_measure_gradient, true},
    {"update", check_update, false},
    {"store", check_store, false},
    {"finite", check_finite, true},
    {"record_begin record_end replay forget", check_recording, false},
};
enum { CHECKS = sizeof(checks) / sizeof(*checks) };

/* The table's entries. */
#define ENTRY(name)                                                                                          \
    {                                                                                                        \
#name, offsetof(struct device_operations, name)                                                      \
    }
static const struct entry {
    const char *name;
    size_t at;
} entries[] = {
    ENTRY(destroy),
    ENTRY(allocate),
    ENTRY(release),
    ENTRY(share),
    ENTRY(unshare),
    ENTRY(upload),
    ENTRY(download),
    ENTRY(copy),
    ENTRY(zero),
    ENTRY(memory),
    ENTRY(synchronize),
    ENTRY(record_begin),
    ENTRY(record_end),
    ENTRY(replay),
    ENTRY(forget),
    ENTRY(step_begin),
    ENTRY(step_end),
    ENTRY(gather),
    ENTRY(gather_real),
    ENTRY(gather_integers),
    ENTRY(embedding_forward),
    ENTRY(embedding_backward),
    ENTRY(linear_forward),
    ENTRY(linear_backward_data),
    ENTRY(linear_backward_parameters),
    ENTRY(activation),
    ENTRY(add),
    ENTRY(dropout),
    ENTRY(activation_backward),
    ENTRY(activation_backward_bias),
    ENTRY(layer_norm),
    ENTRY(layer_norm_backward),
    ENTRY(batch_norm),
    ENTRY(batch_norm_apply),
    ENTRY(batch_norm_backward),
    ENTRY(softmax_cross_entropy),
    ENTRY(binary_cross_entropy),
    ENTRY(squared_error),
    ENTRY(huber_error),
    ENTRY(measure_gradient),
    ENTRY(update),
    ENTRY(store),
    ENTRY(finite),
};
enum { ENTRIES = sizeof(entries) / sizeof(*entries) };

static bool lists(const char *list, const char *name)
{
    size_t size = strlen(name);

    for (const char *found = strstr(list, name); found; found = strstr(found + 1, name))
        if ((found == list || found[-1] == ' ') && (found[size] == '\0' || found[size] == ' '))
            return true;
    return false;
}

/* As many entries as the table has pointers, each at its own place, each there, each checked. Absent may be
 * what two other operations do as well, and recording, but then all of it. */
static void test_every_operation_is_checked(void **state)
{
    typedef void (*operation_f)(void);
    bool recorded = operations->record_begin != NULL;

    (void)state;
    assert_int_equal(ENTRIES * sizeof(operation_f), sizeof(struct device_operations));
    for (int i = 0; i < ENTRIES; i++) {
        operation_f function;
        int found = 0;
        for (int j = 0; j < i; j++)
            assert_true(entries[i].at != entries[j].at);
        memcpy(&function, (const char *)operations + entries[i].at, sizeof(function));
        for (int c = 0; c < CHECKS; c++)
            found += lists(checks[c].operations, entries[i].name);
        if (found != 1)
            fail_msg("operation %s stands in %d checks", entries[i].name, found);
        if (strcmp(entries[i].name, "activation_backward_bias") != 0 &&
            (function != NULL) != (lists(checks[CHECKS - 1].operations, entries[i].name) ? recorded : true))
            fail_msg("operation %s is %s", entries[i].name, function ? "there alone" : "missing");
    }
}

static void test_description(void **state)
{
    (void)state;
    assert_true(strlen(device->name) > 0);
    assert_true(device->precisions[DEVICE_FP32]);
    assert_true(device->evaluation_rows >= 1);
}

static void run_check(void **state)
{
    const struct check *check = *state;

    for (int precision = DEVICE_FP32; precision <= (check->once ? DEVICE_FP32 : DEVICE_FP16); precision++)
        for (int round = 0; round < ROUNDS; round++)
            check->run((enum device_precision)precision);
}

static int device_setup(void **state)
{
    const char *name = getenv("RUNG_TEST_DEVICE"), *replayed = getenv("RUNG_TEST_SEED");
    const char *loops = getenv("RUNG_TEST_LOOPS");
    struct error err = {0};
    struct timespec now;

    (void)state;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed =
        replayed ? strtoull(replayed, NULL, 10) : (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    random_start(seed);
    device = device_create(name ? name : "cpu:0", &err);
    if (!device) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    operations = device->operations;
    if (loops && !use_loops(loops))
        printf("no loops for %s here: the device keeps its own\n", loops);
    printf("device %s, RUNG_TEST_SEED=%llu\n", device->name, (unsigned long long)seed);
    return 0;
}

static int device_teardown(void **state)
{
    (void)state;
    device_destroy(device);
    return 0;
}

int main(void)
{
    struct CMUnitTest tests[CHECKS + 2] = {cmocka_unit_test(test_every_operation_is_checked),
                                           cmocka_unit_test(test_description)};

    for (int c = 0; c < CHECKS; c++)
        tests[c + 2] = (struct CMUnitTest){
            .name = checks[c].operations, .test_func = run_check, .initial_state = (void *)&checks[c]};
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
