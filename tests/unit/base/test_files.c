/* Files, folders, paths and hashes in a folder of this test's own. */
#include "base/files.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

struct fixture {
    char folder[64];
    char path[128];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    strcpy(fixture->folder, "/tmp/rung-test-files-XXXXXX");
    if (!mkdtemp(fixture->folder))
        return -1;
    snprintf(fixture->path, sizeof fixture->path, "%s/file", fixture->folder);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    int result = folder_remove(fixture->folder, &err);
    free(fixture);
    return result;
}

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *open = opendir(folder);
    for (const struct dirent *entry; (entry = readdir(open));)
        count += entry->d_name[0] != '.';
    closedir(open);
    return count;
}

static void check_content(const char *path, const char *expected)
{
    struct error err;
    size_t size;
    char *bytes = file_read(path, 0, &size, &err);
    if (!bytes)
        fail_msg("%s", err.message);
    assert_int_equal(size, strlen(expected));
    assert_string_equal(bytes, expected);
    free(bytes);
}

static void test_write_and_read(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;
    assert_false(file_exists(fixture->path));
    assert_int_equal(file_write(fixture->path, "first", 5, 0600, NULL), 0);
    check_content(fixture->path, "first");
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(file_write(fixture->path, "", 0, 0644, NULL), 0);
    check_content(fixture->path, "");
    assert_true(file_exists(fixture->path));
    assert_int_equal(file_write_unsynced(fixture->path, "third", 5, 0644, NULL), 0);
    check_content(fixture->path, "third");
    assert_int_equal(count_entries(fixture->folder), 1); /* no temporary file is left */
}

static void test_read_limits(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    file_write(fixture->path, "12345", 5, 0600, NULL);
    assert_null(file_read(fixture->path, 4, NULL, &err));
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, fixture->path));
    char *bytes = file_read(fixture->path, 5, NULL, &err);
    assert_string_equal(bytes, "12345");
    free(bytes);
}

/* A file without a size of its own is read to its end. */
static void test_read_unsized(void **state)
{
    (void)state;
    size_t size = 0;
    char *bytes = file_read("/proc/self/maps", 0, &size, NULL);
    assert_non_null(bytes);
    assert_true(size > 100);
    free(bytes);
}

static void test_read_errors(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    assert_null(file_read(fixture->path, 0, NULL, &err));
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, "No such file"));
    assert_null(file_read(fixture->folder, 0, NULL, &err));
    assert_non_null(strstr(err.message, "directory"));
}

/* In a child whose files may not grow beyond 4 KiB: a disk that fills up. */
static int write_with_full_disk(const char *path)
{
    static char bytes[8192];
    struct error err;
    struct rlimit limit = {4096, 4096};
    memset(bytes, 'x', sizeof bytes);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    if (file_write(path, bytes, sizeof bytes, 0600, &err) == 0 || err.code != ERROR_RESOURCE)
        return 1;
    if (!strstr(err.message, "too large"))
        return 2;
    return file_write_unsynced(path, bytes, sizeof bytes, 0600, &err) == 0 ? 3 : 0;
}

static void test_failed_write_keeps_the_old(void **state)
{
    struct fixture *fixture = *state;
    int status = -1;
    file_write(fixture->path, "old", 3, 0600, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(write_with_full_disk(fixture->path));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    check_content(fixture->path, "old");
    assert_int_equal(count_entries(fixture->folder), 1);
}

/* A reader at any moment sees one whole version. */
static void test_write_is_atomic(void **state)
{
    struct fixture *fixture = *state;
    static char bytes[20000];
    memset(bytes, 'a', sizeof bytes);
    file_write(fixture->path, bytes, sizeof bytes, 0600, NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 50; i++) {
            memset(bytes, i % 2 ? 'a' : 'b', sizeof bytes);
            if (file_write(fixture->path, bytes, i % 2 ? sizeof bytes : sizeof bytes / 2, 0600, NULL) != 0)
                _exit(1);
        }
        _exit(0);
    }
    int status, reads = 0;
    pid_t ended = 0;
    while (!ended) {
        ended = waitpid(child, &status, WNOHANG);
        size_t size = 0;
        char *read = file_read(fixture->path, 0, &size, NULL);
        assert_non_null(read);
        assert_int_equal(size, read[0] == 'a' ? sizeof bytes : sizeof bytes / 2);
        for (size_t i = 1; i < size; i++)
            assert_true(read[i] == read[0]);
        free(read);
        reads++;
    }
    assert_int_equal(ended, child);
    assert_int_equal(status, 0);
    print_message("%d reads\n", reads);
}

static void test_folders(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    char deep[160], inside[200], outside[160], link[200];
    snprintf(deep, sizeof deep, "%s/a/b//c", fixture->folder);
    snprintf(inside, sizeof inside, "%s/x", deep);
    snprintf(outside, sizeof outside, "%s/outside", fixture->folder);
    snprintf(link, sizeof link, "%s/a/link", fixture->folder);
    assert_int_equal(folder_create(deep, 0700, &err), 0);
    assert_int_equal(folder_create(deep, 0700, &err), 0); /* again is no error */
    file_write(inside, "x", 1, 0600, NULL);
    folder_create(outside, 0700, NULL);
    snprintf(inside, sizeof inside, "%s/keep", outside);
    file_write(inside, "keep", 4, 0600, NULL);
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(folder_create(link, 0700, &err), 0); /* a link to a folder will do */

    snprintf(deep, sizeof deep, "%s/a", fixture->folder);
    assert_int_equal(folder_remove(deep, &err), 0);
    assert_false(file_exists(deep));
    check_content(inside, "keep"); /* the link was removed, not followed */
    assert_int_equal(folder_remove(deep, &err), 0);

    file_write(fixture->path, "x", 1, 0600, NULL);
    assert_int_equal(folder_create(fixture->path, 0700, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, fixture->path));
}

static void check_path(char *path, const char *expected)
{
    assert_string_equal(path, expected);
    free(path);
}

static void test_paths(void **state)
{
    (void)state;
    check_path(path_join("a/b", "c"), "a/b/c");
    check_path(path_join("a/", "c"), "a/c");
    check_path(path_join("a", "/c"), "/c");
    check_path(path_join("/", "c"), "/c");
    check_path(path_join("", "c"), "c");
    check_path(path_folder("a/b"), "a");
    check_path(path_folder("/a/b/"), "/a");
    check_path(path_folder("a"), ".");
    check_path(path_folder("/a"), "/");
    check_path(path_folder("/"), "/");
    check_path(path_folder(""), ".");
    check_path(path_folder("a//b"), "a");
}

static void test_user_folders(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/c", 1);
    check_path(path_cache_folder(), "/c/rung");
    setenv("XDG_CONFIG_HOME", "relative", 1); /* must be ignored */
    setenv("HOME", "/h", 1);
    check_path(path_config_folder(), "/h/.config/rung");
    unsetenv("XDG_CACHE_HOME");
    check_path(path_cache_folder(), "/h/.cache/rung");
}

static void test_sha256(void **state)
{
    struct fixture *fixture = *state;
    char hex[SHA256_TEXT];
    int64_t size = 0;
    sha256_bytes("abc", 3, hex); /* FIPS 180-2, appendix B */
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_bytes("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    file_write(fixture->path, million, 1000000, 0600, NULL);
    free(million);
    assert_int_equal(sha256_file(fixture->path, hex, &size, NULL), 0);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    assert_int_equal(size, 1000000);
    struct error err;
    assert_int_equal(sha256_file("/does/not/exist", hex, NULL, &err), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);

    assert_true(sha256_is_valid(hex));
    hex[0] = 'C';
    assert_false(sha256_is_valid(hex));
    assert_false(sha256_is_valid("abc"));
    assert_false(sha256_is_valid("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd00"));
    assert_false(sha256_is_valid("../6e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd00"));
}

static void test_random_hex(void **state)
{
    (void)state;
    char first[33], second[33], none[1];
    random_hex(first, 16);
    random_hex(second, 16);
    assert_int_equal(strlen(first), 32);
    assert_int_equal(strspn(first, "0123456789abcdef"), 32);
    assert_string_not_equal(first, second);
    random_hex(none, 0);
    assert_string_equal(none, "");
    /* Every digit comes up at every place. */
    unsigned seen[4] = {0};
    for (int i = 0; i < 1000; i++) {
        char hex[5];
        random_hex(hex, 2);
        for (int place = 0; place < 4; place++)
            seen[place] |= 1u << strtol((char[]){hex[place], 0}, NULL, 16);
    }
    for (int place = 0; place < 4; place++)
        assert_int_equal(seen[place], 0xFFFF);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(test_write_and_read),
        in_folder(test_read_limits),
        cmocka_unit_test(test_read_unsized),
        in_folder(test_read_errors),
        in_folder(test_failed_write_keeps_the_old),
        in_folder(test_write_is_atomic),
        in_folder(test_folders),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_user_folders),
        in_folder(test_sha256),
        cmocka_unit_test(test_random_hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
