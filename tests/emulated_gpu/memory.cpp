/* Device memory is memory of its own mapping, so that it can be made unreadable when freed:
 *
 *     | guard | data, 256-byte aligned | guard ... to the end of the page | unreadable page |
 *
 * Guards are checked after each kernel and at the free; under AddressSanitizer they are poisoned instead, and
 * the access itself is reported. */
#include "world.h"

#include <cstdio>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "block.h"
#include "sanitizers.h"

namespace emulated
{
constexpr size_t GUARD = 256;
/* The device hands out memory in pieces of this size. */
constexpr size_t GRANULE = 512;
/* More than this is not filled with the pattern: it would take real memory that nobody may use. */
constexpr size_t MOST_FILLED = (size_t)64 << 20;
/* Freed mappings that are kept, unreadable; they cost address space only. */
constexpr size_t MOST_FREED = 4096;

size_t page_bytes()
{
    static const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

static size_t accounted(size_t size)
{
    return (size + GRANULE - 1) / GRANULE * GRANULE;
}

void memory_fill_fresh(char *data, size_t bytes)
{
    pattern_fill(data, bytes < MOST_FILLED ? bytes : MOST_FILLED, FRESH_PATTERN);
}

static size_t guard_behind(const allocation &of)
{
    return (size_t)(of.mapping + of.mapped - page_bytes() - (of.data + of.size));
}

static void guards_set(const allocation &around)
{
    pattern_fill(around.mapping, GUARD, GUARD_PATTERN);
    char *end = around.data + around.size;
    /* The pattern's phase is that of the address, whatever the size. */
    for (size_t i = 0; i < guard_behind(around); i++)
        end[i] = (char)((uintptr_t)(end + i) & 1 ? GUARD_PATTERN >> 8 : GUARD_PATTERN & 0xff);
#if EMULATED_ASAN
    __asan_poison_memory_region(around.mapping, GUARD);
    __asan_poison_memory_region(end, guard_behind(around));
#endif
}

#if !EMULATED_ASAN
/* Whether the guards' first GUARD bytes, where nearly every overrun begins, are as they were set. Runs after
 * each kernel for each allocation. */
static bool guards_look_intact(const allocation &around)
{
    static const std::vector<char> pattern = [] {
        std::vector<char> filled(GUARD + 2);
        pattern_fill(filled.data(), filled.size(), GUARD_PATTERN);
        return filled;
    }();
    const char *end = around.data + around.size;
    return std::memcmp(around.mapping, pattern.data(), GUARD) == 0 &&
           std::memcmp(end, pattern.data() + ((uintptr_t)end & 1), GUARD) == 0;
}

/* How far in front of or behind the data something was written; 0: nowhere. */
static long guard_fault(const allocation &around)
{
    size_t at = pattern_check(around.mapping, GUARD, GUARD_PATTERN);
    if (at < GUARD)
        return (long)at - (long)GUARD;
    const unsigned char *end = (const unsigned char *)around.data + around.size;
    for (size_t i = 0; i < guard_behind(around); i++)
        if (end[i] != ((uintptr_t)(end + i) & 1 ? GUARD_PATTERN >> 8 : GUARD_PATTERN & 0xff))
            return (long)i + 1;
    return 0;
}
#endif

static bool guards_intact(const allocation &around, const char *after, bool all_of_them)
{
#if EMULATED_ASAN
    (void)around;
    (void)after;
    (void)all_of_them;
    return true;
#else
    if (!all_of_them && guards_look_intact(around))
        return true;
    long fault = guard_fault(around);
    if (fault == 0)
        return true;
    report("%s: wrote %ld bytes %s an allocation of %zu bytes on device %d", after,
           fault < 0 ? -fault : fault - 1, fault < 0 ? "in front of" : "behind", around.size, around.device);
    guards_set(around); /* reported once */
    return false;
#endif
}

bool guards_check(int device, const char *after)
{
    bool found = false;
    for (const auto &[address, each] : the_world().memory)
        if (each.device == device && !guards_intact(each, after, false))
            found = true;
    return found;
}

static void mapping_drop(const allocation &gone)
{
#if EMULATED_ASAN
    __asan_unpoison_memory_region(gone.mapping, gone.mapped);
#endif
    munmap(gone.mapping, gone.mapped);
}

/* Keeps the address range, without memory behind it: whoever still uses it faults. */
static void mapping_retire(const allocation &gone)
{
    world &all = the_world();
#if EMULATED_ASAN
    __asan_poison_memory_region(gone.mapping, gone.mapped);
#endif
    madvise(gone.mapping, gone.mapped, MADV_DONTNEED);
    mprotect(gone.mapping, gone.mapped, PROT_NONE);
    all.freed.push_back(gone);
    if (all.freed.size() > MOST_FREED) {
        for (size_t i = 0; i < MOST_FREED / 2; i++)
            mapping_drop(all.freed[i]);
        all.freed.erase(all.freed.begin(), all.freed.begin() + MOST_FREED / 2);
    }
}

bool allocation_fails(size_t size, int device)
{
    world &all = the_world();
    int64_t call_number = (int64_t)++all.allocation_calls;
    for (const fault &each : all.faults.all) {
        if (each.device >= 0 && each.device != device)
            continue;
        if (each.kind == FAULT_ALLOCATION && call_number >= each.value &&
            call_number < each.value + (each.count < 0 ? 1 : each.count))
            return true;
        if (each.kind == FAULT_ALLOCATION_ABOVE && device >= 0 && size > (size_t)each.value)
            return true;
    }
    return false;
}

/* What pools hold back on the device without using it. */
static size_t retained(int device)
{
    const CUmemPoolHandle_st *pool = the_world().devices[(size_t)device]->default_pool;
    return pool->reserved - pool->used;
}

static cudaError_t memory_allocate(size_t size, int device, CUmemPoolHandle_st *pool, char **data)
{
    world &all = the_world();
    device_state &state = *all.devices[(size_t)device];
    size_t needed = accounted(size);
    if (allocation_fails(size, device))
        return cudaErrorMemoryAllocation;
    if (state.used + needed > all.set.memory && !capture_forbids())
        run_device(device); /* frees that are queued */
    if (state.used + needed > all.set.memory)
        return cudaErrorMemoryAllocation;
    size_t page = page_bytes();
    allocation made = {};
    made.mapped = (GUARD + size + GUARD + page - 1) / page * page + page;
    void *mapping = mmap(nullptr, made.mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    made.mapping = (char *)mapping;
    mprotect(made.mapping + made.mapped - page, page, PROT_NONE);
    made.data = made.mapping + GUARD;
    made.size = size;
    made.device = device;
    made.pool = pool;
    memory_fill_fresh(made.data, size);
    guards_set(made);
    all.memory[(uintptr_t)made.data] = made;
    state.used += needed;
    state.allocations++;
    if (pool) {
        pool->used += needed;
        pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
        pool->reserved = pool->used > pool->reserved ? pool->used : pool->reserved;
        pool->reserved_high = pool->reserved > pool->reserved_high ? pool->reserved : pool->reserved_high;
    }
    if (retained(device) > all.set.memory - state.used) /* the pool gives way */
        state.default_pool->reserved = state.default_pool->used + (all.set.memory - state.used);
    *data = made.data;
    return cudaSuccess;
}

static void memory_free(uintptr_t address)
{
    world &all = the_world();
    allocation gone = all.memory[address];
    device_state &state = *all.devices[(size_t)gone.device];
    if (!guards_intact(gone, "before this free, something", true))
        device_fail(gone.device, cudaErrorIllegalAddress);
    all.memory.erase(address);
    state.used -= accounted(gone.size);
    state.allocations--;
    if (gone.pool) {
        gone.pool->used -= accounted(gone.size);
        size_t kept = gone.pool->used > gone.pool->threshold ? gone.pool->used : gone.pool->threshold;
        gone.pool->reserved = gone.pool->reserved < kept ? gone.pool->reserved : kept;
    }
    mapping_retire(gone);
}

void memory_release_all(int device)
{
    world &all = the_world();
    for (auto each = all.memory.begin(); each != all.memory.end();) {
        uintptr_t address = each->first;
        int on = each->second.device;
        ++each;
        if (device < 0 || on == device)
            memory_free(address);
    }
}

allocation *allocation_find(const void *pointer, size_t bytes)
{
    auto &memory = the_world().memory;
    auto behind = memory.upper_bound((uintptr_t)pointer);
    if (behind == memory.begin())
        return nullptr;
    allocation *found = &std::prev(behind)->second;
    size_t offset = (size_t)((const char *)pointer - found->data);
    return offset <= found->size && bytes <= found->size - offset ? found : nullptr;
}

bool memory_on_device(const void *pointer, size_t bytes, int device)
{
    const allocation *found = allocation_find(pointer, bytes);
    return found && found->device == device;
}

std::string memory_describe(const void *pointer)
{
    char text[160];
    snprintf(text, sizeof text, "%p, which is no device memory", pointer);
    const char *at = (const char *)pointer;
    for (const auto &[address, each] : the_world().memory)
        if (at >= each.mapping && at < each.mapping + each.mapped)
            snprintf(text, sizeof text, "%ld bytes from the start of an allocation of %zu bytes on device %d",
                     (long)(at - each.data), each.size, each.device);
    for (const allocation &each : the_world().freed)
        if (at >= each.mapping && at < each.mapping + each.mapped)
            snprintf(text, sizeof text, "%ld bytes from the start of %zu bytes freed on device %d",
                     (long)(at - each.data), each.size, each.device);
    return text;
}
} // namespace emulated

using namespace emulated;

extern "C" {
cudaError_t cudaMalloc(void **pointer, size_t size)
{
    return call(CALL_NOT_IN_CAPTURE, [&] {
        *pointer = nullptr;
        return size ? memory_allocate(size, current_device(), nullptr, (char **)pointer) : cudaSuccess;
    });
}

cudaError_t cudaFree(void *pointer)
{
    return call(pointer ? CALL_NOT_IN_CAPTURE : CALL_ANYWHERE, [&] {
        if (!pointer)
            return cudaSuccess;
        auto found = the_world().memory.find((uintptr_t)pointer);
        if (found == the_world().memory.end() || found->second.freeing)
            return cudaErrorInvalidValue;
        run_device(found->second.device); /* a free waits for the device */
        memory_free((uintptr_t)pointer);
        return cudaSuccess;
    });
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t handle)
{
    return call(CALL_ANYWHERE, [&] {
        stream_state *stream;
        cudaError_t error = stream_find(handle, &stream);
        *pointer = nullptr;
        if (error != cudaSuccess || size == 0)
            return error;
        if (stream->captured_by) {
            stream->captured_by->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
        char *data;
        error = memory_allocate(size, pool->device, pool, &data);
        if (error != cudaSuccess)
            return error;
        /* The memory is there in the stream's order: what came too early is lost. */
        stream_queue(stream, [data, size] {
            if (allocation_find(data, size))
                memory_fill_fresh(data, size);
            return WORK_DONE;
        });
        *pointer = data;
        return cudaSuccess;
    });
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream)
{
    cudaMemPool_t pool = nullptr;
    cudaError_t error = cudaDeviceGetMemPool(&pool, current_device());
    return error == cudaSuccess ? cudaMallocFromPoolAsync(pointer, size, pool, stream) : error;
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle)
{
    return call(CALL_ANYWHERE, [&] {
        stream_state *stream;
        cudaError_t error = stream_find(handle, &stream);
        if (error != cudaSuccess || !pointer)
            return error;
        auto found = the_world().memory.find((uintptr_t)pointer);
        if (found == the_world().memory.end() || found->second.freeing)
            return cudaErrorInvalidValue;
        if (stream->captured_by) {
            stream->captured_by->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
        found->second.freeing = true;
        stream_queue(stream, [pointer] {
            memory_free((uintptr_t)pointer);
            return WORK_DONE;
        });
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    return call(CALL_ANYWHERE, [&] {
        int device = current_device();
        *total = (size_t)the_world().set.memory;
        *free_bytes = *total - the_world().devices[(size_t)device]->used - retained(device);
        return cudaSuccess;
    });
}
}
