/* Folders of agents: private ones are gone with their agent, also with a killed one; kept checkpoints stay in
 * bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
    char *folder = strdup("/tmp/rung-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    *state = folder;
    return 0;
}

static int teardown(void **state)
{
    folder_remove(*state, NULL);
    free(*state);
    return 0;
}

static void test_private_folders(void **state)
{
    struct scratch one, other;
    assert_int_equal(scratch_open(&one, *state, NULL), 0);
    assert_int_equal(scratch_open(&other, *state, NULL), 0);
    assert_string_equal(one.blobs, other.blobs);
    assert_string_not_equal(one.folder, other.folder);
    assert_true(file_exists(one.folder)); /* not taken for a stale one */
    char *folder = strdup(one.folder);
    scratch_close(&one);
    assert_false(file_exists(folder));
    assert_true(file_exists(other.folder));
    scratch_close(&other);
    free(folder);
}

static void test_a_killed_agents_folder_is_removed(void **state)
{
    int ends[2];
    char folder[200] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct scratch scratch;
        if (scratch_open(&scratch, *state, NULL) != 0 ||
            write(ends[1], scratch.folder, strlen(scratch.folder)) <= 0) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    assert_true(read(ends[0], folder, sizeof folder - 1) > 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(file_exists(folder));
    struct scratch scratch;
    assert_int_equal(scratch_open(&scratch, *state, NULL), 0);
    assert_false(file_exists(folder));
    scratch_close(&scratch);
    close(ends[0]);
    close(ends[1]);
}

static void make_kept(struct scratch *scratch, int number, int64_t pretended_size, char sha256[SHA256_TEXT])
{
    char *path = scratch_save_path(scratch, number, 1);
    sha256_bytes(&number, sizeof number, sha256);
    assert_int_equal(file_write(path, "x", 1, 0600, NULL), 0);
    scratch_keep_file(scratch, path, sha256, pretended_size);
    assert_false(file_exists(path));
    free(path);
}

static bool is_kept(struct scratch *scratch, const char *sha256)
{
    char *path = scratch_checkpoint_path(scratch, sha256);
    bool kept = file_exists(path);
    free(path);
    return kept;
}

static void test_the_oldest_make_room(void **state)
{
    struct scratch scratch;
    char names[5][SHA256_TEXT];
    assert_int_equal(scratch_open(&scratch, *state, NULL), 0);
    for (int i = 0; i < 3; i++) {
        make_kept(&scratch, i, SCRATCH_KEPT_BYTES / 4, names[i]);
    }
    scratch_keep(&scratch, names[0], SCRATCH_KEPT_BYTES / 4); /* used again: no longer the oldest */
    make_kept(&scratch, 3, SCRATCH_KEPT_BYTES / 2, names[3]);
    assert_true(is_kept(&scratch, names[0]));
    assert_false(is_kept(&scratch, names[1]));
    assert_true(is_kept(&scratch, names[2]));
    assert_true(is_kept(&scratch, names[3]));
    make_kept(&scratch, 4, 2 * SCRATCH_KEPT_BYTES, names[4]); /* larger than all: stays alone */
    assert_false(is_kept(&scratch, names[0]));
    assert_false(is_kept(&scratch, names[3]));
    assert_true(is_kept(&scratch, names[4]));
    scratch_close(&scratch);
}

static void test_no_place(void **state)
{
    (void)state;
    struct scratch scratch;
    struct error err = {0};
    assert_int_equal(scratch_open(&scratch, "/proc/nowhere", &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, "/proc/nowhere"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_private_folders),
        CASE(test_a_killed_agents_folder_is_removed),
        CASE(test_the_oldest_make_room),
        CASE(test_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
