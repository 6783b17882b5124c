#include "failing_memory.h"

#include <jansson.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static long left;
static int failed, once;

void memory_fail_at(long n)
{
    left = n;
    failed = once = 0;
}

void memory_fail_once_at(long n)
{
    memory_fail_at(n);
    once = 1;
}

int memory_has_failed(void)
{
    return failed;
}

static int fails(void)
{
    if (left == 0)
        return 0;
    if (left > 1) {
        left--;
        return 0;
    }
    failed = 1;
    if (once)
        left = 0;
    return 1;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

void memory_setup(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
}
