/* rung keygen: keys for this user, or for another machine or person. */
#include "cli/command.h"
#include "cli/options.h"

#include "base/files.h"
#include "wire/security.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: rung keygen [--config DIR]\n"
                            "       rung keygen --for NAME [--out DIR] [--config DIR] [--force]\n"
                            "Without --for: makes this user's keys, if missing, and prints the public ones.\n"
                            "With --for: makes DIR (default NAME-keys) with a worker.key of its own and\n"
                            "coordinator.pub, and authorizes that key here, for running coordinators, too.\n"
                            "Hand DIR over by a safe way; there: rung worker ENDPOINT --config DIR.\n"
                            "\n"
                            "  --for NAME    whom the key is for (a note in the list of authorized keys)\n"
                            "  --out DIR     where the folder to hand over is made\n"
                            "  --config DIR  folder of this user's keys (default ~/.config/rung)\n"
                            "  --force       another key for a NAME that has one\n";

enum { OPTION_FOR = 1000, OPTION_OUT, OPTION_CONFIG, OPTION_FORCE };

static const struct option options_table[] = {{"for", required_argument, NULL, OPTION_FOR},
                                              {"out", required_argument, NULL, OPTION_OUT},
                                              {"config", required_argument, NULL, OPTION_CONFIG},
                                              {"force", no_argument, NULL, OPTION_FORCE},
                                              {"help", no_argument, NULL, 'h'},
                                              {NULL, 0, NULL, 0}};

static int print_own(const char *config, struct error *err)
{
    struct security client;
    if (security_for_client(&client, config, NULL, err) != 0)
        return -1;
    printf("coordinator  %s\nworker       %s\n", client.server_key, client.own.public_key);
    security_release(&client);
    return 0;
}

static int write_folder(const char *folder, const char *server_key, const struct key_pair *pair,
                        struct error *err)
{
    char line[KEY_SIZE + 1];
    int result = -1;
    snprintf(line, sizeof(line), "%s\n", server_key);
    char *key = path_join(folder, "worker.key");
    char *server = path_join(folder, COORDINATOR_PUBLIC_FILE);
    if (!key || !server)
        error_set(err, ERROR_MEMORY, "out of memory");
    else if (file_exists(key))
        error_set(err, ERROR_USAGE, "%s exists: choose another --out, or remove it", key);
    else if (folder_create(folder, 0700, err) == 0 && key_pair_write(key, pair, err) == 0)
        result = file_write(server, line, strlen(line), 0600, err);
    free(key);
    free(server);
    return result;
}

#define AUTHORIZED_LIMIT (4u << 20) /* bytes */

/* Whoever lost a key is not to be let in with it for ever: -1 where the list has a key for this name. */
static int refuse_second(const char *authorized, const char *name, struct error *err)
{
    char *text = file_read(authorized, AUTHORIZED_LIMIT, NULL, err), *rest = text, *line;
    int result = text ? 0 : -1;
    for (int number = 1; (line = strsep(&rest, "\n")) != NULL; number++) {
        const char *note = strstr(line, " # ");
        if (result == 0 && note && strcmp(note + 3, name) == 0)
            result = error_set(err, ERROR_USAGE,
                               "%s has a key: line %d of %s; delete it to withdraw that key, or authorize "
                               "another beside it with --force",
                               name, number, authorized);
    }
    free(text);
    return result;
}

static int make_for(const char *config, const char *name, const char *out, bool force, struct error *err)
{
    struct security coordinator;
    struct key_pair pair = {0};
    char folder[300];
    snprintf(folder, sizeof(folder), "%s-keys", name);
    if (!out)
        out = folder;
    if (security_for_coordinator(&coordinator, config, err) != 0)
        return -1;
    int result = force ? 0 : refuse_second(coordinator.authorized, name, err);
    if (result == 0)
        result = key_pair_make(&pair, err);
    if (result == 0)
        result = write_folder(out, coordinator.own.public_key, &pair, err);
    if (result == 0)
        result = security_authorize(config, pair.public_key, name, err);
    if (result == 0)
        printf("made %s for %s and authorized its key here\nthere: rung worker ENDPOINT --config %s\n", out,
               name, out);
    memset(&pair, 0, sizeof(pair));
    security_release(&coordinator);
    return result;
}

int command_keygen(int argc, char **argv)
{
    const char *name = NULL, *out = NULL, *config = NULL;
    struct error err = {0};
    bool force = false;
    int code;
    options_start();
    while ((code = options_next("keygen", argc, argv, options_table)) != -1) {
        switch (code) {
        case 'h':
            fputs(usage, stdout);
            return EXIT_DONE;
        case OPTION_FOR:
            name = optarg;
            break;
        case OPTION_OUT:
            out = optarg;
            break;
        case OPTION_CONFIG:
            config = optarg;
            break;
        case OPTION_FORCE:
            force = true;
            break;
        default:
            return EXIT_USAGE;
        }
    }
    if (optind < argc)
        return command_usage_error("keygen", "no arguments are taken; found '%s'", argv[optind]);
    if (out && !name)
        return command_usage_error("keygen", "--out needs --for NAME");
    if (name && (!*name || strlen(name) > 200 || strpbrk(name, "/\n")))
        return command_usage_error("keygen", "--for takes a name of 1 to 200 characters without '/'");
    int result = name ? make_for(config, name, out, force, &err) : print_own(config, &err);
    return result == 0 ? EXIT_DONE : command_fail("keygen", &err);
}
