/* Plugins: where they are looked for, and what is said of those that cannot be used. */
#include "kernels/plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* PLUGINS: the folder of the fakes. */
static int use_fakes(void **state)
{
    (void)state;
    return setenv("RUNG_PLUGINS", PLUGINS, 1);
}

static int use_none(void **state)
{
    (void)state;
    return unsetenv("RUNG_PLUGINS");
}

/* Finding `kind` fails as ERROR_RESOURCE, and says each of `parts` (NULL ends them). */
static void assert_refused(const char *kind, const char *const *parts)
{
    struct error err = {0};

    assert_null(plugin_find(kind, &err));
    assert_int_equal(err.code, ERROR_RESOURCE);
    for (; *parts; parts++)
        if (!strstr(err.message, *parts))
            fail_msg("'%s' does not say '%s'", err.message, *parts);
}
#define assert_says(kind, ...) assert_refused(kind, (const char *const[]){__VA_ARGS__, NULL})

static void loads_what_is_right(void **state)
{
    struct device_description_of description;
    struct error err = {0};
    const struct device_plugin *plugin = plugin_find("fake", &err);

    (void)state;
    assert_non_null(plugin);
    assert_string_equal(plugin->kind, "fake");
    assert_int_equal(plugin->count(&err), 3);
    assert_int_equal(plugin->describe(2, &description, &err), 0);
    assert_int_equal(description.major, 2);
    assert_ptr_equal(plugin_find("fake", &err), plugin); /* loaded once */
}

static void looks_beside_the_program_and_in_lib(void **state)
{
    struct error err = {0};

    (void)state;
    assert_non_null(plugin_find("beside", &err));
    assert_non_null(plugin_find("installed", &err));
}

static void the_named_folder_comes_first(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(setenv("RUNG_PLUGINS", PLUGINS "/first", 1), 0);
    assert_non_null(plugin_find("beside", &err));
    assert_int_equal(plugin_find("beside", &err)->count(&err), 3);
    assert_says("installed", "belongs to another build"); /* of the two, the one in PLUGINS/first */
}

static void says_where_it_looked(void **state)
{
    (void)state;
    assert_says("absent", "no plugin for absent devices", PLUGINS "/librung_absent.so",
                "lib/rung/librung_absent.so", "RUNG_PLUGINS");
}

static void says_which_library_is_missing(void **state)
{
    (void)state;
    assert_says("needy", "librung_needy.so needs libfake_gone.so", "not on this machine", "LD_LIBRARY_PATH");
}

static void refuses_other_versions(void **state)
{
    (void)state;
    assert_says("older", "librung_older.so", "another build of rung", "interface 99");
}

static void refuses_other_files(void **state)
{
    (void)state;
    assert_says("nameless", "no plugin of rung", DEVICE_PLUGIN_SYMBOL);
    assert_says("text", "librung_text.so", "cannot be loaded");
    assert_says("renamed", "is for fake devices, not for renamed");
}

static void devices_are_numbered(void **state)
{
    static const char *const names[] = {"cuda:",   "cuda:x",  "cuda:1x",
                                        "cuda:-1", "cuda: 1", "cuda:99999999999"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct error err = {0};
        assert_null(device_create(names[i], &err));
        assert_int_equal(err.code, ERROR_RESOURCE);
        assert_non_null(strstr(err.message, names[i]));
        assert_non_null(strstr(err.message, "a number"));
    }
}

static void kinds_are_known(void **state)
{
    struct error err = {0};

    (void)state;
    assert_null(
        device_create("fake:0", &err)); /* there is such a plugin, but nobody said it is one of ours */
    assert_int_equal(err.code, ERROR_RESOURCE);
    assert_non_null(strstr(err.message, "'fake:0'"));
    assert_null(device_create("../x:0", &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(loads_what_is_right, use_fakes),
        cmocka_unit_test_setup(looks_beside_the_program_and_in_lib, use_none),
        cmocka_unit_test_setup(the_named_folder_comes_first, use_none),
        cmocka_unit_test_setup(says_where_it_looked, use_fakes),
        cmocka_unit_test_setup(says_which_library_is_missing, use_fakes),
        cmocka_unit_test_setup(refuses_other_versions, use_fakes),
        cmocka_unit_test_setup(refuses_other_files, use_fakes),
        cmocka_unit_test_setup(devices_are_numbered, use_fakes),
        cmocka_unit_test_setup(kinds_are_known, use_fakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
