/* Different texts of a column: open addressing over FNV-1a; see data_table.h. */
#include "worker/training/data_table.h"

#include "base/random.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void dictionary_release(struct dictionary *dictionary)
{
    free(dictionary->bytes);
    free(dictionary->start);
    free(dictionary->kind);
    free(dictionary->slot);
    memset(dictionary, 0, sizeof *dictionary);
}

const char *dictionary_text(const struct dictionary *dictionary, int32_t entry)
{
    return dictionary->bytes + dictionary->start[entry];
}

json_t *dictionary_to_json(const struct dictionary *dictionary, int32_t entry)
{
    const char *text = dictionary_text(dictionary, entry);
    char *valid = utf8_repair(text, strlen(text));
    json_t *string = valid ? json_string(valid) : NULL;
    free(valid);
    return string;
}

/* The slot that holds the text, or the free one where it belongs. */
static int32_t *slot_of(const struct dictionary *dictionary, const char *text, size_t size)
{
    uint32_t mask = (uint32_t)dictionary->slot_count - 1;
    uint32_t at = (uint32_t)fnv1a64(text, size) & mask;
    for (;; at = (at + 1) & mask) {
        int32_t entry = dictionary->slot[at];
        if (entry < 0)
            return &dictionary->slot[at];
        const char *known = dictionary_text(dictionary, entry);
        if (!strncmp(known, text, size) && !known[size])
            return &dictionary->slot[at];
    }
}

static int grow_slots(struct dictionary *dictionary)
{
    int32_t count = dictionary->slot_count ? dictionary->slot_count * 2 : 16;
    int32_t *slot = count > 0 ? malloc((size_t)count * sizeof *slot) : NULL;
    if (!slot)
        return -1;
    free(dictionary->slot);
    dictionary->slot = slot;
    dictionary->slot_count = count;
    memset(slot, -1, (size_t)count * sizeof *slot);
    for (int32_t i = 0; i < dictionary->count; i++) {
        const char *text = dictionary_text(dictionary, i);
        *slot_of(dictionary, text, strlen(text)) = i;
    }
    return 0;
}

static int grow_entries(struct dictionary *dictionary)
{
    int32_t capacity = dictionary->entry_capacity ? dictionary->entry_capacity * 2 : 16;
    if (capacity < 0)
        return -1;
    size_t *start = realloc(dictionary->start, (size_t)capacity * sizeof *start);
    if (!start)
        return -1;
    dictionary->start = start;
    unsigned char *kind = realloc(dictionary->kind, (size_t)capacity);
    if (!kind)
        return -1;
    dictionary->kind = kind;
    dictionary->entry_capacity = capacity;
    return 0;
}

static int grow_bytes(struct dictionary *dictionary, size_t wanted)
{
    size_t capacity = dictionary->capacity ? dictionary->capacity * 2 : 256;
    if (capacity < wanted)
        capacity = wanted * 2;
    char *bytes = realloc(dictionary->bytes, capacity);
    if (!bytes)
        return -1;
    dictionary->bytes = bytes;
    dictionary->capacity = capacity;
    return 0;
}

int32_t dictionary_add(struct dictionary *dictionary, const char *text, size_t size, enum cell_kind kind)
{
    /* At most half full, so that a search stays short and always ends. */
    if (dictionary->count * 2 >= dictionary->slot_count && grow_slots(dictionary) < 0)
        return -1;
    int32_t *slot = slot_of(dictionary, text, size);
    if (*slot >= 0)
        return *slot;
    if (dictionary->count == dictionary->entry_capacity && grow_entries(dictionary) < 0)
        return -1;
    if (dictionary->size + size + 1 > dictionary->capacity &&
        grow_bytes(dictionary, dictionary->size + size + 1) < 0)
        return -1;
    int32_t entry = dictionary->count++;
    dictionary->start[entry] = dictionary->size;
    dictionary->kind[entry] = (unsigned char)kind;
    memcpy(dictionary->bytes + dictionary->size, text, size);
    dictionary->bytes[dictionary->size + size] = 0;
    dictionary->size += size + 1;
    *slot = entry;
    return entry;
}
