/* Records of one turn: what a later one replaces is dropped, and nothing else. */
#include "base/random.h"
#include "coordinator/server_compact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define RECORDS 3000

static uint64_t seed;

/* The index is in a field of each kind, to tell records apart. */
static struct record record_draw(uint32_t index)
{
    int64_t trial = (int64_t)random_below(seed, index, 1, 0, 200);
    int64_t number = (int64_t)random_below(seed, index, 2, 0, 3);
    uint64_t kind = random_below(seed, index, 3, 0, 3);
    if (kind == 0) {
        return (struct record){.type = RECORD_TRIAL,
                               .trial = {.number = trial, .resource = index, .parameters = json_object()}};
    }
    if (kind == 1) {
        return (struct record){
            .type = RECORD_ATTEMPT,
            .attempt = {.trial = trial, .number = 1 + number, .until = index, .worker = strdup("w")}};
    }
    return (struct record){
        .type = RECORD_REPORT,
        .report = {.trial = trial, .attempt = 1 + number, .received_ms = index, .metrics = json_object()}};
}

/* The last record of each key, by brute force. */
static bool is_last(const struct record *records, size_t count, size_t index)
{
    const struct record *record = &records[index];
    for (size_t i = index + 1; i < count; i++) {
        const struct record *later = &records[i];
        bool same_trial = record->type == RECORD_TRIAL && later->type == RECORD_TRIAL &&
                          later->trial.number == record->trial.number;
        bool same_attempt = record->type == RECORD_ATTEMPT && later->type == RECORD_ATTEMPT &&
                            later->attempt.trial == record->attempt.trial &&
                            later->attempt.number == record->attempt.number;
        if (same_trial || same_attempt) {
            return false;
        }
    }
    return true;
}

static int64_t value_of(const struct record *record)
{
    return record->type == RECORD_TRIAL     ? record->trial.resource
           : record->type == RECORD_ATTEMPT ? record->attempt.until
                                            : record->report.received_ms;
}

static void only_what_is_replaced_goes(void **state)
{
    (void)state;
    struct compactor compactor = {0};
    static const size_t counts[] = {0, 1, 8, 100, RECORDS, 50};
    for (size_t round = 0; round < sizeof counts / sizeof *counts; round++) {
        size_t count = counts[round], expected = 0;
        struct effects effects;
        effects_init(&effects);
        effects.records = calloc(RECORDS, sizeof *effects.records);
        effects.record_capacity = RECORDS;
        effects.record_count = count;
        int64_t *wanted = calloc(RECORDS, sizeof *wanted);
        for (size_t i = 0; i < count; i++) {
            effects.records[i] = record_draw((uint32_t)(i + 10000 * round));
        }
        for (size_t i = 0; i < count; i++) {
            if (is_last(effects.records, count, i)) {
                wanted[expected++] = value_of(&effects.records[i]);
            }
        }
        compactor_run(&compactor, &effects);
        assert_int_equal(effects.record_count, expected);
        for (size_t i = 0; i < expected; i++) {
            assert_int_equal(value_of(&effects.records[i]), wanted[i]);
        }
        free(wanted);
        effects_release(&effects);
    }
    compactor_release(&compactor);
}

int main(void)
{
    seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_replaced_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
