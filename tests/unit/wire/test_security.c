/* Key files: made on first use, private, agreed on by all of one user's programs; refused when malformed. */
#include "base/files.h"
#include "wire/key_pair.h"
#include "wire/security.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct fixture {
    char folder[64];
    char keys[96];
};

static int fixture_create(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    strcpy(fixture->folder, "/tmp/rung-security-XXXXXX");
    if (!mkdtemp(fixture->folder)) {
        return -1;
    }
    snprintf(fixture->keys, sizeof fixture->keys, "%s/deep/rung", fixture->folder);
    *state = fixture;
    return 0;
}

static int fixture_destroy(void **state)
{
    struct fixture *fixture = *state;
    int result = folder_remove(fixture->folder, NULL);
    free(fixture);
    return result;
}

static mode_t mode_of(const char *folder, const char *name)
{
    struct stat status;
    char *path = path_join(folder, name);
    assert_int_equal(stat(path, &status), 0);
    free(path);
    return status.st_mode & 07777;
}

static void write_text(const char *folder, const char *name, const char *text, mode_t mode)
{
    char *path = path_join(folder, name);
    assert_int_equal(file_write(path, text, strlen(text), mode, NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
    free(path);
}

/* ZeroMQ RFC 32 gives this key pair's text. */
static void bytes_become_z85(void **state)
{
    (void)state;
    static const uint8_t bytes[32] = {0xBB, 0x88, 0x47, 0x1D, 0x65, 0xE2, 0x65, 0x9B, 0x30, 0xC5, 0x5A,
                                      0x53, 0x21, 0xCE, 0xBB, 0x5A, 0xAB, 0x2B, 0x70, 0xA3, 0x98, 0x64,
                                      0x5C, 0x26, 0xDC, 0xA2, 0xB2, 0xFC, 0xB4, 0x3F, 0xC5, 0x18};
    char key[KEY_SIZE];
    key_encode(bytes, key);
    assert_string_equal(key, "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
    assert_true(key_is_valid(key));
    assert_false(key_is_valid("Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hI"));
    assert_false(key_is_valid("Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hI\""));
    assert_false(key_is_valid("########################################")); /* beyond 2^32 in five digits */
}

static void keys_are_made_on_first_use(void **state)
{
    struct fixture *fixture = *state;
    struct security coordinator, client, again;
    struct error err = {0};
    assert_int_equal(security_for_client(&client, fixture->keys, NULL, &err), 0);
    assert_int_equal(security_for_coordinator(&coordinator, fixture->keys, &err), 0);
    assert_string_equal(client.server_key, coordinator.own.public_key);
    assert_int_equal(coordinator.allowed_count, 1);
    assert_string_equal(coordinator.allowed[0], client.own.public_key);
    assert_string_not_equal(client.own.public_key, coordinator.own.public_key);
    assert_null(client.allowed);

    assert_int_equal(mode_of(fixture->keys, ""), 0700);
    assert_int_equal(mode_of(fixture->keys, "coordinator.key"), 0600);
    assert_int_equal(mode_of(fixture->keys, "worker.key"), 0600);
    assert_int_equal(mode_of(fixture->keys, "authorized"), 0600);

    assert_int_equal(security_for_client(&again, fixture->keys, NULL, &err), 0);
    assert_string_equal(again.own.secret_key, client.own.secret_key);
    security_release(&again);
    security_release(&client);
    security_release(&coordinator);
}

struct first_user {
    const char *folder;
    struct security security;
    struct error err;
    int result;
};

static void *first_use(void *argument)
{
    struct first_user *user = argument;
    user->result = security_for_client(&user->security, user->folder, NULL, &user->err);
    return NULL;
}

static void many_first_users_agree(void **state)
{
    struct fixture *fixture = *state;
    enum { USERS = 8 };
    struct first_user users[USERS] = {0};
    struct security coordinator;
    pthread_t threads[USERS];
    for (int i = 0; i < USERS; i++) {
        users[i].folder = fixture->keys;
        assert_int_equal(pthread_create(&threads[i], NULL, first_use, &users[i]), 0);
    }
    for (int i = 0; i < USERS; i++) {
        pthread_join(threads[i], NULL);
        if (users[i].result) {
            fail_msg("%s", users[i].err.message);
        }
    }
    assert_int_equal(security_for_coordinator(&coordinator, fixture->keys, NULL), 0);
    assert_int_equal(coordinator.allowed_count, 1);
    for (int i = 0; i < USERS; i++) {
        assert_string_equal(users[i].security.own.secret_key, users[0].security.own.secret_key);
        assert_string_equal(users[i].security.server_key, coordinator.own.public_key);
    }
    for (int i = 0; i < USERS; i++) {
        security_release(&users[i].security);
    }
    security_release(&coordinator);
}

static void others_must_not_read_a_key(void **state)
{
    struct fixture *fixture = *state;
    struct key_pair pair;
    struct error err = {0};
    char *path = path_join(fixture->folder, "some.key");
    assert_int_equal(key_pair_make(&pair, &err), 0);
    assert_int_equal(key_pair_write(path, &pair, &err), 0);
    assert_int_equal(key_pair_write(path, &pair, &err), -1); /* never over another key */
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(key_pair_read(path, &pair, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_non_null(strstr(err.message, "chmod 600"));
    free(path);
}

static void malformed_key_files_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char key[] = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
    char short_key[128], no_secret[128], long_key[128];
    snprintf(short_key, sizeof short_key, "public = short\nsecret = %s\n", key);
    snprintf(no_secret, sizeof no_secret, "public = %s\n", key);
    snprintf(long_key, sizeof long_key, "public = %sx\nsecret = %s\n", key, key);
    const char *const texts[] = {"", short_key, no_secret, long_key};
    char *path = path_join(fixture->folder, "bad.key");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct key_pair pair;
        struct error err = {0};
        write_text(fixture->folder, "bad.key", texts[i], 0600);
        assert_int_equal(key_pair_read(path, &pair, &err), -1);
        assert_int_equal(err.code, ERROR_USAGE);
    }
    free(path);
}

static void keys_are_authorized_once(void **state)
{
    struct fixture *fixture = *state;
    struct security coordinator;
    struct key_pair friend;
    struct error err = {0};
    assert_int_equal(key_pair_make(&friend, &err), 0);
    assert_int_equal(security_authorize(fixture->keys, "nonsense", NULL, &err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_int_equal(security_authorize(fixture->keys, friend.public_key, "a friend\nof mine", &err), 0);
    assert_int_equal(security_authorize(fixture->keys, friend.public_key, "again", &err), 0);
    assert_int_equal(security_for_coordinator(&coordinator, fixture->keys, &err), 0);
    assert_int_equal(coordinator.allowed_count, 2);
    security_release(&coordinator);
}

static void the_list_is_read_with_care(void **state)
{
    struct fixture *fixture = *state;
    struct security coordinator;
    struct error err = {0};
    assert_int_equal(security_for_coordinator(&coordinator, fixture->keys, &err), 0);
    security_release(&coordinator);
    write_text(fixture->keys, "authorized",
               "# friends\n\n  Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID # one\r\n"
               "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
               0600);
    assert_int_equal(security_for_coordinator(&coordinator, fixture->keys, &err), 0);
    assert_int_equal(coordinator.allowed_count, 2);
    security_release(&coordinator);

    write_text(fixture->keys, "authorized", "# friends\nnonsense\n", 0600);
    assert_int_equal(security_for_coordinator(&coordinator, fixture->keys, &err), -1);
    assert_non_null(strstr(err.message, "authorized:2: "));

    write_text(fixture->keys, "authorized", "", 0666);
    assert_int_equal(security_for_coordinator(&coordinator, fixture->keys, &err), -1);
    assert_non_null(strstr(err.message, "chmod 600"));
}

static void the_list_is_read_again_when_it_changes(void **state)
{
    struct fixture *fixture = *state;
    struct security coordinator;
    struct error err = {0};
    assert_int_equal(security_for_coordinator(&coordinator, fixture->keys, &err), 0);
    assert_int_equal(security_refresh(&coordinator, &err), 0);
    assert_int_equal(coordinator.allowed_count, 1);
    assert_int_equal(
        security_authorize(fixture->keys, "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", "later", &err), 0);
    assert_int_equal(security_refresh(&coordinator, &err), 0);
    assert_int_equal(coordinator.allowed_count, 2);
    assert_string_equal(coordinator.allowed[1], "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");

    /* half an edit locks nobody out, and lets nobody in */
    write_text(fixture->keys, "authorized", "nonsense\n", 0600);
    assert_int_equal(security_refresh(&coordinator, &err), -1);
    assert_int_equal(coordinator.allowed_count, 2);
    write_text(fixture->keys, "authorized", "# nobody\n", 0600);
    assert_int_equal(security_refresh(&coordinator, &err), 0);
    assert_int_equal(coordinator.allowed_count, 0);
    security_release(&coordinator);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_create, fixture_destroy)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_z85),    TEST(keys_are_made_on_first_use),
        TEST(many_first_users_agree),          TEST(others_must_not_read_a_key),
        TEST(malformed_key_files_are_refused), TEST(keys_are_authorized_once),
        TEST(the_list_is_read_with_care),      TEST(the_list_is_read_again_when_it_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
