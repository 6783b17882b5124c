/* Checks shared by the key files; internal to wire/. */
#ifndef RUNG_WIRE_KEY_PAIR_H
#define RUNG_WIRE_KEY_PAIR_H

#include "base/error.h"
#include "wire/security.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

void key_encode(const uint8_t *bytes, char key[KEY_SIZE]); /* 32 bytes as Z85 */
/* 40 characters of Z85 that stand for 32 bytes. */
bool key_is_valid(const char *key);
/* Refuses (ERROR_USAGE, with the remedy) a file that has any of the `forbidden` mode bits. */
int file_check_private(const char *path, mode_t forbidden, struct error *err);

#endif
