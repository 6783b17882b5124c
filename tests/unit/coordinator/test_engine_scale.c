/* Nothing the engine does per event may grow with the number of trials or workers: ten times the sweep takes
 * about ten times as long. Prints trials per second of CPU time, with one message in and out at a time. */
#include "engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
    peer_number peer;
    int64_t trial, attempt, start, until;
};

struct crowd {
    struct engine_fixture fixture;
    struct work *queue; /* assigned, in order */
    size_t first, count, capacity;
    int64_t raised; /* the highest until of the last event */
};

static void give(struct crowd *crowd, peer_number peer, struct message *message)
{
    struct engine_fixture *f = &crowd->fixture;
    struct event event = {.type = EVENT_MESSAGE, .peer = peer, .message = message};
    struct error err = {0};
    f->now.monotonic_ns += 1000;
    if (engine_handle(f->engine, &event, f->now, &f->effects, &err) < 0)
        fail_msg("%s", err.message);
    message_release(message);
    for (size_t i = 0; i < f->effects.message_count; i++) {
        const struct message *out = &f->effects.messages[i].message;
        if (out->type == MESSAGE_ACKNOWLEDGE && out->until > crowd->raised)
            crowd->raised = out->until;
        if (out->type != MESSAGE_ASSIGN)
            continue;
        if (crowd->count == crowd->capacity) {
            crowd->capacity = crowd->capacity ? crowd->capacity * 2 : 1024;
            crowd->queue = realloc(crowd->queue, crowd->capacity * sizeof(*crowd->queue));
        }
        const struct assignment *assignment = out->trials;
        crowd->queue[crowd->count++] =
            (struct work){f->effects.messages[i].peer, assignment->trial, assignment->attempt,
                          assignment->start, assignment->until};
    }
    effects_clear(&f->effects);
}

static void arrive(struct crowd *crowd, peer_number peer)
{
    struct message message;
    char name[24];
    snprintf(name, sizeof(name), "w%d", (int)peer);
    message_init(&message, MESSAGE_HELLO);
    message.protocol = PROTOCOL_VERSION;
    message.worker = strdup(name);
    message.session = strdup("0123456789abcdef");
    give(crowd, peer, &message);
    message_init(&message, MESSAGE_READY);
    give(crowd, peer, &message);
}

static double score(int64_t trial)
{
    return (double)((uint64_t)trial * 2654435761u % 100003) / 100003;
}

static void train(struct crowd *crowd, const struct work *work, bool stops)
{
    int64_t sequence = 0, top = crowd->fixture.settings.stopping.max_iter;
    struct message message;
    crowd->raised = work->until;
    for (int64_t resource = work->start + 1; resource <= crowd->raised; resource++) {
        message_init(&message, MESSAGE_REPORT);
        message.trial = work->trial;
        message.attempt = work->attempt;
        message.sequence = ++sequence;
        message.reports = calloc(1, sizeof(*message.reports));
        message.report_count = 1;
        message.reports[0].resource = resource;
        message.reports[0].metrics = json_pack("{s:f}", "score", score(work->trial));
        give(crowd, work->peer, &message);
    }
    message_init(&message, MESSAGE_ENDED);
    message.trial = work->trial;
    message.attempt = work->attempt;
    message.sequence = ++sequence;
    message.resource = crowd->raised;
    message.outcome = crowd->raised == top ? OUTCOME_FINISHED : stops ? OUTCOME_STOPPED : OUTCOME_PAUSED;
    if (message.outcome == OUTCOME_PAUSED) {
        message.checkpoint = calloc(1, 65);
        snprintf(message.checkpoint, 65, "%016llx%048lld", (unsigned long long)work->trial * 2654435761u,
                 (long long)crowd->raised);
    }
    give(crowd, work->peer, &message);
    message_init(&message, MESSAGE_READY);
    give(crowd, work->peer, &message);
}

/* Seconds of CPU time for a whole sweep. */
static double sweep_time(enum stopping_kind kind, int64_t trials)
{
    struct crowd crowd = {0};
    engine_fixture_init(&crowd.fixture, trials, kind == STOPPING_NONE ? 1 : 27);
    if (kind != STOPPING_NONE)
        engine_fixture_halving(&crowd.fixture, kind, 1, 27, 3);
    engine_fixture_begin(&crowd.fixture);
    effects_clear(&crowd.fixture.effects);
    clock_t begin = clock();
    for (int64_t worker = 1; worker <= trials / 10; worker++)
        arrive(&crowd, (peer_number)worker);
    while (crowd.first < crowd.count) {
        struct work work = crowd.queue[crowd.first++];
        train(&crowd, &work, kind == STOPPING_ASHA_STOPPING);
    }
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    assert_true(engine_has_ended(crowd.fixture.engine));
    free(crowd.queue);
    engine_fixture_release(&crowd.fixture);
    return seconds;
}

static void compare(enum stopping_kind kind, const char *name)
{
    enum { SMALL = 2000, LARGE = 20000 };
    double small = sweep_time(kind, SMALL), large = sweep_time(kind, LARGE);
    print_message("%s: %.0f trials/s of %d, %.0f of %d\n", name, SMALL / small, SMALL, LARGE / large, LARGE);
    /* Caches and logarithms make it a little slower; something linear would make it ten times. */
    if (large / LARGE > 4 * small / SMALL)
        fail_msg("%s: a trial takes %.1f us in a sweep of %d, %.1f in one of %d", name, 1e6 * small / SMALL,
                 SMALL, 1e6 * large / LARGE, LARGE);
}

static void test_without_stopping(void **state)
{
    (void)state;
    compare(STOPPING_NONE, "no stopping");
}

static void test_halving(void **state)
{
    (void)state;
    compare(STOPPING_SUCCESSIVE_HALVING, "halving");
}

static void test_asha_promotion(void **state)
{
    (void)state;
    compare(STOPPING_ASHA_PROMOTION, "asha promotion");
}

static void test_asha_stopping(void **state)
{
    (void)state;
    compare(STOPPING_ASHA_STOPPING, "asha stopping");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_stopping),
        cmocka_unit_test(test_halving),
        cmocka_unit_test(test_asha_promotion),
        cmocka_unit_test(test_asha_stopping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
