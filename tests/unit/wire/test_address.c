/* Which addresses are taken, before any socket sees them. */
#include "wire/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define LONG_PATH                                                                                            \
    "/tmp/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"

static void good_addresses(void **state)
{
    (void)state;
    static const char *const both[] = {"tcp://127.0.0.1:7155",    "tcp://localhost:1",
                                       "tcp://node-7.lan:65535",  "tcp://[::1]:7155",
                                       "tcp://[fe80::1%eth0]:80", "ipc:///tmp/x/socket"};
    static const char *const binds[] = {"tcp://*:0", "tcp://127.0.0.1:*", "tcp://eth0:0", "tcp://[::]:*"};
    struct error err = {0};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        assert_int_equal(address_check_bind(both[i], &err), 0);
        assert_int_equal(address_check_connect(both[i], &err), 0);
    }
    for (size_t i = 0; i < sizeof binds / sizeof *binds; i++) {
        assert_int_equal(address_check_bind(binds[i], &err), 0);
        assert_int_equal(address_check_connect(binds[i], &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
    }
}

static void bad_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *address, *why;
    } bad[] = {
        {"", "not an address"},
        {"127.0.0.1:7155", "not an address"},
        {"udp://127.0.0.1:1", "not an address"},
        {"tcp://", "port is missing"},
        {"tcp://127.0.0.1", "port is missing"},
        {"tcp://127.0.0.1:", "port is missing"},
        {"tcp://[::1]", "port is missing"},
        {"tcp://:7155", "host is missing"},
        {"tcp://127.0.0.1:65536", "65535"},
        {"tcp://127.0.0.1:72691", "65535"},
        {"tcp://127.0.0.1:99999999999999999999", "65535"},
        {"tcp://127.0.0.1:-1", "not a number"},
        {"tcp://127.0.0.1:+1", "not a number"},
        {"tcp://127.0.0.1:7155x", "not a number"},
        {"tcp://127.0.0.1: 7155", "blanks"},
        {"tcp://127.0.0.1:7155\n", "blanks"},
        {"tcp://::1:7155", "brackets"},
        {"tcp://[::1:7155", "port is missing|IPv6"},
        {"tcp://[127.0.0.1]:7155", "IPv6"},
        {"tcp://10.0.0.1:1;127.0.0.1:2", "more in it"},
        {"tcp://user@host:1", "more in it"},
        {"tcp://a/b:1", "more in it"},
        {"ipc://", "path is missing"},
        {"ipc://" LONG_PATH, "at most 101"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        assert_int_equal(address_check_bind(bad[i].address, &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
        if (!strchr(bad[i].why, '|') && !strstr(err.message, bad[i].why)) {
            fail_msg("%s: %s", bad[i].address, err.message);
        }
        err.message[0] = '\0';
        assert_int_equal(address_check_connect(bad[i].address, &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_addresses), cmocka_unit_test(bad_addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
