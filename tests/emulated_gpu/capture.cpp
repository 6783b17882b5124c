/* Stream capture: work is recorded as nodes of a graph instead of being queued. */
#include "world.h"

#include <algorithm>

#include "graph.h"

namespace emulated
{
static cudaStreamCaptureMode &thread_mode()
{
    static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    return mode;
}

/* Whether a call that might wait for recorded work, or end it, is forbidden to this thread. */
bool capture_forbids()
{
    for (const auto &each : the_world().captures) {
        bool own = each->thread == thread_number();
        if (thread_mode() == cudaStreamCaptureModeRelaxed || each->mode == cudaStreamCaptureModeRelaxed)
            continue;
        if (own ||
            (each->mode == cudaStreamCaptureModeGlobal && thread_mode() == cudaStreamCaptureModeGlobal))
            return true;
    }
    return false;
}

void captures_invalidate()
{
    for (const auto &each : the_world().captures)
        each->invalid = true;
}

/* Every node must lead to the origin's last ones, or the graph would leave work behind. */
static bool all_joined(const capture &of, const std::vector<int> &ends)
{
    std::vector<bool> reached(of.nodes.size());
    std::vector<int> open = ends;
    while (!open.empty()) {
        int at = open.back();
        open.pop_back();
        if (reached[(size_t)at])
            continue;
        reached[(size_t)at] = true;
        open.insert(open.end(), of.nodes[(size_t)at].after.begin(), of.nodes[(size_t)at].after.end());
    }
    return std::all_of(reached.begin(), reached.end(), [](bool each) { return each; });
}

static void streams_leave(const std::shared_ptr<capture> &ended)
{
    for (auto &device : the_world().devices) {
        for (auto &stream : device->streams)
            if (stream->captured_by == ended) {
                stream->captured_by = nullptr;
                stream->tail.clear();
            }
        if (device->per_thread.captured_by == ended) {
            device->per_thread.captured_by = nullptr;
            device->per_thread.tail.clear();
        }
    }
    the_world().captures.erase(ended);
}

static cudaError_t capture_begin(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    stream_state *stream;
    if (handle == nullptr || handle == cudaStreamLegacy)
        return cudaErrorStreamCaptureUnsupported;
    cudaError_t error = stream_find(handle, &stream);
    if (error != cudaSuccess)
        return error;
    if (stream->captured_by)
        return cudaErrorIllegalState;
    auto made = std::make_shared<capture>();
    made->mode = mode;
    made->origin = stream;
    made->thread = thread_number();
    stream->captured_by = made;
    stream->tail.clear();
    the_world().captures.insert(made);
    return cudaSuccess;
}

static cudaError_t capture_end(cudaStream_t handle, cudaGraph_t *graph)
{
    stream_state *stream;
    *graph = nullptr;
    cudaError_t error = stream_find(handle, &stream);
    if (error != cudaSuccess)
        return error;
    std::shared_ptr<capture> ended = stream->captured_by;
    if (!ended)
        return cudaErrorIllegalState;
    if (ended->origin != stream)
        return cudaErrorStreamCaptureUnmatched;
    if (ended->mode != cudaStreamCaptureModeRelaxed && ended->thread != thread_number())
        return cudaErrorStreamCaptureWrongThread;
    std::vector<int> ends = stream->tail;
    streams_leave(ended);
    if (ended->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (!all_joined(*ended, ends))
        return cudaErrorStreamCaptureUnjoined;
    *graph = graph_create(stream->device, std::move(ended->nodes));
    return cudaSuccess;
}
} // namespace emulated

using namespace emulated;

extern "C" {
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return call(CALL_ANYWHERE, [&] { return capture_begin(stream, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    return call(CALL_ANYWHERE, [&] { return capture_end(stream, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    return call(CALL_ANYWHERE, [&] {
        stream_state *stream;
        cudaError_t error = stream_find(handle, &stream);
        if (error != cudaSuccess)
            return error;
        *status = !stream->captured_by           ? cudaStreamCaptureStatusNone
                  : stream->captured_by->invalid ? cudaStreamCaptureStatusInvalidated
                                                 : cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    return call(CALL_ANYWHERE, [&] {
        std::swap(*mode, thread_mode());
        return cudaSuccess;
    });
}
}
