/* Streams and events. */
#include "world.h"

#include <chrono>
#include <unordered_set>

struct CUevent_st {
    int device;
    bool timed;
    bool recorded = false;
    emulated::operation_ref mark; /* of the last record */
    std::shared_ptr<double> milliseconds;
    std::shared_ptr<emulated::capture> captured_by; /* the record went into a graph */
    std::vector<int> tail;
};

using namespace emulated;

static std::unordered_set<cudaEvent_t> &events()
{
    static auto *only = new std::unordered_set<cudaEvent_t>();
    return *only;
}

static double milliseconds_now()
{
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

static bool is_event(cudaEvent_t event)
{
    return events().count(event) != 0;
}

/* Done, or one step nearer to it. */
static cudaError_t query(const operation_ref &last)
{
    if (last && !last->done)
        run_one();
    if (device_broken(current_device()))
        return device_error_now(current_device());
    return last && !last->done ? cudaErrorNotReady : cudaSuccess;
}

extern "C" {
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned int flags, int priority)
{
    return call(CALL_ANYWHERE, [&] {
        if (flags > cudaStreamNonBlocking)
            return cudaErrorInvalidValue;
        world &all = the_world();
        auto made = std::make_unique<stream_state>();
        *made = {current_device(),
                 all.streams_made++,
                 flags == cudaStreamDefault,
                 priority,
                 flags,
                 nullptr,
                 nullptr,
                 {}};
        *handle = (cudaStream_t)(void *)made.get();
        all.devices[(size_t)current_device()]->streams.push_back(std::move(made));
        return cudaSuccess;
    });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

/* Looks the stream up and does something with it. */
#define WITH_STREAM(kind, handle, body)                                                                      \
    return call(kind, [&] {                                                                                  \
        stream_state *stream;                                                                                \
        cudaError_t error = stream_find(handle, &stream);                                                    \
        if (error != cudaSuccess)                                                                            \
            return error;                                                                                    \
        body                                                                                                 \
    })

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    WITH_STREAM(CALL_ANYWHERE, handle, *priority = stream->priority; return cudaSuccess;);
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags)
{
    WITH_STREAM(CALL_ANYWHERE, handle, *flags = stream->flags; return cudaSuccess;);
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device)
{
    WITH_STREAM(CALL_ANYWHERE, handle, *device = stream->device; return cudaSuccess;);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    for (auto &device : the_world().devices)
        for (size_t i = 0; i < device->streams.size(); i++) {
            stream_state *stream = device->streams[i].get();
            if ((void *)stream != (void *)handle)
                continue;
            if (stream->captured_by)
                stream->captured_by->invalid = true;
            if (stream->last && !stream->last->done) /* its work is still done: behind the default stream's */
                stream_queue(&device->legacy, [] { return WORK_DONE; }, {stream->last});
            device->streams.erase(device->streams.begin() + (long)i);
            return cudaSuccess;
        }
    return remember(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    WITH_STREAM(CALL_NOT_IN_CAPTURE, handle, {
        if (stream->captured_by) {
            stream->captured_by->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
        for (const operation_ref &before : stream_before(stream))
            if (before == stream->last || stream == &the_world().devices[(size_t)stream->device]->legacy)
                run_until(before);
        return device_error_now(stream->device);
    });
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    WITH_STREAM(CALL_NOT_IN_CAPTURE, handle, {
        if (stream->captured_by) {
            stream->captured_by->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
        return query(stream->last);
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *user_data)
{
    WITH_STREAM(CALL_ANYWHERE, handle,
                return stream_add(stream, cudaGraphNodeTypeHost, [function, user_data] {
                    function(user_data);
                    return WORK_DONE;
                }););
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    return call(CALL_ANYWHERE, [&] {
        *event = new CUevent_st();
        (*event)->device = current_device();
        (*event)->timed = !(flags & cudaEventDisableTiming);
        events().insert(*event);
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    if (events().erase(event) == 0)
        return remember(cudaErrorInvalidResourceHandle);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    WITH_STREAM(CALL_ANYWHERE, handle, {
        if (!is_event(event) || event->device != stream->device)
            return cudaErrorInvalidResourceHandle;
        event->recorded = true;
        event->captured_by = stream->captured_by;
        event->tail = stream->tail;
        if (stream->captured_by)
            return stream->captured_by->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
        auto stamp = std::make_shared<double>(0);
        event->milliseconds = stamp;
        event->mark = stream_queue(stream, [stamp] {
            *stamp = milliseconds_now();
            return WORK_DONE;
        });
        return cudaSuccess;
    });
}

/* A stream that waits for a recorded event of a capture joins it. */
static cudaError_t wait_in_capture(stream_state *stream, const CUevent_st *event)
{
    if (!event->captured_by) {
        if (!event->recorded)
            return cudaSuccess;
        stream->captured_by->invalid = true; /* work outside of the capture */
        return cudaErrorStreamCaptureIsolation;
    }
    if (stream->captured_by && stream->captured_by != event->captured_by) {
        stream->captured_by->invalid = event->captured_by->invalid = true;
        return cudaErrorStreamCaptureMerge;
    }
    if (!the_world().captures.count(event->captured_by))
        return cudaErrorCapturedEvent; /* that capture has ended */
    if (!stream->captured_by) {
        stream->captured_by = event->captured_by;
        stream->tail.clear();
    }
    for (int each : event->tail)
        stream->tail.push_back(each);
    return event->captured_by->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int)
{
    WITH_STREAM(CALL_ANYWHERE, handle, {
        if (!is_event(event))
            return cudaErrorInvalidResourceHandle;
        if (stream->captured_by || event->captured_by)
            return wait_in_capture(stream, event);
        if (event->mark && !event->mark->done)
            stream_queue(stream, [] { return WORK_DONE; }, {event->mark});
        return cudaSuccess;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return call(CALL_NOT_IN_CAPTURE, [&] {
        if (!is_event(event))
            return cudaErrorInvalidResourceHandle;
        return event->captured_by ? cudaErrorCapturedEvent : query(event->mark);
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return call(CALL_NOT_IN_CAPTURE, [&] {
        if (!is_event(event))
            return cudaErrorInvalidResourceHandle;
        if (event->captured_by)
            return cudaErrorCapturedEvent;
        run_until(event->mark);
        return device_error_now(event->device);
    });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return call(CALL_ANYWHERE, [&] {
        if (!is_event(start) || !is_event(end) || !start->timed || !end->timed || !start->mark || !end->mark)
            return cudaErrorInvalidResourceHandle;
        if (!start->mark->done || !end->mark->done)
            return cudaErrorNotReady;
        *milliseconds = (float)(*end->milliseconds - *start->milliseconds);
        return cudaSuccess;
    });
}
}
