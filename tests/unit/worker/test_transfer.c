/* Blobs over a blob socket that loses requests and answers, refuses, and sends nonsense. Time is the test's:
 * the wait before a repeat costs nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/transfer.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 30 /* silence of this length is taken for a loss */
#define CHUNK (1 << 20)
#define BLOBS 8

struct blob {
    char sha256[SHA256_TEXT];
    char *bytes;
    int64_t size, have; /* have: bytes the server holds */
};

struct fixture {
    char folder[64], address[96];
    struct bus *bus;
    struct endpoint *server;
    struct transfers *transfers;
    struct blob blobs[BLOBS];
    int blob_count;
    int loss;       /* percent of requests and of answers */
    int corrupt;    /* first chunks still to spoil */
    int refuse;     /* puts still to refuse as malformed */
    int full;       /* puts still to refuse as unavailable */
    int unanswered; /* most requests in hand at once */
    int jumps;      /* of time: what was outstanding then may be asked again while it is still on its way */
    int64_t now;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/rung-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->address, sizeof fixture->address, "ipc://%s/blobs", fixture->folder);
    fixture->bus = bus_create(NULL, NULL, NULL);
    fixture->server = endpoint_bind(fixture->bus, fixture->address, NULL);
    fixture->transfers = transfers_create(fixture->bus, NULL);
    assert_non_null(fixture->server);
    assert_non_null(fixture->transfers);
    assert_int_equal(transfers_connect(fixture->transfers, fixture->address, NULL, NULL), 0);
    fixture->now = NS_PER_SECOND;
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    transfers_destroy(fixture->transfers);
    endpoint_destroy(fixture->server);
    bus_destroy(fixture->bus);
    for (int i = 0; i < fixture->blob_count; i++) {
        free(fixture->blobs[i].bytes);
    }
    folder_remove(fixture->folder, NULL);
    free(fixture);
    return 0;
}

static struct blob *make_blob(struct fixture *fixture, int64_t size, bool on_server)
{
    struct blob *blob = &fixture->blobs[fixture->blob_count];
    blob->size = size;
    blob->have = on_server ? size : 0;
    blob->bytes = malloc((size_t)size + 1);
    for (int64_t i = 0; i < size; i++) {
        blob->bytes[i] = (char)(i * 7 + i / 1000 + fixture->blob_count);
    }
    sha256_bytes(blob->bytes, (size_t)size, blob->sha256);
    fixture->blob_count++;
    return blob;
}

static char *blob_file(struct fixture *fixture, const struct blob *blob, const char *kind)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s-%s", fixture->folder, kind, blob->sha256);
    return path;
}

static bool is_lost(const struct fixture *fixture)
{
    return rand() % 100 < fixture->loss;
}

static struct blob *find_blob(struct fixture *fixture, const char *sha256)
{
    for (int i = 0; i < fixture->blob_count; i++) {
        if (strcmp(fixture->blobs[i].sha256, sha256) == 0) {
            return &fixture->blobs[i];
        }
    }
    return NULL;
}

static void answer_fetch(struct fixture *fixture, const struct message *request, struct message *answer)
{
    static char not_found[] = "not_found", spoilt[] = "spoilt";
    struct blob *blob = find_blob(fixture, request->checkpoint);
    if (!blob || blob->have < blob->size) {
        message_init(answer, MESSAGE_ERROR);
        answer->code = not_found;
        return;
    }
    int64_t rest = blob->size - request->offset;
    assert_true(rest >= 0);
    message_init(answer, MESSAGE_CHUNK);
    answer->offset = request->offset;
    answer->size = blob->size;
    answer->bytes = blob->bytes + request->offset;
    answer->byte_count = (size_t)(rest < CHUNK ? rest : CHUNK);
    if (fixture->corrupt > 0 && request->offset == 0 && rest > (int64_t)sizeof spoilt) {
        fixture->corrupt--;
        answer->bytes = spoilt; /* and too short: the rest of the piece has to be asked for again */
        answer->byte_count = sizeof spoilt;
    }
}

/* As docs/protocol.md: in order only; a wrong place is malformed; what is there is there. */
static void answer_put(struct fixture *fixture, const struct message *request, struct message *answer)
{
    static char malformed[] = "malformed", unavailable[] = "unavailable";
    struct blob *blob = find_blob(fixture, request->checkpoint);
    assert_non_null(blob);
    assert_int_equal(request->size, blob->size);
    bool complete = blob->have == blob->size && blob->size > 0;
    if (!complete && request->offset == 0) {
        blob->have = 0;
    }
    if (fixture->full > 0) {
        fixture->full--;
        message_init(answer, MESSAGE_ERROR);
        answer->code = unavailable;
        return;
    }
    if (fixture->refuse > 0 || (!complete && request->offset != blob->have)) {
        fixture->refuse -= fixture->refuse > 0;
        blob->have = complete ? blob->have : 0;
        message_init(answer, MESSAGE_ERROR);
        answer->code = malformed;
        return;
    }
    if (!complete) {
        assert_memory_equal(request->bytes, blob->bytes + request->offset, request->byte_count);
        blob->have += (int64_t)request->byte_count;
    }
    message_init(answer, MESSAGE_STORED);
    answer->offset = blob->have;
    answer->size = blob->size;
}

static void serve(struct fixture *fixture)
{
    struct message request, answer;
    struct peer peer;
    int in_hand = 0;
    while (endpoint_receive(fixture->server, &peer, &request, NULL) == 1) {
        in_hand++;
        if (!is_lost(fixture)) {
            if (request.type == MESSAGE_PUT) {
                answer_put(fixture, &request, &answer);
            } else {
                answer_fetch(fixture, &request, &answer);
            }
            answer.checkpoint = request.checkpoint;
            if (!is_lost(fixture)) {
                assert_int_equal(endpoint_send(fixture->server, &peer, &answer, NULL), 0);
            }
        }
        message_release(&request);
    }
    fixture->unanswered = in_hand > fixture->unanswered ? in_hand : fixture->unanswered;
}

/* Turns both sides until a transfer is over. When nothing comes for a while, something was lost: time jumps.
 */
static void await_result(struct fixture *fixture, struct transfer_result *result)
{
    struct endpoint *endpoints[2] = {fixture->server, transfers_endpoint(fixture->transfers)};
    bool readable[2];
    for (int turn = 0; turn < 4000; turn++) {
        bool more = transfers_step(fixture->transfers, fixture->now);
        if (transfers_next_result(fixture->transfers, result)) {
            return;
        }
        int64_t begun = clock_now().monotonic_ns;
        int ready = bus_wait(endpoints, 2, readable, NULL, 0, NULL, more ? 0 : PATIENCE_MS, NULL);
        /* A wait also ends when a connection changes: that is no silence. */
        bool silent = ready <= 0 && !more && clock_now().monotonic_ns - begun >= PATIENCE_MS * NS_PER_MS;
        fixture->jumps += silent;
        fixture->now += silent ? 6 * NS_PER_SECOND : NS_PER_MS;
        serve(fixture);
    }
    fail_msg("a transfer does not end");
}

static void expect_file(const char *path, const struct blob *blob)
{
    size_t size = 0;
    char *bytes = file_read(path, 0, &size, NULL);
    assert_non_null(bytes);
    assert_int_equal(size, blob->size);
    assert_memory_equal(bytes, blob->bytes, size);
    free(bytes);
}

static void fetch_sizes(struct fixture *fixture)
{
    static const int64_t sizes[] = {0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 6 * CHUNK + 77};
    struct transfer_result result;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct blob *blob = make_blob(fixture, sizes[i], true);
        char *path = blob_file(fixture, blob, "fetched");
        uint64_t id = transfers_fetch(fixture->transfers, blob->sha256, path, i % 2);
        assert_true(id > 0);
        await_result(fixture, &result);
        assert_int_equal(result.id, id);
        assert_true(result.succeeded);
        assert_int_equal(result.size, sizes[i]);
        expect_file(path, blob);
    }
    assert_true(fixture->unanswered <= 4 || fixture->jumps > 0);
}

static void test_fetch(void **state)
{
    fetch_sizes(*state);
}

static void seed(const char *what)
{
    unsigned number = (unsigned)time(NULL);
    print_message("%s: seed %u\n", what, number);
    srand(number);
}

static void test_fetch_with_losses(void **state)
{
    struct fixture *fixture = *state;
    seed("fetch");
    fixture->loss = 25;
    fetch_sizes(fixture);
}

static void put_sizes(struct fixture *fixture)
{
    static const int64_t sizes[] = {1, CHUNK, 6 * CHUNK + 77};
    struct transfer_result result;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct blob *blob = make_blob(fixture, sizes[i], false);
        char *path = blob_file(fixture, blob, "local");
        assert_int_equal(file_write(path, blob->bytes, (size_t)blob->size, 0600, NULL), 0);
        uint64_t id = transfers_put(fixture->transfers, path);
        assert_true(id > 0);
        await_result(fixture, &result);
        assert_int_equal(result.id, id);
        if (!result.succeeded) {
            fail_msg("%s", result.error.message);
        }
        assert_string_equal(result.sha256, blob->sha256);
        assert_int_equal(blob->have, blob->size);
    }
    assert_true(fixture->unanswered <= 4 || fixture->jumps > 0);
}

static void test_put(void **state)
{
    put_sizes(*state);
}

static void test_put_with_losses(void **state)
{
    struct fixture *fixture = *state;
    seed("put");
    fixture->loss = 10;
    put_sizes(fixture);
}

static void test_refusals(void **state)
{
    struct fixture *fixture = *state;
    struct blob *blob = make_blob(fixture, 100, false);
    char *path = blob_file(fixture, blob, "local");
    struct transfer_result result;
    assert_int_equal(file_write(path, blob->bytes, 100, 0600, NULL), 0);
    fixture->refuse = 2; /* it begins again */
    transfers_put(fixture->transfers, path);
    await_result(fixture, &result);
    assert_true(result.succeeded);
    blob->have = 0;
    fixture->refuse = 1000; /* and gives up in the end */
    transfers_put(fixture->transfers, path);
    await_result(fixture, &result);
    assert_false(result.succeeded);
    assert_true(fixture->refuse > 900);
}

/* A coordinator without room is waited for, however long it takes, and not pestered. */
static void test_no_room_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    struct blob *blob = make_blob(fixture, 100, false);
    char *path = blob_file(fixture, blob, "local");
    struct transfer_result result;
    int64_t begun = fixture->now;
    assert_int_equal(file_write(path, blob->bytes, 100, 0600, NULL), 0);
    fixture->full = 12;
    transfers_put(fixture->transfers, path);
    await_result(fixture, &result);
    assert_true(result.succeeded);
    /* On a slow machine an answer may come after time has jumped, and the put been repeated: two refusals for
     * one wait. */
    assert_true(fixture->now - begun >= (1 + 2 + 4 + 8 + 16 + 32) * NS_PER_SECOND);
}

static void test_spoilt_bytes_are_fetched_again(void **state)
{
    struct fixture *fixture = *state;
    struct blob *blob = make_blob(fixture, 2 * CHUNK, true);
    char *path = blob_file(fixture, blob, "fetched");
    struct transfer_result result;
    fixture->corrupt = 1;
    transfers_fetch(fixture->transfers, blob->sha256, path, false);
    await_result(fixture, &result);
    if (!result.succeeded) {
        fail_msg("%s", result.error.message);
    }
    expect_file(path, blob);
    unlink(path);
    fixture->corrupt = 1000;
    transfers_fetch(fixture->transfers, blob->sha256, path, false);
    await_result(fixture, &result);
    assert_false(result.succeeded);
    assert_false(file_exists(path)); /* never under its name with wrong bytes */
}

static void test_what_is_not_there(void **state)
{
    struct fixture *fixture = *state;
    struct transfer_result result;
    char nowhere[SHA256_TEXT];
    sha256_bytes("nowhere", 7, nowhere);
    char path[200];
    snprintf(path, sizeof path, "%s/x", fixture->folder);
    transfers_fetch(fixture->transfers, nowhere, path, false);
    await_result(fixture, &result);
    assert_false(result.succeeded);
    transfers_put(fixture->transfers, path);
    await_result(fixture, &result);
    assert_false(result.succeeded);
    assert_int_equal(result.error.code, ERROR_RESOURCE);
    snprintf(path, sizeof path, "%s/no/such/folder", fixture->folder);
    transfers_fetch(fixture->transfers, nowhere, path, false);
    await_result(fixture, &result);
    assert_false(result.succeeded);
}

static void test_many_at_once_and_a_cancel(void **state)
{
    struct fixture *fixture = *state;
    struct transfer_result result;
    uint64_t ids[6], cancelled = 0;
    bool seen[6] = {false};
    for (int i = 0; i < 6; i++) {
        struct blob *blob = make_blob(fixture, 3 * CHUNK + i, true);
        ids[i] =
            transfers_fetch(fixture->transfers, blob->sha256, blob_file(fixture, blob, "fetched"), false);
    }
    /* The first blob once more, to another place: two of one blob. */
    char *again = strdup(blob_file(fixture, &fixture->blobs[0], "again"));
    uint64_t twin = transfers_fetch(fixture->transfers, fixture->blobs[0].sha256, again, false);
    bool twin_seen = false;
    cancelled = ids[3];
    transfers_step(fixture->transfers, fixture->now);
    transfers_cancel(fixture->transfers, cancelled);
    for (int i = 0; i < 6; i++) {
        await_result(fixture, &result);
        assert_true(result.succeeded);
        twin_seen = twin_seen || result.id == twin;
        for (int j = 0; j < 6; j++) {
            seen[j] = seen[j] || result.id == ids[j];
        }
    }
    for (int j = 0; j < 6; j++) {
        assert_int_equal(seen[j], ids[j] != cancelled);
    }
    assert_true(twin_seen);
    expect_file(again, &fixture->blobs[0]);
    free(again);
    assert_true(fixture->unanswered <= 4 || fixture->jumps > 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_fetch),
        CASE(test_fetch_with_losses),
        CASE(test_put),
        CASE(test_put_with_losses),
        CASE(test_refusals),
        CASE(test_no_room_is_waited_for),
        CASE(test_spoilt_bytes_are_fetched_again),
        CASE(test_what_is_not_there),
        CASE(test_many_at_once_and_a_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
