/* SHA-256 (nettle) and random names (libsodium). */
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

void sha256_start(struct sha256 *hash)
{
    sha256_init(&hash->context);
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t size)
{
    sha256_update(&hash->context, size, bytes);
}

void sha256_finish(struct sha256 *hash, char hex[SHA256_TEXT])
{
    unsigned char digest[SHA256_DIGEST_SIZE];
    sha256_digest(&hash->context, sizeof digest, digest);
    sodium_bin2hex(hex, SHA256_TEXT, digest, sizeof digest);
}

void sha256_bytes(const void *bytes, size_t size, char hex[SHA256_TEXT])
{
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, bytes, size);
    sha256_finish(&hash, hex);
}

int sha256_file(const char *path, char hex[SHA256_TEXT], int64_t *size, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, "open", path);
    struct sha256 hash;
    sha256_start(&hash);
    unsigned char buffer[64 * 1024];
    int64_t total = 0;
    ssize_t got;
    while ((got = read(fd, buffer, sizeof buffer)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            error_set_errno(err, "read", path);
            close(fd);
            return -1;
        }
        sha256_add(&hash, buffer, (size_t)got);
        total += got;
    }
    close(fd);
    sha256_finish(&hash, hex);
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
