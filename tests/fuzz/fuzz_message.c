/* The message decoder against damaged messages: whatever the bytes, it answers with a message or an error,
 * and what it took says the same once sent again. Mutations are drawn from one printed seed: `fuzz_message
 * SEED [SECONDS]` replays a run. Meant for the sanitizer build. */
#include "base/random.h"
#include "wire/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES 2048
#define HASH "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\""

static const char *const seeds[] = {
    "{\"type\":\"hello\",\"protocol\":1,\"worker\":\"w\",\"session\":\"0123456789abcdef\",\"host\":\"h\","
    "\"devices\":[{\"id\":"
    "\"cpu:0\",\"kind\":\"cpu\",\"name\":\"x\",\"memory_bytes\":1},{\"id\":\"cpu:1\",\"kind\":\"cpu\"}],"
    "\"running\":[{"
    "\"trial\":1,\"attempt\":2,\"sequence\":3}]}",
    "{\"type\":\"ready\",\"slot\":3,\"lanes\":1}",
    "{\"type\":\"heartbeat\",\"running\":[{\"trial\":1,\"attempt\":1,\"sequence\":0}],\"ready\":[0,1,2]}",
    "{\"type\":\"report\",\"trial\":1,\"attempt\":1,\"sequence\":1,\"reports\":[{\"resource\":1,\"metrics\":{"
    "\"a\":0.5,\"b\":"
    "\"NaN\",\"c\":NaN},\"seconds\":0.25}],\"device\":\"cpu/x\"}",
    "{\"type\":\"ended\",\"trial\":1,\"attempt\":1,\"sequence\":2,\"outcome\":\"paused\",\"resource\":1,"
    "\"checkpoint\":" HASH
    ",\"checkpoint_bytes\":9,\"error\":\"no \\u00e9\\n\",\"details\":{\"derived\":{\"x\":1e-5}}}",
    "{\"type\":\"welcome\",\"sweep\":\"abcd1234\",\"devices_per_trial\":1,\"heartbeat_seconds\":2.0,\"lease_"
    "seconds\":30,"
    "\"train\":{\"data\":{\"path\":\"x\"}},\"blob_port\":7156,\"maximize\":true,\"seed\":"
    "\"18446744073709551615\"}",
    "{\"type\":\"assign\",\"slot\":0,\"trials\":[{\"trial\":0,\"attempt\":1,\"parameters\":{\"a\":[1,2]},"
    "\"start\":0,\"until\":9,"
    "\"checkpoint\":" HASH ",\"final\":{\"refit\":true}}]}",
    "{\"type\":\"acknowledge\",\"trial\":1,\"attempt\":1,\"sequence\":2,\"action\":\"stop\",\"until\":27}",
    "{\"type\":\"drain\",\"now\":true,\"reason\":\"done\"}",
    "{\"type\":\"put\",\"sha256\":" HASH ",\"offset\":0,\"size\":10}",
    "{\"type\":\"error\",\"code\":\"malformed\",\"message\":\"why\",\"sha256\":null}",
    "{\"type\":\"query\",\"query\":\"leaderboard\",\"body\":{\"top\":10}}",
    "{\"type\":\"answer\",\"body\":[{},null,true,-0.0,1e308]}",
};
static const char *const pieces[] = {
    "{",    "}",         "[",       "]",       "\"",        ",",
    ":",    "null",      "true",    "NaN",     "-Infinity", "9007199254740993",
    "-1",   "1.0",       "1e999",   "\\u0000", "\xff",      "\\ud800",
    "\xc3", "\"type\":", "{}",      "[]",      "[[[[[[[[",  "99999999999999999999",
    "\"\"", " ",         "\n",      "\\",      "trial",     "stop",
    HASH,   "running",   "0.1e-400"};

struct draws {
    uint64_t seed;
    uint32_t round, count;
};

static uint32_t draw(struct draws *draws, uint32_t bound)
{
    return philox4x32(draws->seed, draws->round, draws->count++, 0, 0).word[0] % bound;
}

static size_t insert(char *bytes, size_t size, size_t at, const char *piece, size_t count)
{
    if (size + count > BYTES) {
        return size;
    }
    memmove(bytes + at + count, bytes + at, size - at);
    memcpy(bytes + at, piece, count);
    return size + count;
}

static size_t mutate(struct draws *draws, char *bytes, size_t size)
{
    size_t at = draw(draws, (uint32_t)size + 1);
    size_t count = size - at ? draw(draws, (uint32_t)(size - at)) % 40 : 0;
    const char *piece = pieces[draw(draws, sizeof pieces / sizeof *pieces)];
    char copy[64];
    switch (draw(draws, 5)) {
    case 0:
        return insert(bytes, size, at, piece, strlen(piece));
    case 1:
        if (at < size) {
            bytes[at] = (char)draw(draws, 256);
        }
        return size;
    case 2: /* cut */
        memmove(bytes + at, bytes + at + count, size - at - count);
        return size - count;
    case 3: /* again, elsewhere */
        memcpy(copy, bytes + at, count);
        return insert(bytes, size, draw(draws, (uint32_t)size + 1), copy, count);
    default: /* the end is missing */
        return draw(draws, 20) ? size : at;
    }
}

/* Sent again and read again, it is the same text. NULL, or what is wrong. */
static const char *fault_of(const struct message *message)
{
    struct message again;
    struct error err = {0};
    size_t size = 0, second_size = 0;
    char *first = message_encode(message, &size, &err);
    if (!first || message_decode(&again, first, size, message->bytes, message->byte_count, &err)) {
        free(first);
        return "taken, but not to be sent again";
    }
    char *second = message_encode(&again, &second_size, &err);
    bool same = second && size == second_size && memcmp(first, second, size) == 0;
    message_release(&again);
    free(first);
    free(second);
    return same ? NULL : "another message once sent again";
}

static const char *try_once(struct draws *draws, long *taken)
{
    char bytes[BYTES];
    const char *start = seeds[draw(draws, sizeof seeds / sizeof *seeds)];
    size_t size = strlen(start);
    memcpy(bytes, start, size);
    for (uint32_t count = draw(draws, 5); count > 0; count--) {
        size = mutate(draws, bytes, size);
    }
    /* An exact copy, so that a sanitizer sees a read past its end. */
    char *exact = malloc(size + 1);
    memcpy(exact, bytes, size);
    exact = realloc(exact, size ? size : 1);
    struct message message;
    struct error err = {0};
    const char *fault = NULL;
    if (message_decode(&message, exact, size, "frame", draw(draws, 2) ? 5 : 0, &err) == 0) {
        fault = fault_of(&message);
        message_release(&message);
        ++*taken;
    } else if (err.code != ERROR_PROTOCOL || err.message[0] == '\0') {
        fault = "no reason given";
    }
    if (fault) {
        fprintf(stderr, "seed %llu round %u: %s: %.*s\n", (unsigned long long)draws->seed, draws->round,
                fault, (int)size, exact);
    }
    free(exact);
    return fault;
}

int main(int count, char **arguments)
{
    struct draws draws = {.seed = count > 1 ? strtoull(arguments[1], NULL, 10) : (uint64_t)time(NULL)};
    double seconds = count > 2 ? strtod(arguments[2], NULL) : 2;
    const char *fault = NULL;
    long taken = 0;
    printf("seed %llu\n", (unsigned long long)draws.seed);
    fflush(stdout);
    for (clock_t start = clock(); !fault && (double)(clock() - start) < seconds * CLOCKS_PER_SEC;
         draws.round++) {
        draws.count = 0;
        fault = try_once(&draws, &taken);
    }
    printf("%u inputs, %ld taken\n", draws.round, taken);
    return fault || taken == 0;
}
