/* Memory that runs out on order: malloc, calloc and realloc of the linked libraries, and Jansson's fail from
 * the n-th call on. Link with failing_memory, which wraps them. */
#ifndef TESTS_FAILING_MEMORY_H
#define TESTS_FAILING_MEMORY_H

/* Fails the n-th allocation from now (1: the next) and all after it; 0: none. */
void memory_fail_at(long n);
/* Fails only that one. */
void memory_fail_once_at(long n);
/* Whether an allocation has failed since. */
int memory_has_failed(void);
/* Call once, before any JSON is made. */
void memory_setup(void);

#endif
