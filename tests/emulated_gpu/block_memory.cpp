/* The pattern of unwritten memory, and the shared memory of the block that runs. */
#include <cstring>

#include "block.h"
#include "block_memory.h"
#include "sanitizers.h"

namespace emulated
{
void pattern_fill(void *memory, size_t bytes, unsigned short pattern)
{
    unsigned long long word = 0x0001000100010001ull * pattern;
    char *to = (char *)memory;
    for (; bytes >= sizeof word; bytes -= sizeof word, to += sizeof word)
        std::memcpy(to, &word, sizeof word);
    if (bytes > 0) /* nothing may have no address */
        std::memcpy(to, &word, bytes);
}

size_t pattern_check(const void *memory, size_t bytes, unsigned short pattern)
{
    const unsigned char *at = (const unsigned char *)memory;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != (i & 1 ? pattern >> 8 : pattern & 0xff))
            return i;
    return bytes;
}

/* Dynamic shared memory with a guard behind it, and what a block finds there. */
constexpr size_t SHARED_GUARD = 64, MOST_SHARED = 232 << 10;
alignas(16) static char shared_memory[MOST_SHARED + SHARED_GUARD];

void shared_prepare(const launch_shape &shape)
{
#if EMULATED_ASAN
    __asan_unpoison_memory_region(shared_memory, sizeof shared_memory);
#endif
    pattern_fill(shared_memory, shape.shared_bytes, FRESH_PATTERN);
    pattern_fill(shared_memory + shape.shared_bytes, SHARED_GUARD, GUARD_PATTERN);
#if EMULATED_ASAN
    __asan_poison_memory_region(shared_memory + shape.shared_bytes,
                                sizeof shared_memory - shape.shared_bytes);
#else
    if (shape.static_shared)
        pattern_fill(shape.static_shared, (size_t)(shape.static_shared_end - shape.static_shared),
                     FRESH_PATTERN);
#endif
}

bool shared_intact(const launch_shape &shape)
{
#if EMULATED_ASAN
    (void)shape; /* the access itself was reported */
    return true;
#else
    return pattern_check(shared_memory + shape.shared_bytes, SHARED_GUARD, GUARD_PATTERN) == SHARED_GUARD;
#endif
}

char *shared_begin()
{
    return shared_memory;
}
} // namespace emulated
