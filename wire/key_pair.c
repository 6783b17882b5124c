/* CURVE key pairs: made by libsodium, written in Z85 (ZeroMQ RFC 32), kept in files that only their owner
 * reads. */
#include "wire/key_pair.h"

#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_BYTES 32
#define KEY_FILE_LIMIT 4096

static const char z85_digits[] =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/* 4 bytes, big-endian, as 5 digits of base 85. */
void key_encode(const uint8_t *bytes, char key[KEY_SIZE])
{
    for (size_t i = 0; i < KEY_BYTES / 4; i++) {
        const uint8_t *b = bytes + 4 * i;
        uint32_t value = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
        for (size_t digit = 5; digit-- > 0; value /= 85) {
            key[5 * i + digit] = z85_digits[value % 85];
        }
    }
    key[KEY_SIZE - 1] = '\0';
}

bool key_is_valid(const char *key)
{
    if (strlen(key) != KEY_SIZE - 1 || strspn(key, z85_digits) != KEY_SIZE - 1) {
        return false;
    }
    for (size_t i = 0; i < KEY_SIZE - 1; i += 5) {
        uint64_t value = 0;
        for (size_t digit = 0; digit < 5; digit++) {
            value = value * 85 + (uint64_t)(strchr(z85_digits, key[i + digit]) - z85_digits);
        }
        if (value > UINT32_MAX) {
            return false;
        }
    }
    return true;
}

int key_pair_make(struct key_pair *pair, struct error *err)
{
    uint8_t public_bytes[KEY_BYTES], secret_bytes[KEY_BYTES];
    _Static_assert(crypto_box_PUBLICKEYBYTES == KEY_BYTES && crypto_box_SECRETKEYBYTES == KEY_BYTES,
                   "CURVE keys have 32 bytes");
    if (sodium_init() < 0 || crypto_box_keypair(public_bytes, secret_bytes) != 0) {
        return error_set(err, ERROR_RESOURCE, "make a key pair: no source of random numbers");
    }
    key_encode(public_bytes, pair->public_key);
    key_encode(secret_bytes, pair->secret_key);
    sodium_memzero(secret_bytes, sizeof secret_bytes);
    return 0;
}

static int write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, text, size);
        if (count < 0 && errno != EINTR) {
            return -1;
        }
        if (count > 0) {
            text += count;
            size -= (size_t)count;
        }
    }
    return fsync(fd);
}

/* Linking a finished file to its name is atomic and fails when the name is taken: of two processes that make
 * the same key at once, one wins, and nobody ever reads half a file. */
int key_pair_write(const char *path, const struct key_pair *pair, struct error *err)
{
    char draft[4096], text[160], nonce[17];
    random_hex(nonce, 8);
    if ((size_t)snprintf(draft, sizeof draft, "%s.%s", path, nonce) >= sizeof draft) {
        return error_set(err, ERROR_USAGE, "%s: path too long", path);
    }
    int size = snprintf(text, sizeof text, "public = %s\nsecret = %s\n", pair->public_key, pair->secret_key);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return error_set(err, ERROR_RESOURCE, "%s: %s", path, strerror(errno));
    }
    bool failed = write_all(fd, text, (size_t)size) != 0;
    int reason = errno;
    close(fd);
    if (!failed && link(draft, path) != 0) {
        failed = true;
        reason = errno;
    }
    unlink(draft);
    sodium_memzero(text, sizeof text);
    if (failed) {
        return error_set(err, ERROR_RESOURCE, "%s: %s", path, strerror(reason));
    }
    return 0;
}

int file_check_private(const char *path, mode_t forbidden, struct error *err)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return error_set(err, ERROR_RESOURCE, "%s: %s", path, strerror(errno));
    }
    if (status.st_mode & forbidden) {
        return error_set(err, ERROR_USAGE, "%s: others may %s it (mode %04o); run: chmod 600 %s", path,
                         forbidden & 044 ? "read" : "change", (unsigned)(status.st_mode & 07777), path);
    }
    return 0;
}

static bool line_read(const char *text, const char *name, char key[KEY_SIZE])
{
    char found[KEY_SIZE + 1];
    char format[32];
    snprintf(format, sizeof format, "%s = %%%ds", name, KEY_SIZE);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, format, found) == 1) {
            memcpy(key, found, KEY_SIZE);
            return strlen(found) == KEY_SIZE - 1 && key_is_valid(found);
        }
        if (*line == '\0') {
            break;
        }
    }
    return false;
}

int key_pair_read(const char *path, struct key_pair *pair, struct error *err)
{
    size_t size;
    if (file_check_private(path, 077, err)) {
        return -1;
    }
    char *text = file_read(path, KEY_FILE_LIMIT, &size, err);
    if (!text) {
        return -1;
    }
    bool valid = line_read(text, "public", pair->public_key) && line_read(text, "secret", pair->secret_key);
    sodium_memzero(text, size);
    free(text);
    if (!valid) {
        return error_set(
            err, ERROR_USAGE,
            "%s: not a key file (expected lines \"public = KEY\" and \"secret = KEY\", 40 characters "
            "each); remove it to have a new one made",
            path);
    }
    return 0;
}
