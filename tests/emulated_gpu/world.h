/* The process's emulated devices: what the runtime's calls share. Everything is guarded by one lock, which
 * `call` takes; kernels run under it too. */
#ifndef EMULATED_GPU_WORLD_H
#define EMULATED_GPU_WORLD_H

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "random.h"
#include "settings.h"

namespace emulated
{
enum progress { WORK_DONE, WORK_WAITS /* for another process: ask again */ };
typedef std::function<progress()> work;

/* One piece of queued work. Runs when all it depends on is done. */
struct operation {
    uint64_t sequence; /* in order of queueing */
    int device, stream;
    work run;
    int waits_for = 0; /* operations that are not done yet */
    bool done = false;
    std::vector<std::shared_ptr<operation>> followers;
};
typedef std::shared_ptr<operation> operation_ref;

struct capture;

struct node {
    cudaGraphNodeType type;
    int stream; /* it was recorded in */
    work run;
    std::vector<int> after; /* positions in the graph */
};

struct stream_state {
    int device, number; /* number: unique, for the order */
    bool blocking;      /* takes part in the legacy stream's rules */
    int priority;
    unsigned flags;
    operation_ref last;
    std::shared_ptr<capture> captured_by;
    std::vector<int> tail; /* nodes the next one comes after */
};

struct capture {
    cudaStreamCaptureMode mode;
    stream_state *origin;
    uint64_t thread; /* that began it */
    bool invalid = false;
    std::vector<node> nodes;
};

struct allocation {
    char *data;
    size_t size;
    int device;
    char *mapping;
    size_t mapped;
    CUmemPoolHandle_st *pool; /* NULL: cudaMalloc */
    bool freeing;             /* cudaFreeAsync is queued */
};

struct device_state {
    stream_state legacy, per_thread;
    std::vector<std::unique_ptr<stream_state>> streams;
    cudaError_t sticky = cudaSuccess;
    bool lost = false;
    size_t used = 0, allocations = 0;
    uint64_t launches = 0;
    CUmemPoolHandle_st *default_pool = nullptr, *pool = nullptr;
    std::set<int> peers;
};

struct world {
    std::recursive_mutex lock;
    settings set;
    fault_list faults;
    std::vector<std::unique_ptr<device_state>> devices;
    std::map<uintptr_t, allocation> memory;              /* device memory, by address */
    std::map<uintptr_t, std::pair<size_t, bool>> pinned; /* host memory; second: ours to free */
    std::vector<allocation> freed;                       /* kept unreadable, oldest first */
    std::set<std::shared_ptr<capture>> captures;
    std::vector<operation_ref> ready;
    size_t pending = 0;
    uint64_t sequence = 0, allocation_calls = 0;
    int last_stream = -1, streams_made = 0;
    random dice;
    bool executing = false;
    std::string report;
};
/* Made on first use. */
world &the_world();
/* The calling thread's device. */
int &current_device();
uint64_t thread_number();

/* Prints and keeps one line about something that is wrong with the program under test. */
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Errors */
cudaError_t remember(cudaError_t error); /* for cudaGetLastError; returns it */
enum call_kind {
    CALL_ANYWHERE,
    CALL_NOT_IN_CAPTURE /* refused, and fatal to the capture, where one forbids it */
};
cudaError_t call_begin(call_kind kind);
/* Every entry of the runtime: takes the lock, refuses on a broken device, keeps the error. */
template <class Body> cudaError_t call(call_kind kind, Body body)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    cudaError_t error = call_begin(kind);
    return remember(error == cudaSuccess ? body() : error);
}
/* An asynchronous error: all later calls on the device return it. */
void device_fail(int device, cudaError_t error);
bool device_broken(int device);
cudaError_t device_error_now(int device);
void captures_invalidate();
bool capture_forbids();

/* Queueing (queue.cpp) */
cudaError_t stream_find(cudaStream_t handle, stream_state **stream);
/* Behind what the stream holds, or into the graph it records. */
cudaError_t stream_add(stream_state *stream, cudaGraphNodeType type, work run);
/* Behind the stream's work and `more`; becomes its last. */
operation_ref stream_queue(stream_state *stream, work run, const std::vector<operation_ref> &more = {});
/* Behind `after` alone. */
operation_ref operation_queue(int device, int stream, work run, const std::vector<operation_ref> &after);
/* What new work of the stream comes after. */
std::vector<operation_ref> stream_before(stream_state *stream);
/* Runs queued work, in an order that the seed chooses, until that operation is done. */
void run_until(const operation_ref &operation);
void run_device(int device);
/* One operation, if one can run; false otherwise. */
bool run_one();

/* Memory (memory.cpp) */
allocation *allocation_find(const void *pointer, size_t bytes); /* the one that holds all of it */
bool memory_on_device(const void *pointer, size_t bytes, int device);
bool memory_pinned(const void *pointer, size_t bytes);
size_t page_bytes();
/* Counts an allocation; whether the faults say that it fails. device -1: host memory. */
bool allocation_fails(size_t size, int device);
std::string memory_describe(const void *pointer);
/* Guards that were written over: reports each, true if there was one. `after`: what has just run. */
bool guards_check(int device, const char *after);
void memory_release_all(int device); /* -1: of all */
void memory_fill_fresh(char *data, size_t bytes);

/* Kernels (kernel.cpp) */
/* Counts it, and plants what the faults say: the error, or success. */
cudaError_t launch_fault(int device, const char *name);
} // namespace emulated

struct CUmemPoolHandle_st {
    int device;
    uint64_t threshold = 0, reserved = 0, reserved_high = 0, used = 0, used_high = 0;
};

#endif
