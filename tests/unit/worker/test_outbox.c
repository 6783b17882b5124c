/* Numbered messages until they are acknowledged, against a lossy world. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/outbox.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void append(struct outbox *outbox, int64_t resource)
{
    struct message message;
    message_init(&message, MESSAGE_ENDED);
    message.resource = resource;
    message.error = strdup("owned");
    assert_int_equal(outbox_append(outbox, &message, NULL), 0);
    assert_null(message.error); /* given away */
}

static int64_t send_next(struct outbox *outbox, int64_t now)
{
    const struct message *message = outbox_next(outbox, now);
    if (!message) {
        return 0;
    }
    assert_int_equal(message->resource, message->sequence * 10); /* numbers and contents belong together */
    outbox_sent(outbox, now);
    return message->sequence;
}

static void test_in_order_and_once(void **state)
{
    (void)state;
    struct outbox outbox;
    outbox_init(&outbox);
    assert_int_equal(send_next(&outbox, 0), 0);
    append(&outbox, 10);
    append(&outbox, 20);
    assert_int_equal(send_next(&outbox, 0), 1);
    assert_int_equal(send_next(&outbox, 0), 2);
    assert_int_equal(send_next(&outbox, 0), 0);
    outbox_acknowledge(&outbox, 1, 1);
    assert_int_equal(send_next(&outbox, 1), 0);
    assert_false(outbox_is_empty(&outbox));
    outbox_acknowledge(&outbox, 7, 1); /* never given out */
    assert_false(outbox_is_empty(&outbox));
    outbox_acknowledge(&outbox, 2, 1);
    outbox_acknowledge(&outbox, 1, 1); /* old */
    assert_true(outbox_is_empty(&outbox));
    assert_int_equal(send_next(&outbox, 100 * OUTBOX_REPEAT_NS), 0);
    outbox_release(&outbox);
}

static void test_repeats_from_the_first_unacknowledged(void **state)
{
    (void)state;
    struct outbox outbox;
    outbox_init(&outbox);
    for (int64_t i = 1; i <= 3; i++) {
        append(&outbox, 10 * i);
        assert_int_equal(send_next(&outbox, 0), i);
    }
    outbox_acknowledge(&outbox, 1, 5);
    assert_int_equal(send_next(&outbox, OUTBOX_REPEAT_NS), 0); /* progress was later */
    assert_int_equal(send_next(&outbox, OUTBOX_REPEAT_NS + 5), 2);
    assert_int_equal(send_next(&outbox, OUTBOX_REPEAT_NS + 5), 3);
    assert_int_equal(send_next(&outbox, OUTBOX_REPEAT_NS + 5), 0);
    outbox_rewind(&outbox); /* a new session */
    assert_int_equal(send_next(&outbox, OUTBOX_REPEAT_NS + 6), 2);
    outbox_acknowledge(&outbox, 3, OUTBOX_REPEAT_NS + 7); /* of the first sending */
    assert_int_equal(send_next(&outbox, OUTBOX_REPEAT_NS + 8), 0);
    assert_true(outbox_is_empty(&outbox));
    append(&outbox, 40);
    assert_int_equal(send_next(&outbox, OUTBOX_REPEAT_NS + 9), 4);
    outbox_release(&outbox);
}

static void test_a_window_at_a_time(void **state)
{
    (void)state;
    struct outbox outbox;
    outbox_init(&outbox);
    for (int64_t i = 1; i <= 1000; i++) {
        append(&outbox, 10 * i);
    }
    int64_t sent = 0;
    while (!outbox_is_empty(&outbox)) {
        int64_t in_flight = 0, next;
        while ((next = send_next(&outbox, 0)) != 0) {
            sent++;
            in_flight++;
            assert_int_equal(next, sent);
        }
        assert_true(in_flight > 0 && in_flight <= OUTBOX_WINDOW);
        outbox_acknowledge(&outbox, sent, 0);
    }
    assert_int_equal(sent, 1000);
    outbox_release(&outbox);
}

/* A receiver that takes messages in order only, behind a network that loses both ways: everything arrives. */
static void test_everything_arrives_in_the_end(void **state)
{
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    struct outbox outbox;
    int64_t now = 0, given = 0, taken = 0;
    outbox_init(&outbox);
    for (int turn = 0; turn < 20000 && (given < 500 || !outbox_is_empty(&outbox)); turn++) {
        now += OUTBOX_REPEAT_NS / 10;
        if (given < 500 && rand() % 2 == 0) {
            append(&outbox, 10 * ++given);
        }
        int64_t sequence = send_next(&outbox, now);
        if (sequence == taken + 1 && rand() % 3 > 0) {
            taken++;
        }
        if (rand() % 3 == 0) {
            outbox_acknowledge(&outbox, taken, now);
        }
        if (rand() % 200 == 0) {
            outbox_rewind(&outbox);
        }
    }
    assert_int_equal(taken, 500);
    assert_true(outbox_is_empty(&outbox));
    outbox_release(&outbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order_and_once),
        cmocka_unit_test(test_repeats_from_the_first_unacknowledged),
        cmocka_unit_test(test_a_window_at_a_time),
        cmocka_unit_test(test_everything_arrives_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
