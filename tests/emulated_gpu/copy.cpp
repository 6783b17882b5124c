/* Copies and fills. Both ends are checked when the call is made and again when the copy runs. */
#include "world.h"

#include <cstring>

namespace emulated
{
/* `height` rows of `width` bytes. */
struct plan {
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, width, height;
    int to_device, from_device; /* -1: host */
    size_t extent(size_t pitch) const
    {
        return height ? (height - 1) * pitch + width : 0;
    }
};

static bool end_is_there(const void *pointer, size_t bytes, int device)
{
    return device < 0 || memory_on_device(pointer, bytes, device);
}

static bool ends_are_there(const plan &copy, const char *when)
{
    const void *wrong = nullptr;
    if (!end_is_there(copy.from, copy.extent(copy.from_pitch), copy.from_device))
        wrong = copy.from;
    else if (!end_is_there(copy.to, copy.extent(copy.to_pitch), copy.to_device))
        wrong = copy.to;
    if (wrong)
        report("%s of %zu x %zu bytes: not that much memory of device %d there: %s", when, copy.height,
               copy.width, wrong == copy.to ? copy.to_device : copy.from_device,
               memory_describe(wrong).c_str());
    return !wrong;
}

static progress copy_work(const plan &copy, int device)
{
    if (!ends_are_there(copy, "copy, when it ran,")) {
        device_fail(device, cudaErrorIllegalAddress);
        return WORK_DONE;
    }
    for (size_t row = 0; row < copy.height; row++)
        std::memmove(copy.to + row * copy.to_pitch, copy.from + row * copy.from_pitch, copy.width);
    return WORK_DONE;
}

/* Which side lies where; -2: the kind does not fit the pointers. */
static cudaError_t plan_sides(plan *copy, cudaMemcpyKind kind, int device)
{
    const allocation *to = allocation_find(copy->to, 0), *from = allocation_find(copy->from, 0);
    if (kind == cudaMemcpyDefault) {
        copy->to_device = to ? to->device : -1;
        copy->from_device = from ? from->device : -1;
        return cudaSuccess;
    }
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if ((!to_device && to && copy->width) || (!from_device && from && copy->width)) {
        report("copy: device memory given as host memory: %s",
               memory_describe(!to_device && to ? copy->to : copy->from).c_str());
        return cudaErrorInvalidValue;
    }
    copy->to_device = to_device ? device : -1;
    copy->from_device = from_device ? device : -1;
    return cudaSuccess;
}

/* Ordinary memory is read before the call returns; pinned memory when the copy runs. */
static void stage(plan *copy, std::shared_ptr<std::vector<char>> *staging)
{
    if (copy->from_device >= 0 || copy->to_device < 0 ||
        memory_pinned(copy->from, copy->extent(copy->from_pitch)))
        return;
    *staging = std::make_shared<std::vector<char>>(copy->from, copy->from + copy->extent(copy->from_pitch));
    copy->from = (*staging)->data();
}

static cudaError_t copy_queue(plan copy, cudaStream_t handle, bool blocking)
{
    stream_state *stream;
    cudaError_t error = stream_find(handle, &stream);
    if (error != cudaSuccess)
        return error;
    if (copy.width == 0 || copy.height == 0)
        return cudaSuccess;
    if (!ends_are_there(copy, "copy"))
        return cudaErrorInvalidValue;
    int device = stream->device;
    std::shared_ptr<std::vector<char>> staging;
    bool to_ordinary = copy.to_device < 0 && !memory_pinned(copy.to, copy.extent(copy.to_pitch));
    if (!stream->captured_by)
        stage(&copy, &staging);
    error = stream_add(stream, cudaGraphNodeTypeMemcpy,
                       [copy, device, staging] { return copy_work(copy, device); });
    /* A copy to ordinary memory is complete when the call returns. */
    if (error == cudaSuccess && !stream->captured_by && (blocking || to_ordinary))
        run_until(stream->last);
    return error != cudaSuccess ? error : device_error_now(device);
}

static cudaError_t copy_rows(plan copy, cudaMemcpyKind kind, cudaStream_t stream, bool blocking)
{
    return call(blocking ? CALL_NOT_IN_CAPTURE : CALL_ANYWHERE, [&] {
        if (copy.height > 1 && (copy.to_pitch < copy.width || copy.from_pitch < copy.width))
            return cudaErrorInvalidValue;
        cudaError_t error = plan_sides(&copy, kind, current_device());
        return error == cudaSuccess ? copy_queue(copy, stream, blocking) : error;
    });
}

static cudaError_t fill_rows(char *to, size_t pitch, int value, size_t width, size_t height,
                             cudaStream_t handle, bool blocking)
{
    return call(blocking ? CALL_NOT_IN_CAPTURE : CALL_ANYWHERE, [&] {
        stream_state *stream;
        cudaError_t error = stream_find(handle, &stream);
        if (error != cudaSuccess || width == 0 || height == 0)
            return error;
        plan fill = {to, nullptr, pitch, 0, width, height, current_device(), -1};
        if (!ends_are_there(fill, "memset"))
            return cudaErrorInvalidValue;
        int device = stream->device;
        error = stream_add(stream, cudaGraphNodeTypeMemset, [fill, value, device] {
            if (!ends_are_there(fill, "memset, when it ran,")) {
                device_fail(device, cudaErrorIllegalAddress);
                return WORK_DONE;
            }
            for (size_t row = 0; row < fill.height; row++)
                std::memset(fill.to + row * fill.to_pitch, value, fill.width);
            return WORK_DONE;
        });
        if (error == cudaSuccess && blocking)
            run_until(stream->last);
        return error != cudaSuccess ? error : device_error_now(device);
    });
}
} // namespace emulated

using namespace emulated;

extern "C" {
cudaError_t cudaMemcpy(void *to, const void *from, size_t count, enum cudaMemcpyKind kind)
{
    return copy_rows({(char *)to, (const char *)from, count, count, count, 1, -1, -1}, kind, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return copy_rows({(char *)to, (const char *)from, count, count, count, 1, -1, -1}, kind, stream, false);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind)
{
    return copy_rows({(char *)to, (const char *)from, to_pitch, from_pitch, width, height, -1, -1}, kind,
                     nullptr, true);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_rows({(char *)to, (const char *)from, to_pitch, from_pitch, width, height, -1, -1}, kind,
                     stream, false);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t count,
                                cudaStream_t stream)
{
    return call(CALL_ANYWHERE, [&] {
        return copy_queue({(char *)to, (const char *)from, count, count, count, 1, to_device, from_device},
                          stream, false);
    });
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t count)
{
    return call(CALL_NOT_IN_CAPTURE, [&] {
        return copy_queue({(char *)to, (const char *)from, count, count, count, 1, to_device, from_device},
                          nullptr, true);
    });
}

/* A `__constant__` variable is one of the program's own, shared by all devices. */
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset,
                               enum cudaMemcpyKind kind)
{
    return call(CALL_NOT_IN_CAPTURE, [&] {
        if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDefault)
            return cudaErrorInvalidMemcpyDirection;
        run_device(current_device());
        std::memcpy((char *)symbol + offset, from, count);
        return cudaSuccess;
    });
}

cudaError_t cudaMemset(void *pointer, int value, size_t count)
{
    return fill_rows((char *)pointer, count, value, count, 1, nullptr, true);
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t count, cudaStream_t stream)
{
    return fill_rows((char *)pointer, count, value, count, 1, stream, false);
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    return fill_rows((char *)pointer, pitch, value, width, height, stream, false);
}
}
