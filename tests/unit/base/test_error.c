/* Errors, clock, log lines and the settings table. */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/setting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static void test_set_and_prefix(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(error_set(&err, ERROR_USAGE, "line %d: %s", 4, "bad"), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_string_equal(err.message, "line 4: bad");
    assert_int_equal(error_prefix(&err, "load %s", "spec"), -1);
    assert_string_equal(err.message, "load spec: line 4: bad");
    assert_int_equal(err.code, ERROR_USAGE);
    error_set(&err, ERROR_INTERNAL, "again: %s", err.message); /* its own text as an argument */
    assert_string_equal(err.message, "again: load spec: line 4: bad");
    assert_int_equal(error_set(NULL, ERROR_USAGE, "x"), -1);
    assert_int_equal(error_prefix(NULL, "x"), -1);
}

static void test_errno_is_named(void **state)
{
    (void)state;
    struct error err = {0};
    errno = ENOSPC;
    assert_int_equal(error_set_errno(&err, "write", "a/b"), -1);
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_string_equal(err.message, "write a/b: No space left on device");
    errno = ENOMEM;
    assert_int_equal(error_set_errno(&err, "read", "c"), -1);
    assert_int_equal(err.code, ERROR_MEMORY);
    assert_int_equal(error_set_errno(NULL, "read", "c"), -1);
}

static void test_long_messages(void **state)
{
    (void)state;
    struct error err;
    char longer[3000];
    memset(longer, 'm', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    error_set(&err, ERROR_USAGE, "%s", longer);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    error_prefix(&err, "prefix");
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message, "prefix: mmm", 11);
    error_prefix(&err, "%s", longer);
    assert_true(strlen(err.message) < sizeof err.message);
    assert_memory_equal(err.message, "mmm", 3);
}

/* Names and cells are quoted up to so many bytes, which may end inside a character; JSON takes only whole
 * ones. */
static void test_messages_are_utf8(void **state)
{
    (void)state;
    struct error err;
    char longer[3000];
    error_set(&err, ERROR_USAGE, "%.3s!", "\xc3\xa4\xc3\xa4"); /* one and a half */
    assert_string_equal(err.message, "\xc3\xa4?!");
    error_prefix(&err, "%.1s", "\xe2\x82\xac");
    assert_string_equal(err.message, "?: \xc3\xa4?!");
    for (size_t i = 0; i < sizeof longer; i++)
        longer[i] = i % 2 ? '\xa4' : '\xc3';
    longer[sizeof longer - 1] = '\0';
    error_set(&err, ERROR_USAGE, "%s", longer);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + sizeof err.message - 4, "\xc3\xa4?");
    error_set(&err, ERROR_USAGE, "%s", longer + 1);
    error_prefix(&err, "load");
    assert_memory_equal(err.message, "load: ?\xc3\xa4", 9);
}

static void test_exit_codes(void **state)
{
    (void)state;
    static const int expected[] = {
        [ERROR_NONE] = 0,   [ERROR_USAGE] = 2,    [ERROR_CONNECT] = 3,  [ERROR_RESOURCE] = 4,
        [ERROR_MEMORY] = 4, [ERROR_PROTOCOL] = 3, [ERROR_INTERNAL] = 4,
    };
    for (int code = ERROR_NONE; code <= ERROR_INTERNAL; code++) {
        struct error err = {.code = (enum error_code)code};
        assert_int_equal(error_exit_code(&err), expected[code]);
    }
}

static void test_clock_formats(void **state)
{
    (void)state;
    char buffer[32];
    assert_string_equal(clock_format_utc(0, buffer, sizeof buffer), "1970-01-01T00:00:00.000Z");
    assert_string_equal(clock_format_utc(1767323045678, buffer, sizeof buffer), "2026-01-02T03:04:05.678Z");
    assert_string_equal(clock_format_utc(-1, buffer, sizeof buffer), "1969-12-31T23:59:59.999Z");
    assert_string_equal(clock_format_utc(1709210096001, buffer, sizeof buffer), "2024-02-29T12:34:56.001Z");
    setenv("TZ", "UTC-2", 1); /* two hours east */
    tzset();
    assert_string_equal(clock_format_local(1767323045678, buffer, sizeof buffer), "2026-01-02 05:04:05");
}

static void test_clock_now(void **state)
{
    (void)state;
    struct now first = clock_now(), second = clock_now();
    assert_true(second.monotonic_ns >= first.monotonic_ns);
    assert_true(first.utc_ms / 1000 >= time(NULL) - 1 && first.utc_ms / 1000 <= time(NULL));
}

static void capture(void *user, enum log_level level, const char *line)
{
    assert_int_equal(level, LOG_LEVEL_INFO);
    snprintf(user, 500, "%s", line);
}

static void test_log_line(void **state)
{
    (void)state;
    char line[500] = "";
    struct log log = {
        .fd = -1, .level = LOG_LEVEL_INFO, .context = "sweep=abc", .write_f = capture, .user = line};
    log_info(&log, "trial=3", "said \"%s\"\n\x1b[1m\\", "no");
    assert_int_equal(line[4], '-');
    assert_int_equal(line[23], 'Z');
    assert_string_equal(line + 24,
                        " level=info sweep=abc trial=3 message=\"said \\\"no\\\"\\n\\x1b[1m\\\\\"");
    line[0] = '\0';
    log_debug(&log, "", "dropped");
    assert_string_equal(line, "");
    log.context[0] = '\0';
    log_info(&log, "", "x");
    assert_string_equal(line + 24, " level=info message=\"x\"");
    log_error(NULL, "", "nowhere");
}

static void test_log_descriptor(void **state)
{
    (void)state;
    int ends[2];
    char line[200] = "";
    assert_int_equal(pipe(ends), 0);
    struct log log = {.fd = ends[1], .level = LOG_LEVEL_ERROR};
    log_warning(&log, "", "dropped");
    log_error(&log, "worker=w", "lost");
    ssize_t size = read(ends[0], line, sizeof line - 1);
    assert_true(size > 24);
    assert_string_equal(line + 24, " level=error worker=w message=\"lost\"\n");
    close(ends[0]);
    close(ends[1]);
}

static void test_setting_find(void **state)
{
    (void)state;
    static const struct setting table[] = {{.name = "epochs"}, {.name = "data.validation"}, {.name = NULL}};
    assert_ptr_equal(setting_find(table, "data.validation"), &table[1]);
    assert_ptr_equal(setting_find(table, "epochs"), &table[0]);
    assert_null(setting_find(table, "epoch"));
    assert_null(setting_find(table, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_prefix),    cmocka_unit_test(test_errno_is_named),
        cmocka_unit_test(test_long_messages),     cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_messages_are_utf8), cmocka_unit_test(test_clock_formats),
        cmocka_unit_test(test_clock_now),         cmocka_unit_test(test_log_line),
        cmocka_unit_test(test_log_descriptor),    cmocka_unit_test(test_setting_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
