/* SHA-256 in pieces, by nettle, which uses the processor's SHA instructions where there are any. Whole files
 * and blocks: sha256_file and sha256_bytes in base/files.h. No allocation; one thread at a time. */
#ifndef RUNG_BASE_SHA256_H
#define RUNG_BASE_SHA256_H

#include "base/files.h"

#include <nettle/sha2.h>
#include <stddef.h>

struct sha256 {
    struct sha256_ctx context;
};

void sha256_start(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t size);
/* The hash of everything added; `hash` may then be started again. */
void sha256_finish(struct sha256 *hash, char hex[SHA256_TEXT]);

#endif
