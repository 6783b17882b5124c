/* A folder that only this user can enter, for the socket of `rung run`'s own worker: rung-XXXXXX below
 * $XDG_RUNTIME_DIR, $TMPDIR or /tmp. It is locked while its owner lives; those left behind by a killed one
 * are removed by the next to start. */
#ifndef RUNG_CLI_PRIVATE_FOLDER_H
#define RUNG_CLI_PRIVATE_FOLDER_H

#include "base/error.h"

/* A socket's path has at most 107 bytes, and the sockets in it need some. */
#define PRIVATE_FOLDER_SIZE 80

struct private_folder {
    char path[PRIVATE_FOLDER_SIZE]; /* "": none */
    int lock_fd;
};

int private_folder_make(struct private_folder *folder, struct error *err);
void private_folder_remove(struct private_folder *folder);

#endif
