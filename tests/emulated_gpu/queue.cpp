/* Queued work of all streams: a graph of operations. Nothing runs at the call that queues it, but when
 * something is waited for (or the queue is long), in any order that the dependencies allow. So work that
 * lacks a dependency runs too early under some seed. */
#include "world.h"

#include <algorithm>

#include <unistd.h>

namespace emulated
{
/* More than this is run down to half, as the device would have begun with it. */
constexpr size_t LONG_QUEUE = 1024;
/* A wait for another process is asked again after this. */
constexpr unsigned WAIT_MICROSECONDS = 50;

operation_ref operation_queue(int device, int stream, work run, const std::vector<operation_ref> &after)
{
    world &all = the_world();
    auto made = std::make_shared<operation>();
    made->sequence = all.sequence++;
    made->device = device;
    made->stream = stream;
    made->run = std::move(run);
    for (const operation_ref &before : after)
        if (before && !before->done) {
            before->followers.push_back(made);
            made->waits_for++;
        }
    all.pending++;
    if (made->waits_for == 0)
        all.ready.push_back(made);
    return made;
}

std::vector<operation_ref> stream_before(stream_state *stream)
{
    device_state &device = *the_world().devices[(size_t)stream->device];
    std::vector<operation_ref> before = {stream->last};
    if (stream == &device.legacy) { /* after all that was queued in streams that block */
        before.push_back(device.per_thread.last);
        for (const auto &other : device.streams)
            if (other->blocking)
                before.push_back(other->last);
    } else if (stream->blocking) {
        before.push_back(device.legacy.last);
    }
    return before;
}

operation_ref stream_queue(stream_state *stream, work run, const std::vector<operation_ref> &more)
{
    std::vector<operation_ref> before = stream_before(stream);
    before.insert(before.end(), more.begin(), more.end());
    stream->last = operation_queue(stream->device, stream->number, std::move(run), before);
    while (the_world().pending > LONG_QUEUE)
        if (!run_one())
            break;
    return stream->last;
}

cudaError_t stream_add(stream_state *stream, cudaGraphNodeType type, work run)
{
    if (!stream->captured_by) {
        stream_queue(stream, std::move(run));
        return cudaSuccess;
    }
    capture &into = *stream->captured_by;
    if (into.invalid)
        return cudaErrorStreamCaptureInvalidated;
    into.nodes.push_back({type, stream->number, std::move(run), stream->tail});
    stream->tail = {(int)into.nodes.size() - 1};
    return cudaSuccess;
}

/* Which of the ready operations is next: the oldest, or with a seed any, with a liking for the stream that
 * ran last, so that one stream may get far ahead of another. */
static size_t choose()
{
    world &all = the_world();
    size_t count = all.ready.size(), chosen = 0;
    if (all.set.seed == 0) {
        for (size_t i = 1; i < count; i++)
            if (all.ready[i]->sequence < all.ready[chosen]->sequence)
                chosen = i;
        return chosen;
    }
    chosen = all.dice.below((uint32_t)count);
    if (all.dice.below(4) != 0)
        for (size_t i = 0; i < count; i++)
            if (all.ready[i]->stream == all.last_stream)
                chosen = i;
    return chosen;
}

static void finish(const operation_ref &ended)
{
    world &all = the_world();
    ended->done = true;
    ended->run = nullptr;
    all.pending--;
    for (const operation_ref &follower : ended->followers)
        if (--follower->waits_for == 0)
            all.ready.push_back(follower);
    ended->followers.clear();
}

bool run_one()
{
    world &all = the_world();
    std::vector<operation_ref> waiting;
    bool ran = false;
    while (!ran && !all.ready.empty()) {
        size_t chosen = choose();
        operation_ref next = all.ready[chosen];
        all.ready[chosen] = all.ready.back();
        all.ready.pop_back();
        all.executing = true;
        /* A broken device runs nothing more. */
        progress made = next->run && !device_broken(next->device) ? next->run() : WORK_DONE;
        all.executing = false;
        if (made == WORK_WAITS) {
            waiting.push_back(next);
            continue;
        }
        all.last_stream = next->stream;
        finish(next);
        ran = true;
    }
    all.ready.insert(all.ready.end(), waiting.begin(), waiting.end());
    return ran;
}

void run_until(const operation_ref &awaited)
{
    while (awaited && !awaited->done)
        if (!run_one()) {
            if (the_world().ready.empty())
                return; /* dropped by a reset */
            the_world().lock.unlock();
            usleep(WAIT_MICROSECONDS);
            the_world().lock.lock();
        }
}

void run_device(int device)
{
    device_state &state = *the_world().devices[(size_t)device];
    std::vector<operation_ref> ends = {state.legacy.last, state.per_thread.last};
    for (const auto &stream : state.streams)
        ends.push_back(stream->last);
    for (const operation_ref &end : ends)
        run_until(end);
}

cudaError_t stream_find(cudaStream_t handle, stream_state **stream)
{
    device_state &device = *the_world().devices[(size_t)current_device()];
    if (handle == nullptr || handle == cudaStreamLegacy) {
        /* Would have to wait for streams that are being recorded. */
        for (const auto &each : the_world().captures)
            if (each->origin->blocking && each->origin->device == device.legacy.device && !each->invalid) {
                captures_invalidate();
                return cudaErrorStreamCaptureImplicit;
            }
        *stream = &device.legacy;
        return cudaSuccess;
    }
    if (handle == cudaStreamPerThread) {
        *stream = &device.per_thread;
        return cudaSuccess;
    }
    for (const auto &own : the_world().devices)
        for (const auto &each : own->streams)
            if ((void *)each.get() == (void *)handle) {
                *stream = each.get();
                return cudaSuccess;
            }
    return cudaErrorInvalidResourceHandle;
}
} // namespace emulated
