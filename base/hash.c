/* SHA-256 and random names, by libsodium. */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

static void hex_of(const unsigned char *bytes, size_t count, char *hex)
{
    sodium_bin2hex(hex, 2 * count + 1, bytes, count);
}

void sha256_bytes(const void *bytes, size_t size, char hex[SHA256_TEXT])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, bytes, size);
    hex_of(hash, sizeof hash, hex);
}

int sha256_file(const char *path, char hex[SHA256_TEXT], int64_t *size, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, ERROR_RESOURCE, "open %s: %s", path, strerror(errno));
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    unsigned char buffer[64 * 1024], hash[crypto_hash_sha256_BYTES];
    int64_t total = 0;
    ssize_t got;
    while ((got = read(fd, buffer, sizeof buffer)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            error_set(err, ERROR_RESOURCE, "read %s: %s", path, strerror(errno));
            close(fd);
            return -1;
        }
        crypto_hash_sha256_update(&state, buffer, (unsigned long long)got);
        total += got;
    }
    close(fd);
    crypto_hash_sha256_final(&state, hash);
    hex_of(hash, sizeof hash, hex);
    if (size)
        *size = total;
    return 0;
}

bool sha256_is_valid(const char *hex)
{
    return strlen(hex) == SHA256_TEXT - 1 && strspn(hex, "0123456789abcdef") == SHA256_TEXT - 1;
}

void random_hex(char *hex, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    /* The bytes lie in the upper half of the text and are spread from the front, each before it is
     * overwritten. */
    unsigned char *bytes = (unsigned char *)hex + count;
    randombytes_buf(bytes, count);
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = bytes[i];
        hex[2 * i] = digits[byte >> 4];
        hex[2 * i + 1] = digits[byte & 15];
    }
    hex[2 * count] = '\0';
}
