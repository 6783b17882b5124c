/* Hash table (linear probing, backward-shift deletion) and indexed binary heap. */
#include "coordinator/engine_table.h"

#include <stdlib.h>

/* The finaliser of splitmix64: peer numbers are consecutive, and probing wants them spread. */
static uint64_t key_mix(uint64_t key)
{
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ULL;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebULL;
    return key ^ (key >> 31);
}

void engine_table_release(struct table *table)
{
    free(table->entries);
    *table = (struct table){0};
}

/* Index of the key, or of the free entry where it would go. */
static size_t table_find(const struct table *table, uint64_t key)
{
    size_t mask = table->capacity - 1;
    size_t index = key_mix(key) & mask;
    while (table->entries[index].value && table->entries[index].key != key)
        index = (index + 1) & mask;
    return index;
}

void *engine_table_get(const struct table *table, uint64_t key)
{
    return table->capacity ? table->entries[table_find(table, key)].value : NULL;
}

static int table_grow(struct table *table)
{
    struct table bigger = {.capacity = table->capacity ? table->capacity * 2 : 16, .count = table->count};
    bigger.entries = calloc(bigger.capacity, sizeof(*bigger.entries));
    if (!bigger.entries)
        return -1;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->entries[i].value)
            bigger.entries[table_find(&bigger, table->entries[i].key)] = table->entries[i];
    free(table->entries);
    *table = bigger;
    return 0;
}

int engine_table_put(struct table *table, uint64_t key, void *value)
{
    if (table->count * 3 >= table->capacity * 2 && table_grow(table) < 0)
        return -1;
    struct table_entry *entry = &table->entries[table_find(table, key)];
    if (!entry->value)
        table->count++;
    *entry = (struct table_entry){.key = key, .value = value};
    return 0;
}

void *engine_table_remove(struct table *table, uint64_t key)
{
    if (!table->capacity)
        return NULL;
    size_t mask = table->capacity - 1;
    size_t hole = table_find(table, key);
    void *value = table->entries[hole].value;
    if (!value)
        return NULL;
    table->count--;
    for (size_t next = (hole + 1) & mask; table->entries[next].value; next = (next + 1) & mask) {
        size_t home = key_mix(table->entries[next].key) & mask;
        /* May the entry move back to the hole without coming before its home? */
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            table->entries[hole] = table->entries[next];
            hole = next;
        }
    }
    table->entries[hole].value = NULL;
    return value;
}

void heap_release(struct heap *heap)
{
    free(heap->items);
    *heap = (struct heap){.order = heap->order};
}

struct trial *heap_top(const struct heap *heap)
{
    return heap->count ? heap->items[1] : NULL;
}

static void heap_place(struct heap *heap, size_t index, struct trial *trial)
{
    heap->items[index] = trial;
    *heap->order->position(trial) = index;
}

/* Moves the trial at `index` up, then down, to where it belongs. */
static void heap_settle(struct heap *heap, size_t index)
{
    struct trial *trial = heap->items[index];
    while (index > 1 && heap->order->before(trial, heap->items[index / 2])) {
        heap_place(heap, index, heap->items[index / 2]);
        index /= 2;
    }
    for (;;) {
        size_t child = index * 2;
        if (child > heap->count)
            break;
        if (child < heap->count && heap->order->before(heap->items[child + 1], heap->items[child]))
            child++;
        if (!heap->order->before(heap->items[child], trial))
            break;
        heap_place(heap, index, heap->items[child]);
        index = child;
    }
    heap_place(heap, index, trial);
}

int heap_push(struct heap *heap, struct trial *trial)
{
    if (heap->count + 2 > heap->capacity) {
        size_t capacity = heap->capacity ? heap->capacity * 2 : 16;
        struct trial **items = realloc(heap->items, capacity * sizeof(*items));
        if (!items)
            return -1;
        heap->items = items;
        heap->capacity = capacity;
    }
    heap_place(heap, ++heap->count, trial);
    heap_settle(heap, heap->count);
    return 0;
}

void heap_remove(struct heap *heap, struct trial *trial)
{
    size_t index = *heap->order->position(trial);
    if (!index)
        return;
    struct trial *last = heap->items[heap->count--];
    *heap->order->position(trial) = 0;
    if (last != trial) {
        heap_place(heap, index, last);
        heap_settle(heap, index);
    }
}

struct trial *heap_pop(struct heap *heap)
{
    struct trial *top = heap_top(heap);
    if (top)
        heap_remove(heap, top);
    return top;
}

void heap_update(struct heap *heap, struct trial *trial)
{
    size_t index = *heap->order->position(trial);
    if (index)
        heap_settle(heap, index);
}
