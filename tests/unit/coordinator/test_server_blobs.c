/* Blobs over their own sockets: sent, fetched, asked for in vain; the data of a sweep; deletions that must
 * wait. */
#include "base/files.h"
#include "coordinator/server_blobs.h"
#include "coordinator/server_peers.h"
#include "tests/unit/coordinator/server_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define BLOB_SIZE (2 * BLOB_CHUNK + 12345)

static char *blob_make(char hash[SHA256_TEXT])
{
    char *blob = malloc(BLOB_SIZE);
    for (size_t i = 0; i < BLOB_SIZE; i++) {
        blob[i] = (char)(i * 2654435761u >> 13);
    }
    sha256_bytes(blob, BLOB_SIZE, hash);
    return blob;
}

static void welcome_get(struct server_fixture *fixture, const char *address, struct message *welcome)
{
    worker_connect(fixture, address);
    say_hello(fixture, NULL, 0);
    hear(fixture, MESSAGE_WELCOME, welcome);
}

static void put_say(struct server_fixture *fixture, const char *hash, const char *blob, int64_t offset,
                    size_t count)
{
    struct message put;
    message_init(&put, MESSAGE_PUT);
    put.checkpoint = (char *)hash;
    put.offset = offset;
    put.size = BLOB_SIZE;
    put.bytes = (char *)blob + offset;
    put.byte_count = count;
    worker_say(fixture, &put);
}

static int64_t stored_hear(struct server_fixture *fixture)
{
    struct message stored;
    hear(fixture, MESSAGE_STORED, &stored);
    int64_t offset = stored.offset;
    assert_int_equal(stored.size, BLOB_SIZE);
    message_release(&stored);
    return offset;
}

static void upload(struct server_fixture *fixture, const char *hash, const char *blob)
{
    put_say(fixture, hash, blob, 0, BLOB_CHUNK);
    put_say(fixture, hash, blob, BLOB_CHUNK, BLOB_CHUNK);
    put_say(fixture, hash, blob, 2 * BLOB_CHUNK, BLOB_SIZE - 2 * BLOB_CHUNK);
    assert_int_equal(stored_hear(fixture), BLOB_CHUNK);
    assert_int_equal(stored_hear(fixture), 2 * BLOB_CHUNK);
    assert_int_equal(stored_hear(fixture), BLOB_SIZE);
}

static void fetch_say(struct server_fixture *fixture, const char *hash, int64_t offset)
{
    struct message fetch;
    message_init(&fetch, MESSAGE_FETCH);
    fetch.checkpoint = (char *)hash;
    fetch.offset = offset;
    worker_say(fixture, &fetch);
}

static void download(struct server_fixture *fixture, const char *hash, const char *blob, size_t size)
{
    size_t offset = 0;
    do {
        struct message chunk;
        fetch_say(fixture, hash, (int64_t)offset);
        hear(fixture, MESSAGE_CHUNK, &chunk);
        assert_int_equal(chunk.size, size);
        assert_int_equal(chunk.offset, offset);
        assert_true(chunk.byte_count <= size - offset);
        if (chunk.byte_count > 0) {
            assert_memory_equal(chunk.bytes, blob + offset, chunk.byte_count);
        }
        offset += chunk.byte_count;
        message_release(&chunk);
    } while (offset < size);
}

static void expect_error(struct server_fixture *fixture, const char *code, const char *hash)
{
    struct message error;
    hear(fixture, MESSAGE_ERROR, &error);
    assert_string_equal(error.code, code);
    if (hash) {
        assert_string_equal(error.checkpoint, hash);
    }
    message_release(&error);
}

static void blobs_go_there_and_back(void **state)
{
    struct server_fixture *fixture = *state;
    struct message welcome;
    char hash[SHA256_TEXT];
    char *blob = blob_make(hash);
    server_start(fixture);
    welcome_get(fixture, fixture->address, &welcome);
    worker_connect(fixture, welcome.blob_endpoint);
    message_release(&welcome);
    put_say(fixture, hash, blob, 0, 0); /* is it there? */
    assert_int_equal(stored_hear(fixture), 0);
    upload(fixture, hash, blob);
    download(fixture, hash, blob, BLOB_SIZE);
    put_say(fixture, hash, blob, 0, 0);
    assert_int_equal(stored_hear(fixture), BLOB_SIZE);
    free(blob);
}

static void tcp_peers_are_told_a_port(void **state)
{
    struct server_fixture *fixture = *state;
    struct message welcome;
    char address[64], hash[SHA256_TEXT];
    fixture->binds[1] = "tcp://127.0.0.1:*";
    server_start(fixture);
    welcome_get(fixture, server_address(fixture->server, 1), &welcome);
    assert_null(welcome.blob_endpoint);
    assert_true(welcome.blob_port > 0);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", (int)welcome.blob_port);
    message_release(&welcome);
    worker_connect(fixture, address);
    sha256_bytes("absent", 6, hash);
    fetch_say(fixture, hash, 0);
    expect_error(fixture, "not_found", hash);
}

static void data_is_published(void **state)
{
    struct server_fixture *fixture = *state;
    struct message welcome;
    char path[128];
    static const char text[] = "a,b\n1,2\n";
    snprintf(path, sizeof path, "%s/data.csv", fixture->folder);
    assert_int_equal(file_write(path, text, sizeof text - 1, 0644, NULL), 0);
    data_is(fixture, path);
    server_start(fixture);
    welcome_get(fixture, fixture->address, &welcome);
    json_t *data = json_object_get(json_object_get(json_object_get(welcome.train, "data"), "files"), "path");
    char *hash = strdup(json_get_string(data, "sha256", ""));
    assert_int_equal(json_get_integer(data, "bytes", 0), sizeof text - 1);
    assert_string_equal(json_get_string(data, "name", ""), "data.csv");
    worker_connect(fixture, welcome.blob_endpoint);
    message_release(&welcome);
    download(fixture, hash, text, sizeof text - 1);
    free(hash);
}

static void a_sweep_keeps_its_data(void **state)
{
    struct server_fixture *fixture = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/data.csv", fixture->folder);
    assert_int_equal(file_write(path, "a\n1\n", 4, 0644, NULL), 0);
    data_is(fixture, path);
    server_start(fixture);
    server_request_stop(fixture->server, 2);
    server_end(fixture);

    fixture->settings.resume = true;
    assert_int_equal(file_write(path, "a\n2\n", 4, 0644, NULL), 0);
    struct error err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "has changed since this sweep began"));
    assert_int_equal(file_write(path, "a\n1\n", 4, 0644, NULL), 0);
    server_start(fixture);
}

static void write_text(const struct server_fixture *fixture, const char *name, const char *text,
                       char path[128])
{
    snprintf(path, 128, "%s/%s", fixture->folder, name);
    assert_int_equal(file_write(path, text, strlen(text), 0644, NULL), 0);
}

/* Features, labels and test rows in files of their own: each is published, and each is remembered. */
static void every_file_of_the_data_is_kept(void **state)
{
    struct server_fixture *fixture = *state;
    struct message welcome;
    char features[128], labels[128], test[128], hash[SHA256_TEXT];
    write_text(fixture, "x.csv", "1\n2\n", features);
    write_text(fixture, "y.csv", "0\n1\n", labels);
    write_text(fixture, "z.csv", "3\n", test);
    data_is(fixture, features);
    fixture->data_files[1] = (struct data_file){"labels", labels};
    fixture->data_files[2] = (struct data_file){"test_path", test};
    fixture->data_files[3] = (struct data_file){NULL, NULL};
    server_start(fixture);
    welcome_get(fixture, fixture->address, &welcome);
    json_t *files = json_object_get(json_object_get(welcome.train, "data"), "files");
    sha256_bytes("0\n1\n", 4, hash);
    assert_int_equal(json_object_size(files), 3);
    assert_string_equal(json_get_string(json_object_get(files, "labels"), "sha256", ""), hash);
    assert_string_equal(json_get_string(json_object_get(files, "test_path"), "name", ""), "z.csv");
    worker_connect(fixture, welcome.blob_endpoint);
    message_release(&welcome);
    download(fixture, hash, "0\n1\n", 4);
    server_request_stop(fixture->server, 2);
    server_end(fixture);

    fixture->settings.resume = true;
    write_text(fixture, "z.csv", "4\n", test);
    struct error err = server_refused(fixture);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "z.csv has changed since this sweep began"));
    write_text(fixture, "z.csv", "3\n", test);
    server_start(fixture); /* which looks for blobs that nobody names */
    for (size_t i = 0; i < 3; i++) {
        char blob[400];
        assert_int_equal(sha256_file(fixture->data_files[i].path, hash, NULL, NULL), 0);
        snprintf(blob, sizeof blob, "%s.files/blobs/%s", fixture->db, hash);
        assert_true(file_exists(blob));
    }
}

static void wrong_uploads_are_refused(void **state)
{
    struct server_fixture *fixture = *state;
    struct message welcome;
    char hash[SHA256_TEXT], other[SHA256_TEXT];
    char *blob = blob_make(hash);
    server_start(fixture);
    welcome_get(fixture, fixture->address, &welcome);
    worker_connect(fixture, welcome.blob_endpoint);
    message_release(&welcome);

    put_say(fixture, hash, blob, BLOB_CHUNK, BLOB_CHUNK); /* no beginning */
    expect_error(fixture, "malformed", hash);
    sha256_bytes("other", 5, other);
    put_say(fixture, other, blob, 0, BLOB_CHUNK);
    put_say(fixture, other, blob, BLOB_CHUNK, BLOB_CHUNK);
    put_say(fixture, other, blob, 2 * BLOB_CHUNK, BLOB_SIZE - 2 * BLOB_CHUNK); /* another hash */
    stored_hear(fixture);
    stored_hear(fixture);
    expect_error(fixture, "malformed", other);
    fetch_say(fixture, other, 0);
    expect_error(fixture, "not_found", other);
    say_ready(fixture);
    expect_error(fixture, "malformed", NULL);
    upload(fixture, hash, blob);
    free(blob);
}

/* Two attempts may make the same checkpoint: when one is told that it is stored, the other's farewell must
 * not take it. */
static void a_promised_blob_is_not_deleted(void **state)
{
    struct server_fixture *fixture = *state;
    struct blobs blobs;
    struct error err = {0};
    char folder[128], hash[SHA256_TEXT], file[SHA256_TEXT];
    char *blob = blob_make(hash), *path;
    int64_t size;
    snprintf(folder, sizeof folder, "%s/blobs", fixture->folder);
    assert_int_equal(blobs_open(&blobs, folder, &err), 0);
    const char *addresses[] = {fixture->address};
    struct blob_server *server = blob_server_create(fixture->bus, &blobs, addresses, 1, NULL, &err);
    assert_non_null(server);
    snprintf(folder, sizeof folder, "%s-blobs", fixture->address);
    worker_connect(fixture, folder);
    upload(fixture, hash, blob);
    path = blobs_path(&blobs, hash);
    assert_int_equal(blobs_import(&blobs, __FILE__, file, &size, &err), 0);

    blob_server_delete(server, hash);
    blob_server_delete(server, file);
    assert_true(file_exists(path));
    assert_false(blobs_has(&blobs, file));
    put_say(fixture, hash, blob, 0, 0); /* the same sender again: no second promise */
    assert_int_equal(stored_hear(fixture), BLOB_SIZE);
    worker_connect(fixture, folder); /* another one */
    put_say(fixture, hash, blob, 0, 0);
    assert_int_equal(stored_hear(fixture), BLOB_SIZE);
    blob_server_named(server, hash);
    blob_server_delete(server, hash);
    assert_true(file_exists(path));
    blob_server_named(server, hash);
    blob_server_delete(server, hash);
    assert_false(file_exists(path));
    blob_server_destroy(server);
    blobs_close(&blobs);
    free(path);
    free(blob);
}

static void peers_keep_their_numbers(void **state)
{
    (void)state;
    struct peers peers;
    peers_init(&peers, 60);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 2000; i++) {
            struct peer peer = {.size = 5};
            memcpy(peer.id + 1, &i, sizeof i);
            assert_int_equal(peers_number(&peers, 0, &peer, 1), 2 * i + 1);
            assert_int_equal(peers_number(&peers, 1, &peer, 1), 2 * i + 2);
            assert_int_equal(peers_address(&peers, 2 * i + 2)->socket, 1);
            assert_true(peer_equal(&peers_address(&peers, 2 * i + 1)->peer, &peer));
        }
    }
    assert_null(peers_address(&peers, 0));
    assert_null(peers_address(&peers, 4001));
    peers_release(&peers);
}

/* A hundred thousand clients that ask once, and a worker that speaks all the time. */
static void silent_peers_are_forgotten(void **state)
{
    (void)state;
    struct peers peers;
    struct peer worker = {.size = 5, .id = {9}};
    peer_number first = 0, before = 0;
    peers_init(&peers, 60);
    peer_number own = peers_number(&peers, 0, &worker, 0);
    for (uint32_t i = 0; i < 100000; i++) {
        struct peer peer = {.size = 5};
        memcpy(peer.id + 1, &i, sizeof i);
        peer_number number = peers_number(&peers, 0, &peer, i);
        first = first ? first : number;
        assert_true(number != 0 && number != before && number != own);
        before = number;
        assert_int_equal(peers_number(&peers, 0, &worker, i), own);
        assert_true(peer_equal(&peers_address(&peers, number)->peer, &peer));
    }
    assert_true(peer_equal(&peers_address(&peers, own)->peer, &worker));
    assert_null(peers_address(&peers, first));
    assert_true(peers.capacity <= 512);
    struct peer again = {.size = 5};
    assert_int_not_equal(peers_number(&peers, 0, &again, 100000), first);
    peers_release(&peers);
}

/* ---- blobs that nobody names ---- */

static char *blob_file(const struct server_fixture *fixture, char fill)
{
    char name[SHA256_TEXT];
    memset(name, fill, SHA256_TEXT - 1);
    name[SHA256_TEXT - 1] = '\0';
    char *path = malloc(300);
    snprintf(path, 300, "%s.files/blobs/%s", fixture->db, name);
    return path;
}

static void stray_blobs_go_when_nobody_can_name_them(void **state)
{
    struct server_fixture *fixture = *state;
    struct message ended;
    char data[200], hash[SHA256_TEXT], data_blob[400];
    snprintf(data, sizeof data, "%s/data.csv", fixture->folder);
    assert_int_equal(file_write(data, "a,b\n1,2\n", 8, 0600, NULL), 0);
    assert_int_equal(sha256_file(data, hash, NULL, NULL), 0);
    snprintf(data_blob, sizeof data_blob, "%s.files/blobs/%s", fixture->db, hash);
    data_is(fixture, data);
    server_start(fixture);
    join_sweep(fixture);
    char *named = blob_file(fixture, 'a'), *stray = blob_file(fixture, 'b');
    assert_int_equal(file_write(named, "x", 1, 0600, NULL), 0);
    assert_int_equal(file_write(stray, "y", 1, 0600, NULL), 0);

    assert_int_equal(begin_trial(fixture), 1); /* it is handed back with its checkpoint, and runs again */
    message_init(&ended, MESSAGE_ENDED);
    ended.trial = ended.attempt = ended.sequence = 1;
    ended.outcome = OUTCOME_INTERRUPTED;
    ended.checkpoint = (char[SHA256_TEXT]){0};
    memset(ended.checkpoint, 'a', SHA256_TEXT - 1);
    worker_say(fixture, &ended);
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
    assert_int_equal(begin_trial(fixture), 1);
    server_request_stop(fixture->server, 2);
    server_end(fixture);

    fixture->settings.resume = true;
    server_start(fixture); /* its worker may be about to name the stray one */
    assert_true(file_exists(stray));
    struct running_attempt running = {.trial = 1, .attempt = 2};
    worker_connect(fixture, fixture->address);
    say_hello(fixture, &running, 1);
    hear_and_forget(fixture, MESSAGE_WELCOME);
    say_ended(fixture, 1, 2, 1, OUTCOME_INTERRUPTED, 0);
    hear_and_forget(fixture, MESSAGE_ACKNOWLEDGE);
    server_request_stop(fixture->server, 2);
    server_end(fixture);
    assert_true(file_exists(stray));

    server_start(fixture); /* nothing runs now */
    assert_false(file_exists(stray));
    assert_true(file_exists(named));
    assert_true(file_exists(data_blob));
    server_request_stop(fixture->server, 2);
    free(named);
    free(stray);
}

/* A checkpoint whose bytes rotted is not taken for the one that is sent again. */
static void a_damaged_blob_is_replaced(void **state)
{
    struct server_fixture *fixture = *state;
    struct message welcome;
    char hash[SHA256_TEXT], path[300];
    char *blob = blob_make(hash);
    server_start(fixture);
    welcome_get(fixture, fixture->address, &welcome);
    worker_connect(fixture, welcome.blob_endpoint);
    message_release(&welcome);
    upload(fixture, hash, blob);
    snprintf(path, sizeof path, "%s.files/blobs/%s", fixture->db, hash);
    assert_int_equal(file_write(path, "rotten", 6, 0600, NULL), 0);
    put_say(fixture, hash, blob, 0, 0);
    assert_int_equal(stored_hear(fixture), 0);
    upload(fixture, hash, blob);
    download(fixture, hash, blob, BLOB_SIZE);
    free(blob);
}

/* What was sent for a trial that ended without it, and what is still on its way, goes with the sweep's end,
 * promised or not. */
static void only_what_is_named_stays_at_the_end(void **state)
{
    struct server_fixture *fixture = *state;
    struct message welcome;
    char hash[SHA256_TEXT], path[300];
    char *blob = blob_make(hash);
    server_start(fixture);
    welcome_get(fixture, fixture->address, &welcome);
    worker_connect(fixture, welcome.blob_endpoint);
    message_release(&welcome);
    upload(fixture, hash, blob);
    snprintf(path, sizeof path, "%s.files/blobs/%s", fixture->db, hash);
    assert_true(file_exists(path));
    join_sweep(fixture);
    run_to_the_end(fixture, 1, 3);
    assert_false(file_exists(path));
    free(blob);
}

int main(void)
{
#define TEST(function)                                                                                       \
    cmocka_unit_test_setup_teardown(function, server_fixture_setup, server_fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(blobs_go_there_and_back),
        TEST(tcp_peers_are_told_a_port),
        TEST(data_is_published),
        TEST(every_file_of_the_data_is_kept),
        TEST(a_sweep_keeps_its_data),
        TEST(wrong_uploads_are_refused),
        TEST(a_promised_blob_is_not_deleted),
        cmocka_unit_test(peers_keep_their_numbers),
        cmocka_unit_test(silent_peers_are_forgotten),
        TEST(stray_blobs_go_when_nobody_can_name_them),
        TEST(a_damaged_blob_is_replaced),
        TEST(only_what_is_named_stays_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
