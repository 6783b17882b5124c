/* Each function meets memory that ends at its 1st, 2nd, ... allocation: it says so, and leaks nothing (the
 * sanitizer build would tell). */
#include "failing_memory.h"
#include "base/files.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* Runs `step` with ever later failures until it needs none; true from it means that it succeeded. */
static void exhaust(bool (*step_f)(void *user), void *user)
{
    for (long n = 1; n < 10000; n++) {
        memory_fail_at(n);
        bool done = step_f(user);
        int failed = memory_has_failed();
        memory_fail_at(0);
        assert_true(done != (failed != 0));
        if (done) {
            assert_true(n > 1);
            return;
        }
    }
    fail_msg("never succeeds");
}

static bool write_canonical(void *user)
{
    char *text = json_canonical(user);
    bool done = text != NULL;
    free(text);
    return done;
}

static bool write_pretty(void *user)
{
    char *text = json_pretty(user);
    bool done = text != NULL;
    free(text);
    return done;
}

static bool parse(void *user)
{
    struct error err;
    json_t *value = json_parse(user, strlen(user), &err);
    bool done = value != NULL;
    json_decref(value);
    return done;
}

static void test_json(void **state)
{
    (void)state;
    json_t *object = json_object();
    for (int i = 0; i < 100; i++) {
        char key[20];
        snprintf(key, sizeof key, "key-%d", i);
        json_object_set_new(object, key, json_pack("[f, s, b]", 1.0 / (i + 1), "text", i % 2));
    }
    exhaust(write_canonical, object);
    exhaust(write_pretty, object);
    json_decref(object);
    exhaust(parse, "{\"a\": [1, 2.5, \"x\", NaN], \"b\": {\"c\": null}}");
}

static bool append_much(void *user)
{
    (void)user;
    struct text text;
    text_init(&text);
    for (int i = 0; i < 1000; i++)
        text_printf(&text, "%d %0400d", i, i);
    char *stolen = text_steal(&text);
    bool done = stolen != NULL;
    free(stolen);
    return done;
}

static bool repair(void *user)
{
    char *text = utf8_repair(user, strlen(user));
    bool done = text != NULL;
    free(text);
    return done;
}

static void test_text(void **state)
{
    (void)state;
    exhaust(append_much, NULL);
    exhaust(repair, "a\xFF-0123456789012345678901234567890123456789012345678901234567890123456789\xFE");
}

static bool read_unsized(void *user)
{
    struct error err = {0};
    char *bytes = file_read(user, 0, NULL, &err);
    bool done = bytes != NULL;
    assert_true(done || err.code == ERROR_MEMORY);
    free(bytes);
    return done;
}

static bool write_file(void *user)
{
    struct error err = {0};
    bool done = file_write(user, "x", 1, 0600, &err) == 0;
    assert_true(done || err.code == ERROR_MEMORY);
    return done;
}

static void test_files(void **state)
{
    (void)state;
    char path[] = "/tmp/rung-test-memory-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    exhaust(write_file, path);
    exhaust(read_unsized, "/proc/self/smaps");
    unlink(path);
}

int main(void)
{
    memory_setup();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
