/* Keys and who may talk: CURVE key pairs, the allow-list, key files.
 *
 * Files in the config folder (default ~/.config/rung, 0700; files 0600), made on first use:
 *   coordinator.key   secret+public of coordinators started by this user
 *   worker.key        secret+public of workers and clients started by this user
 *   authorized        one public key a line (Z85, 40 characters), '#' comments: who may connect; holds
 * worker.key's coordinator.pub   only in a folder handed over by `rung keygen`: the public key of the
 * coordinator to talk to, which then takes the place of coordinator.key A key file is text: "public =
 * Z85\nsecret = Z85\n". One user with one home therefore needs no flags. */
#ifndef RUNG_WIRE_SECURITY_H
#define RUNG_WIRE_SECURITY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_SIZE 41 /* Z85 of 32 bytes and NUL */

struct key_pair {
    char public_key[KEY_SIZE];
    char secret_key[KEY_SIZE];
};

struct security {
    struct key_pair own;
    char (*allowed)[KEY_SIZE]; /* server: the allow-list; NULL on clients */
    size_t allowed_count;
    char *authorized;                             /* server: the file that list came from */
    int64_t authorized_mtime_ns, authorized_size; /* of the file, when it was read */
    char server_key[KEY_SIZE];                    /* client: the coordinator's public key; "" unknown */
};

void security_release(struct security *security); /* wipes the secrets */

int key_pair_make(struct key_pair *pair, struct error *err);
int key_pair_write(const char *path, const struct key_pair *pair, struct error *err);
/* Refuses (ERROR_USAGE, with the remedy) a file that others can read, or a malformed one. */
int key_pair_read(const char *path, struct key_pair *pair, struct error *err);

/* Loads (making what is missing) the coordinator's security from `folder` (NULL: the config folder). */
int security_for_coordinator(struct security *security, const char *folder, struct error *err);
#define COORDINATOR_PUBLIC_FILE "coordinator.pub"
/* The same for a worker or client; `server_key` NULL: the one of coordinator.pub, else of coordinator.key. */
int security_for_client(struct security *security, const char *folder, const char *server_key,
                        struct error *err);
/* Reads the allow-list again if its file has changed, so that keys can be added and withdrawn while a
 * coordinator runs. A file that cannot be read (err says why) leaves the list as it was. One thread at a
 * time. */
int security_refresh(struct security *security, struct error *err);
/* Adds a public key to `folder`/authorized. */
int security_authorize(const char *folder, const char *public_key, const char *comment, struct error *err);

#endif
