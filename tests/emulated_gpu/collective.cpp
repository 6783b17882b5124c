/* Collectives: every rank passes its data through its slot, and combines all slots in the order of ranks, so
 * that the result is the same on every rank and in every run. */
#include <cstring>

#include "communicator.h"
#include "product.h"

namespace emulated
{
static size_t bytes_of(int type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
        return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
        return 8;
    default:
        return 0;
    }
}

struct transfer {
    communicator_ref communicator;
    collective call;
    const char *from;
    char *to;
    const char *name;
    /* How far it has come; begins anew each time it is replayed. */
    uint64_t done; /* bytes of each rank's part */
    bool begun, posted, stuck;
};

static char *slot_of(const ncclComm &of, int rank)
{
    return of.slots + (size_t)rank * CHUNK_BYTES;
}

template <class T> static T combine(T x, T y, int operation)
{
    switch (operation) {
    case ncclProd:
        return x * y;
    case ncclMax:
        return x < y ? y : x;
    case ncclMin:
        return y < x ? y : x;
    default:
        return x + y;
    }
}

/* Sums of 16-bit types are fp32 and rounded once. */
template <class T, class Get, class Set>
static void reduce(const ncclComm &of, int operation, size_t count, Get get, Set set)
{
    for (size_t i = 0; i < count; i++) {
        T result = get(slot_of(of, 0), i);
        for (int rank = 1; rank < of.ranks; rank++)
            result = combine(result, get(slot_of(of, rank), i), operation);
        set(i, operation == ncclAvg ? (T)(result / (T)of.ranks) : result);
    }
}

template <class T> static void reduce_plain(const ncclComm &of, int operation, size_t count, char *to)
{
    reduce<T>(
        of, operation, count, [](const char *slot, size_t i) { return ((const T *)slot)[i]; },
        [to](size_t i, T value) { ((T *)to)[i] = value; });
}

static void reduce_narrow(const ncclComm &of, int operation, size_t count, char *to, cudaDataType type)
{
    reduce<float>(
        of, operation, count,
        [type](const char *slot, size_t i) { return element_get(slot, type, (int64_t)i); },
        [type, to](size_t i, float value) { element_set(to, type, (int64_t)i, value); });
}

static void reduce_chunk(const transfer &of, size_t bytes)
{
    const ncclComm &all = *of.communicator;
    size_t count = bytes / bytes_of(of.call.type);
    char *to = of.to + of.done;
    int operation = of.call.operation;
    switch (of.call.type) {
    case ncclInt8:
        return reduce_plain<int8_t>(all, operation, count, to);
    case ncclUint8:
        return reduce_plain<uint8_t>(all, operation, count, to);
    case ncclInt32:
        return reduce_plain<int32_t>(all, operation, count, to);
    case ncclUint32:
        return reduce_plain<uint32_t>(all, operation, count, to);
    case ncclInt64:
        return reduce_plain<int64_t>(all, operation, count, to);
    case ncclUint64:
        return reduce_plain<uint64_t>(all, operation, count, to);
    case ncclFloat32:
        return reduce_plain<float>(all, operation, count, to);
    case ncclFloat64:
        return reduce_plain<double>(all, operation, count, to);
    default:
        return reduce_narrow(all, operation, count, to,
                             of.call.type == ncclFloat16 ? CUDA_R_16F : CUDA_R_16BF);
    }
}

static size_t part_bytes(const transfer &of)
{
    return of.call.count * bytes_of(of.call.type);
}

/* All slots hold the chunk: out of them comes this rank's result. */
static void take_chunk(const transfer &of, size_t bytes)
{
    const ncclComm &all = *of.communicator;
    if (of.call.kind == ALL_REDUCE)
        reduce_chunk(of, bytes);
    else if (of.call.kind == BROADCAST)
        std::memcpy(of.to + of.done, slot_of(all, of.call.root), bytes);
    else
        for (int rank = 0; rank < all.ranks; rank++)
            std::memcpy(of.to + (size_t)rank * part_bytes(of) + of.done, slot_of(all, rank), bytes);
}

static bool all_have(const ncclComm &of, std::atomic<uint64_t> rank_seat::*count, uint64_t least)
{
    for (int rank = 0; rank < of.ranks; rank++)
        if ((of.shared->seats[rank].*count).load(std::memory_order_acquire) < least)
            return false;
    return true;
}

static bool all_agree(const transfer &of)
{
    const ncclComm &all = *of.communicator;
    for (int rank = 0; rank < all.ranks; rank++)
        if (std::memcmp(&all.shared->seats[rank].call, &of.call, sizeof of.call) != 0) {
            report("%s: rank %d and rank %d call different collectives, or with different sizes", of.name,
                   all.rank, rank);
            return false;
        }
    return true;
}

static const fault *planted(const ncclComm &of, fault_kind kind)
{
    for (const fault &each : the_world().faults.all)
        if (each.kind == kind && (each.rank < 0 || each.rank == of.rank) &&
            (each.device < 0 || each.device == of.device) && (each.call < 0 || each.call == of.calls))
            return &each;
    return nullptr;
}

/* Before the first chunk. False: the device has failed. */
static bool begin(transfer *of)
{
    ncclComm &all = *of->communicator;
    cudaError_t error = launch_fault(all.device, of->name);
    bool sends = of->call.kind != BROADCAST || of->call.root == all.rank;
    size_t results = part_bytes(*of) * (of->call.kind == ALL_GATHER ? (size_t)all.ranks : 1);
    if (error == cudaSuccess && ((sends && !memory_on_device(of->from, part_bytes(*of), all.device)) ||
                                 !memory_on_device(of->to, results, all.device))) {
        report("%s: %zu bytes of memory on device %d are not there", of->name, results, all.device);
        error = cudaErrorIllegalAddress;
    }
    if (error != cudaSuccess) {
        device_fail(all.device, error);
        communicator_fail(all, ncclUnhandledCudaError);
        return false;
    }
    all.calls++;
    of->done = 0;
    of->begun = true;
    of->posted = false;
    of->stuck = planted(all, FAULT_RANK_HANGS) != nullptr;
    if (planted(all, FAULT_RANK_FAILS))
        communicator_fail(all, ncclSystemError);
    return true;
}

static void post_chunk(transfer *of, size_t bytes)
{
    ncclComm &all = *of->communicator;
    rank_seat &seat = all.shared->seats[all.rank];
    if (of->call.kind != BROADCAST || of->call.root == all.rank)
        std::memcpy(slot_of(all, all.rank), of->from + of->done, bytes);
    seat.call = of->call;
    seat.posted.store(all.chunks + 1, std::memory_order_release);
    of->posted = true;
}

/* As far as the other ranks let it come. After an error it hangs, as the device's kernel does, until the
 * communicator is aborted. */
static progress advance(transfer *of)
{
    ncclComm &all = *of->communicator;
    if (!of->begun && !all.aborted && !begin(of))
        return WORK_DONE;
    communicator_look(all);
    while (!all.aborted && of->done < part_bytes(*of)) {
        if (of->stuck || all.error != ncclSuccess)
            return WORK_WAITS;
        size_t left = part_bytes(*of) - of->done, bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
        if (!of->posted) {
            if (!all_have(all, &rank_seat::consumed, all.chunks))
                return WORK_WAITS; /* the slot is still being read */
            post_chunk(of, bytes);
        }
        if (!all_have(all, &rank_seat::posted, all.chunks + 1))
            return WORK_WAITS;
        if (!all_agree(*of)) {
            communicator_fail(all, ncclInvalidUsage);
            return WORK_WAITS;
        }
        take_chunk(*of, bytes);
        all.shared->seats[all.rank].consumed.store(++all.chunks, std::memory_order_release);
        of->done += bytes;
        of->posted = false;
    }
    of->begun = false;
    return WORK_DONE;
}

static ncclResult_t add(const char *name, const void *from, void *to, collective call, ncclComm_t handle,
                        cudaStream_t stream_handle)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    communicator_ref of = communicator_find(handle);
    if (!of || bytes_of(call.type) == 0 || call.root < 0 || call.root >= of->ranks)
        return ncclInvalidArgument;
    if (of->shared->joined < of->ranks || of->finalizing)
        return ncclInvalidUsage;
    if (of->error != ncclSuccess)
        return of->error;
    if (call.count == 0)
        return ncclSuccess;
    auto made = std::make_shared<transfer>(
        transfer{of, call, (const char *)from, (char *)to, name, 0, false, false, false});
    work run = [made] { return advance(made.get()); };
    stream_state *stream;
    if (call_begin(CALL_ANYWHERE) != cudaSuccess || stream_find(stream_handle, &stream) != cudaSuccess)
        return ncclUnhandledCudaError;
    if (stream->device != of->device)
        return ncclInvalidUsage;
    if (stream->captured_by)
        return stream_add(stream, cudaGraphNodeTypeKernel, run) == cudaSuccess ? ncclSuccess
                                                                               : ncclUnhandledCudaError;
    /* Collectives of one communicator run in the order of the calls, whatever the streams. */
    of->last = stream_queue(stream, run, {of->last});
    return ncclSuccess;
}

/* A collective that compares equal byte for byte with its like. */
static collective collective_of(collective_kind kind, ncclDataType_t type, int operation, int root,
                                size_t count)
{
    collective made;
    std::memset((void *)&made, 0, sizeof made);
    made.kind = kind;
    made.type = type;
    made.operation = operation;
    made.root = root;
    made.count = count;
    return made;
}
} // namespace emulated

using namespace emulated;

extern "C" {
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream)
{
    if ((unsigned)operation >= ncclNumOps)
        return ncclInvalidArgument;
    return add("nccl_all_reduce", from, to, collective_of(ALL_REDUCE, type, operation, 0, count),
               communicator, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream)
{
    return add("nccl_broadcast", from, to, collective_of(BROADCAST, type, 0, root, count), communicator,
               stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream)
{
    return add("nccl_all_gather", from, to, collective_of(ALL_GATHER, type, 0, 0, count), communicator,
               stream);
}
}
