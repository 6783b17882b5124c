/* UTF-8 or Latin-1; see data_encoding.h. */
#include "worker/training/data_encoding.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the well-formed character at `text` (RFC 3629: no overlong forms, no surrogates, at most
 * U+10FFFF); 0: there is none. */
static size_t character_size(const unsigned char *text, size_t size)
{
    unsigned char first = text[0];
    size_t count = first < 0x80   ? 1
                   : first < 0xc2 ? 0
                   : first < 0xe0 ? 2
                   : first < 0xf0 ? 3
                   : first < 0xf5 ? 4
                                  : 0;
    if (count < 2 || count > size)
        return count > size ? 0 : count;
    for (size_t i = 1; i < count; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    unsigned char second = text[1];
    bool fits = first == 0xe0   ? second >= 0xa0
                : first == 0xed ? second < 0xa0
                : first == 0xf0 ? second >= 0x90
                : first == 0xf4 ? second < 0x90
                                : true;
    return fits ? count : 0;
}

/* Where the plain ASCII from `at` on ends; eight bytes a step, since nearly every table is nothing else. */
static size_t skip_ascii(const char *bytes, size_t size, size_t at)
{
    uint64_t word;
    for (; size - at >= sizeof word; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        if (word & 0x8080808080808080u)
            break;
    }
    while (at < size && !(bytes[at] & 0x80))
        at++;
    return at;
}

static int64_t line_at(const char *bytes, size_t at)
{
    int64_t line = 1;
    for (size_t i = 0; i < at; i++)
        line += bytes[i] == '\n' || (bytes[i] == '\r' && bytes[i + 1] != '\n');
    return line;
}

struct encoding encoding_of(const char *bytes, size_t size)
{
    struct encoding encoding = {0};
    for (size_t at = skip_ascii(bytes, size, 0); at < size; at = skip_ascii(bytes, size, at)) {
        size_t count = character_size((const unsigned char *)bytes + at, size - at);
        encoding.wide = encoding.wide || count;
        if (!count && encoding.bad++ == 0)
            encoding.bad_line = line_at(bytes, at);
        at += count ? count : 1;
    }
    return encoding;
}

/* Windows-1252 from 0x80 to 0x9f; 0: not in use, as in Latin-1. */
static const uint16_t windows[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178,
};

char *encoding_from_latin1(const char *bytes, size_t *size)
{
    size_t wide = 0;
    for (size_t i = 0; i < *size; i++)
        wide += bytes[i] & 0x80 ? 1 : 0;
    char *text = malloc(*size + 2 * wide + 1), *out = text;
    for (size_t i = 0; i < *size && text; i++) {
        unsigned int code = (unsigned char)bytes[i];
        if (code >= 0x80 && code < 0xa0 && windows[code - 0x80])
            code = windows[code - 0x80];
        if (code >= 0x800)
            *out++ = (char)(0xe0 | code >> 12);
        if (code >= 0x80)
            *out++ = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6);
        *out++ = (char)(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
    }
    if (text) {
        *out = 0;
        *size = (size_t)(out - text);
    }
    return text;
}
