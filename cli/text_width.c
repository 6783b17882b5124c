/* How wide text is on a terminal, without a locale: wcwidth knows UTF-8 only where the locale does. */
#include "cli/listing.h"

#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

struct range {
    uint32_t first, last;
};

/* Combining marks and invisible characters (Unicode categories Mn, Me, Cf), the blocks in common use. */
static const struct range zero_width[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0900, 0x0902}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
    {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},   {0x20D0, 0x20F0}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF},
};
/* East Asian Wide and Fullwidth (Unicode TR 11), and emoji. */
static const struct range double_width[] = {
    {0x1100, 0x115F}, {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
    {0xA000, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

static bool in_ranges(uint32_t character, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (character >= ranges[i].first && character <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* The character at *bytes and its size; what is no UTF-8 counts as one character a byte. */
static uint32_t decode(const unsigned char *bytes, size_t size, size_t *used)
{
    size_t length = bytes[0] >= 0xF0 ? 4 : bytes[0] >= 0xE0 ? 3 : bytes[0] >= 0xC0 ? 2 : 1;
    *used = 1;
    if (length == 1 || length > size) {
        return bytes[0];
    }
    uint32_t character = bytes[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return bytes[0];
        }
        character = character << 6 | (bytes[i] & 0x3Fu);
    }
    *used = length;
    return character;
}

int text_width(const char *bytes, size_t size)
{
    int width = 0;
    for (size_t i = 0, used; i < size; i += used) {
        uint32_t character = decode((const unsigned char *)bytes + i, size - i, &used);
        if (in_ranges(character, zero_width, sizeof zero_width / sizeof *zero_width)) {
            continue;
        }
        width += in_ranges(character, double_width, sizeof double_width / sizeof *double_width) ? 2 : 1;
    }
    return width;
}

int terminal_width(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void text_wrap(struct text *text, const char *paragraph, int width, int indent)
{
    int used = 0;
    while (*paragraph != '\0') {
        size_t blanks = strspn(paragraph, " "), size = strcspn(paragraph + blanks, " ");
        int wide = text_width(paragraph, blanks + size);
        if (width > 0 && used > indent && used + wide > width) {
            text_printf(text, "\n%*s", indent, "");
            used = indent;
            paragraph += blanks;
            wide -= (int)blanks;
            blanks = 0;
        }
        text_append_bytes(text, paragraph, blanks + size);
        used += wide;
        paragraph += blanks + size;
    }
    text_append(text, "\n");
}
