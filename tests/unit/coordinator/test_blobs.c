/* Blobs: uploads in chunks, several at once, cut off, wrong, or on a failing disk. */
#include "base/files.h"
#include "coordinator/blobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define SIZE (2 * BLOB_CHUNK + 12345)

struct fixture {
    char root[64], folder[80];
    struct blobs blobs;
    char *bytes; /* SIZE of them */
    char sha256[SHA256_TEXT];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    snprintf(fixture->root, sizeof fixture->root, "/tmp/rung-blobs-XXXXXX");
    assert_non_null(mkdtemp(fixture->root));
    snprintf(fixture->folder, sizeof fixture->folder, "%s/deep/blobs", fixture->root);
    assert_int_equal(blobs_open(&fixture->blobs, fixture->folder, NULL), 0);
    fixture->bytes = malloc(SIZE);
    for (int i = 0; i < SIZE; i++) {
        fixture->bytes[i] = (char)(i * 31 + i / 257);
    }
    sha256_bytes(fixture->bytes, SIZE, fixture->sha256);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    blobs_close(&fixture->blobs);
    folder_remove(fixture->root, NULL);
    free(fixture->bytes);
    free(fixture);
    return 0;
}

static int count_files(const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    int count = 0;
    while ((entry = readdir(entries)) != NULL) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(entries);
    return count;
}

static int send_chunk(const struct fixture *fixture, uint64_t owner, int64_t offset, struct error *err)
{
    int64_t count = SIZE - offset < BLOB_CHUNK ? SIZE - offset : BLOB_CHUNK;
    return blobs_write(&fixture->blobs, owner, fixture->sha256, offset, fixture->bytes + offset, count, SIZE,
                       err);
}

static int upload(const struct fixture *fixture, uint64_t owner, struct error *err)
{
    int result = 0;
    for (int64_t offset = 0; offset < SIZE && result == 0; offset += BLOB_CHUNK) {
        result = send_chunk(fixture, owner, offset, err);
    }
    return result;
}

static void assert_readable(const struct fixture *fixture)
{
    char *buffer = malloc(BLOB_CHUNK);
    int64_t total = 0, offset = 0, count;
    while ((count = blobs_read(&fixture->blobs, fixture->sha256, offset, buffer, &total, NULL)) > 0) {
        assert_memory_equal(buffer, fixture->bytes + offset, (size_t)count);
        offset += count;
    }
    assert_int_equal(count, 0);
    assert_int_equal(offset, SIZE);
    assert_int_equal(total, SIZE);
    free(buffer);
}

static void test_upload_and_read(void **state)
{
    struct fixture *fixture = *state;
    assert_false(blobs_has(&fixture->blobs, fixture->sha256));
    assert_int_equal(send_chunk(fixture, 1, 0, NULL), 0);
    assert_int_equal(send_chunk(fixture, 1, BLOB_CHUNK, NULL), 0);
    assert_false(blobs_has(&fixture->blobs, fixture->sha256));
    assert_int_equal(send_chunk(fixture, 1, 2 * BLOB_CHUNK, NULL), 1);
    assert_true(blobs_has(&fixture->blobs, fixture->sha256));
    assert_readable(fixture);
    assert_int_equal(upload(fixture, 2, NULL), 1); /* once more is no harm */
    assert_int_equal(count_files(fixture->folder), 1);
    assert_int_equal(blobs_delete(&fixture->blobs, fixture->sha256, NULL), 0);
    assert_int_equal(blobs_delete(&fixture->blobs, fixture->sha256, NULL), 0);
    assert_false(blobs_has(&fixture->blobs, fixture->sha256));
    assert_int_equal(count_files(fixture->folder), 0);
}

static void test_empty_blob(void **state)
{
    struct fixture *fixture = *state;
    char sha256[SHA256_TEXT], buffer[1];
    int64_t total = -1;
    sha256_bytes("", 0, sha256);
    assert_int_equal(blobs_write(&fixture->blobs, 1, sha256, 0, "", 0, 0, NULL), 1);
    assert_int_equal(blobs_read(&fixture->blobs, sha256, 0, buffer, &total, NULL), 0);
    assert_int_equal(total, 0);
}

static void test_chunks_out_of_order(void **state)
{
    struct fixture *fixture = *state;
    struct error err = {0};
    assert_int_equal(send_chunk(fixture, 1, BLOB_CHUNK, &err), -1);
    assert_int_equal(err.code, ERROR_PROTOCOL);
    assert_non_null(strstr(err.message, "never begun"));
    assert_int_equal(send_chunk(fixture, 1, 0, NULL), 0);
    assert_int_equal(send_chunk(fixture, 1, 2 * BLOB_CHUNK, &err), -1);
    assert_int_equal(send_chunk(fixture, 2, BLOB_CHUNK, &err), -1); /* of someone else */
    assert_int_equal(send_chunk(fixture, 1, 0, NULL), 0);
    assert_int_equal(send_chunk(fixture, 1, 0, NULL), 0); /* starts again */
    assert_int_equal(upload(fixture, 1, NULL), 1);
    assert_readable(fixture);
}

static void test_wrong_contents(void **state)
{
    struct fixture *fixture = *state;
    struct error err = {0};
    assert_int_equal(send_chunk(fixture, 1, 0, NULL), 0);
    assert_int_equal(send_chunk(fixture, 1, BLOB_CHUNK, NULL), 0);
    fixture->bytes[SIZE - 1] ^= 1;
    assert_int_equal(send_chunk(fixture, 1, 2 * BLOB_CHUNK, &err), -1);
    assert_int_equal(err.code, ERROR_PROTOCOL);
    assert_non_null(strstr(err.message, "hash"));
    assert_int_equal(count_files(fixture->folder), 0);
}

static void test_bad_arguments(void **state)
{
    struct fixture *fixture = *state;
    struct error err = {0};
    char buffer[1];
    int64_t total;
    static const struct {
        int64_t offset, count, size;
    } cases[] = {{-1, 1, 5}, {0, -1, 5}, {0, BLOB_CHUNK + 1, 1 << 30}, {3, 3, 5}, {6, 0, 5},
                 {0, 0, 5},  {0, 1, -1}, {INT64_MAX, 1, INT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(blobs_write(&fixture->blobs, 1, fixture->sha256, cases[i].offset, fixture->bytes,
                                     cases[i].count, cases[i].size, &err),
                         -1);
        assert_int_equal(err.code, ERROR_PROTOCOL);
    }
    static const char *const names[] = {"", "../../etc/passwd", "ABCD", "/etc/passwd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_false(blobs_has(&fixture->blobs, names[i]));
        assert_int_equal(blobs_read(&fixture->blobs, names[i], 0, buffer, &total, &err), -1);
        assert_int_equal(blobs_write(&fixture->blobs, 1, names[i], 0, "x", 1, 1, &err), -1);
        assert_int_equal(blobs_delete(&fixture->blobs, names[i], &err), -1);
    }
    assert_int_equal(blobs_read(&fixture->blobs, fixture->sha256, 0, buffer, &total, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_int_equal(upload(fixture, 1, NULL), 1);
    assert_int_equal(blobs_read(&fixture->blobs, fixture->sha256, SIZE + 1, buffer, &total, &err), -1);
    assert_int_equal(blobs_read(&fixture->blobs, fixture->sha256, -1, buffer, &total, &err), -1);
    assert_int_equal(count_files(fixture->folder), 1);
}

static void test_import(void **state)
{
    struct fixture *fixture = *state;
    char path[100], sha256[SHA256_TEXT];
    int64_t size = 0;
    struct error err = {0};
    snprintf(path, sizeof path, "%s/data.csv", fixture->root);
    assert_int_equal(file_write(path, fixture->bytes, SIZE, 0600, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(blobs_import(&fixture->blobs, path, sha256, &size, NULL), 0);
        assert_string_equal(sha256, fixture->sha256);
        assert_int_equal(size, SIZE);
        assert_int_equal(count_files(fixture->folder), 1);
    }
    assert_readable(fixture);
    assert_int_equal(blobs_import(&fixture->blobs, "/no/such/file", sha256, &size, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
}

static void test_leftovers_are_removed(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(upload(fixture, 1, NULL), 1);
    assert_int_equal(send_chunk(fixture, 2, 0, NULL), 0);
    assert_int_equal(count_files(fixture->folder), 2);
    blobs_close(&fixture->blobs);
    assert_int_equal(blobs_open(&fixture->blobs, fixture->folder, NULL), 0);
    assert_int_equal(count_files(fixture->folder), 1);
    assert_readable(fixture);
}

static void *upload_in_thread(void *argument)
{
    static _Atomic uint64_t owner = 100;
    struct error err = {0};
    if (upload(argument, owner++, &err) != 1) {
        fprintf(stderr, "%s\n", err.message);
        return argument;
    }
    return NULL;
}

static void test_the_same_blob_from_many(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[6];
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, upload_in_thread, fixture), 0);
    }
    for (size_t i = 0; i < 6; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(count_files(fixture->folder), 1);
    assert_readable(fixture);
}

/* A limit on file size stands for a full disk (EFBIG instead of ENOSPC), at every place of an upload. */
static void test_no_room(void **state)
{
    struct fixture *fixture = *state;
    char path[100];
    snprintf(path, sizeof path, "%s/data.csv", fixture->root);
    assert_int_equal(file_write(path, fixture->bytes, SIZE, 0600, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        char sha256[SHA256_TEXT];
        int64_t size;
        signal(SIGXFSZ, SIG_IGN);
        for (rlim_t room = 0; room < SIZE; room += BLOB_CHUNK / 2) {
            struct error err = {0};
            struct rlimit limit = {room, RLIM_INFINITY};
            setrlimit(RLIMIT_FSIZE, &limit);
            if (upload(fixture, 1, &err) != -1 || err.code != ERROR_RESOURCE ||
                count_files(fixture->folder) != 0) {
                _exit(1);
            }
            if (blobs_import(&fixture->blobs, path, sha256, &size, &err) != -1 ||
                count_files(fixture->folder) != 0) {
                _exit(2);
            }
        }
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(upload(fixture, 1, NULL) == 1 ? 0 : 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_readable(fixture);
}

static void test_folder_in_the_way(void **state)
{
    struct fixture *fixture = *state;
    struct blobs blobs;
    struct error err = {0};
    char path[100];
    snprintf(path, sizeof path, "%s/file", fixture->root);
    assert_int_equal(file_write(path, "x", 1, 0600, NULL), 0);
    assert_int_equal(blobs_open(&blobs, path, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_null(blobs.folder);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_upload_and_read),
        TEST(test_empty_blob),
        TEST(test_chunks_out_of_order),
        TEST(test_wrong_contents),
        TEST(test_bad_arguments),
        TEST(test_import),
        TEST(test_leftovers_are_removed),
        TEST(test_the_same_blob_from_many),
        TEST(test_no_room),
        TEST(test_folder_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
