/* Messages that break the rules are refused with the field's name, and docs/protocol.md says what the table
 * says. */
#include "base/files.h"
#include "wire/message.h"
#include "wire/message_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct {
    const char *json, *expected;
} malformed[] = {
    {"", ""},
    {"{", ""},
    {"null", "object"},
    {"[1]", "object"},
    {"{\"type\":3}", "type is missing"},
    {"{\"type\":\"party\"}", "unknown type \"party\""},
    {"{\"type\":\"ready\",\"lanes\":1}", "ready: slot is missing"},
    {"{\"type\":\"ready\",\"slot\":null,\"lanes\":1}", "slot is missing"},
    {"{\"type\":\"ready\",\"slot\":-1,\"lanes\":1}", "slot must be an integer from 0"},
    {"{\"type\":\"ready\",\"slot\":1.0,\"lanes\":1}", "slot must be an integer"},
    {"{\"type\":\"ready\",\"slot\":\"1\",\"lanes\":1}", "slot must be an integer"},
    {"{\"type\":\"ready\",\"slot\":9007199254740993,\"lanes\":1}", "slot must be an integer"},
    {"{\"type\":\"ready\",\"slot\":99999999999999999999,\"lanes\":1}", ""},
    {"{\"type\":\"hello\",\"protocol\":1,\"worker\":\"\",\"session\":\"0123456789abcdef\",\"devices\":[]}",
     "worker must be not empty"},
    {"{\"type\":\"hello\",\"protocol\":1,\"worker\":\"w\",\"session\":\"0123456789ABCDEF\",\"devices\":[]}",
     "session must be"},
    {"{\"type\":\"hello\",\"protocol\":1,\"worker\":\"w\",\"session\":\"0123\",\"devices\":[]}",
     "session must be"},
    {"{\"type\":\"hello\",\"protocol\":1,\"worker\":\"w\",\"session\":\"0123456789abcdef\",\"devices\":{}}",
     "devices must be a list"},
    {"{\"type\":\"hello\",\"protocol\":1,\"worker\":\"w\",\"session\":\"0123456789abcdef\",\"devices\":[{"
     "\"id\":\"a\"}]}",
     "devices[0]: kind is missing"},
    {"{\"type\":\"hello\",\"protocol\":1,\"worker\":\"w\",\"session\":\"0123456789abcdef\",\"devices\":[7]}",
     "list of objects"},
    {"{\"type\":\"report\",\"trial\":1,\"attempt\":1,\"sequence\":1,\"reports\":[{\"resource\":1,\"metrics\":"
     "{\"a\":\"b\"}}]}",
     "reports[0]: metrics: \"a\" must be a number"},
    {"{\"type\":\"report\",\"trial\":1,\"attempt\":1,\"sequence\":1,\"reports\":[{\"resource\":1,\"metrics\":"
     "{},"
     "\"seconds\":-1}]}",
     "seconds must be"},
    {"{\"type\":\"ended\",\"trial\":1,\"attempt\":1,\"sequence\":1,\"outcome\":\"running\",\"resource\":0}",
     "outcome must be"},
    {"{\"type\":\"ended\",\"trial\":1,\"attempt\":1,\"sequence\":1,\"outcome\":\"won\",\"resource\":0}",
     "outcome must be"},
    {"{\"type\":\"ended\",\"trial\":1,\"attempt\":1,\"sequence\":1,\"outcome\":\"paused\",\"resource\":0,"
     "\"checkpoint\":\"ab\"}",
     "checkpoint must be 64"},
    {"{\"type\":\"acknowledge\",\"trial\":1,\"attempt\":1,\"sequence\":1,\"action\":\"go\"}",
     "action must be"},
    {"{\"type\":\"drain\",\"now\":1}", "now must be true or false"},
    {"{\"type\":\"heartbeat\",\"ready\":[0,-1]}", "ready must be a list of integers"},
    {"{\"type\":\"query\",\"query\":\"list\",\"body\":[]}", "body must be an object"},
    {"{\"type\":\"bye\",\"reason\":\"\xff\"}", ""},
    {"{\"type\":\"bye\",\"reason\":\"a\\u0000b\"}", ""},
};

static void malformed_messages_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct message message;
        struct error err = {0};
        if (!message_decode(&message, malformed[i].json, strlen(malformed[i].json), NULL, 0, &err)) {
            fail_msg("accepted: %s", malformed[i].json);
        }
        assert_int_equal(err.code, ERROR_PROTOCOL);
        if (!strstr(err.message, malformed[i].expected)) {
            fail_msg("%s: expected \"%s\", got \"%s\"", malformed[i].json, malformed[i].expected,
                     err.message);
        }
    }
}

static void frames_have_limits(void **state)
{
    (void)state;
    struct message message;
    struct error err = {0};
    const char *bye = "{\"type\":\"bye\"}";
    assert_int_equal(message_decode(&message, bye, strlen(bye), "x", 1, &err), -1);
    assert_non_null(strstr(err.message, "second frame"));

    char *blanks = malloc(MESSAGE_FRAME_LIMIT + 1);
    memset(blanks, ' ', MESSAGE_FRAME_LIMIT + 1);
    memcpy(blanks, bye, strlen(bye));
    assert_int_equal(message_decode(&message, blanks, MESSAGE_FRAME_LIMIT, NULL, 0, &err), 0);
    message_release(&message);
    assert_int_equal(message_decode(&message, blanks, MESSAGE_FRAME_LIMIT + 1, NULL, 0, &err), -1);
    free(blanks);

    char name[] = "{\"type\":\"error\",\"code\":\"%0*d\"}", json[400];
    int size = snprintf(json, sizeof json, name, MESSAGE_NAME_LIMIT, 0);
    assert_int_equal(message_decode(&message, json, (size_t)size, NULL, 0, &err), 0);
    message_release(&message);
    size = snprintf(json, sizeof json, name, MESSAGE_NAME_LIMIT + 1, 0);
    assert_int_equal(message_decode(&message, json, (size_t)size, NULL, 0, &err), -1);
}

static void what_is_required_must_be_there_to_send(void **state)
{
    (void)state;
    struct message message;
    struct error err = {0};
    size_t size;
    message_init(&message, MESSAGE_HELLO);
    assert_null(message_encode(&message, &size, &err));
    assert_string_equal(err.message, "encode hello: worker is missing");
    message_init(&message, MESSAGE_ENDED);
    assert_null(message_encode(&message, &size, &err));
    assert_string_equal(err.message, "encode ended: outcome is missing");
}

/* A message that its reader would refuse is refused by its sender, who can still tell why. */
static void what_no_reader_takes_is_not_sent(void **state)
{
    (void)state;
    struct message message;
    struct error err = {0};
    size_t size;
    char long_name[MESSAGE_NAME_LIMIT + 2] = {0};
    memset(long_name, 'n', MESSAGE_NAME_LIMIT + 1);
    struct assignment assignment = {.trial = 1, .attempt = 1, .until = -1, .parameters = json_object()};
    message_init(&message, MESSAGE_ASSIGN);
    message.trials = &assignment;
    message.trial_count = 1;
    assert_null(message_encode(&message, &size, &err));
    assert_string_equal(err.message, "encode assign: trials: until is -1, not an integer from 0 to 2^53");
    assignment.until = (1LL << 53) + 1;
    assert_null(message_encode(&message, &size, &err));
    assignment.until = 1LL << 53;
    char *json = message_encode(&message, &size, &err);
    assert_non_null(json);
    free(json);
    json_decref(assignment.parameters);
    message_init(&message, MESSAGE_ERROR);
    message.code = long_name;
    assert_null(message_encode(&message, &size, &err));
    assert_string_equal(err.message, "encode error: code is longer than 256 bytes");
}

static void bad_text_is_repaired(void **state)
{
    (void)state;
    struct message message, got;
    struct error err = {0};
    size_t size;
    message_init(&message, MESSAGE_BYE);
    message.reason = "cut \xc3";
    char *json = message_encode(&message, &size, &err);
    assert_int_equal(message_decode(&got, json, size, NULL, 0, &err), 0);
    assert_string_equal(got.reason, "cut \xef\xbf\xbd");
    message_release(&got);
    free(json);
}

static void unknown_fields_are_ignored(void **state)
{
    (void)state;
    struct message message;
    struct error err = {0};
    const char *json = "{\"later\":[{}],\"type\":\"ready\",\"slot\":2,\"lanes\":3}";
    assert_int_equal(message_decode(&message, json, strlen(json), NULL, 0, &err), 0);
    assert_int_equal(message.slot, 2);
    assert_int_equal(message.lanes, 3);
    message_release(&message);
}

static void outcomes_have_names(void **state)
{
    (void)state;
    for (enum outcome outcome = OUTCOME_NONE; outcome < OUTCOME_COUNT; outcome++) {
        enum outcome parsed = OUTCOME_COUNT;
        assert_true(outcome_parse(outcome_name(outcome), &parsed));
        assert_int_equal(parsed, outcome);
    }
    enum outcome parsed;
    assert_false(outcome_parse("won", &parsed));
}

/* What the page should hold lies in protocol-messages.md beside the test program after a failure. */
static void the_page_says_what_the_table_says(void **state)
{
    (void)state;
    struct error err = {0};
    char *page = file_read(RUNG_SOURCE_DIR "/docs/protocol.md", 0, NULL, &err);
    char *tables = message_document();
    assert_non_null(page);
    assert_non_null(tables);
    const char *mark = "<!-- made from wire/message_table.c -->\n\n";
    const char *found = strstr(page, mark);
    assert_non_null(found);
    if (strcmp(found + strlen(mark), tables) != 0) {
        file_write("protocol-messages.md", tables, strlen(tables), 0644, &err);
    }
    assert_string_equal(found + strlen(mark), tables);
    free(page);
    free(tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(frames_have_limits),
        cmocka_unit_test(what_is_required_must_be_there_to_send),
        cmocka_unit_test(what_no_reader_takes_is_not_sent),
        cmocka_unit_test(bad_text_is_repaired),
        cmocka_unit_test(unknown_fields_are_ignored),
        cmocka_unit_test(outcomes_have_names),
        cmocka_unit_test(the_page_says_what_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
