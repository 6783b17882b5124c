/* Bytes that are to be UTF-8, made so. */
#include "base/text.h"

#include <string.h>

/* Length of the well-formed sequence at `s` (Unicode 15, table 3-7), or 0. NUL counts as malformed: the
 * result is a C string. */
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
    unsigned char lead = s[0], low = 0x80, high = 0xBF;
    size_t length;
    if (lead == 0)
        return 0;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        length = 2;
    else if (lead >= 0xE0 && lead <= 0xEF)
        length = 3;
    else if (lead >= 0xF0 && lead <= 0xF4)
        length = 4;
    else
        return 0;
    if (left < length)
        return 0;
    if (lead == 0xE0)
        low = 0xA0; /* shorter forms exist */
    else if (lead == 0xED)
        high = 0x9F; /* surrogates */
    else if (lead == 0xF0)
        low = 0x90;
    else if (lead == 0xF4)
        high = 0x8F; /* beyond U+10FFFF */
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if (s[i] < 0x80 || s[i] > 0xBF)
            return 0;
    }
    return length;
}

bool text_is_printable(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (; *bytes; bytes++) {
        /* U+0080 to U+009F are two bytes each. */
        if (*bytes < 0x20 || *bytes == 0x7f || (bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] < 0xa0))
            return false;
    }
    return true;
}

char *utf8_repair(const char *bytes, size_t size)
{
    struct text text;
    text_init(&text);
    size_t start = 0, at = 0;
    while (at < size) {
        size_t length = utf8_sequence((const unsigned char *)bytes + at, size - at);
        if (length) {
            at += length;
            continue;
        }
        text_append_bytes(&text, bytes + start, at - start);
        text_append(&text, "\xEF\xBF\xBD");
        start = ++at;
    }
    text_append_bytes(&text, bytes + start, at - start);
    return text_steal(&text);
}

void utf8_mend(char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t length = utf8_sequence((const unsigned char *)text, left);
        if (!length) {
            *text = '?';
            length = 1;
        }
        text += length;
        left -= length;
    }
}
