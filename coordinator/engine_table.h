/* Two containers of the engine: a hash table from 64-bit keys to pointers, and a binary heap of trials that
 * knows where each one stands, so that any of them can be moved or taken out in O(log n). */
#ifndef RUNG_COORDINATOR_ENGINE_TABLE_H
#define RUNG_COORDINATOR_ENGINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_entry {
    uint64_t key;
    void *value; /* NULL: free */
};

struct table {
    struct table_entry *entries;
    size_t count, capacity; /* capacity: 0 or a power of two */
};
void engine_table_release(struct table *table);
void *engine_table_get(const struct table *table, uint64_t key); /* NULL: none */
/* Adds or replaces; value is not NULL. -1 without memory. */
int engine_table_put(struct table *table, uint64_t key, void *value);
void *engine_table_remove(struct table *table, uint64_t key); /* what was there, or NULL */

struct trial;

/* How a heap orders its trials and where a trial keeps its position in it (0: not in the heap). */
struct heap_order {
    bool (*before)(const struct trial *a, const struct trial *b);
    size_t *(*position)(struct trial *trial);
};

struct heap {
    const struct heap_order *order;
    struct trial **items; /* from index 1 */
    size_t count, capacity;
};
void heap_release(struct heap *heap);
struct trial *heap_top(const struct heap *heap);
int heap_push(struct heap *heap, struct trial *trial); /* -1 without memory */
struct trial *heap_pop(struct heap *heap);
void heap_remove(struct heap *heap, struct trial *trial); /* nothing if it is not in */
void heap_update(struct heap *heap, struct trial *trial); /* its order changed */

#endif
