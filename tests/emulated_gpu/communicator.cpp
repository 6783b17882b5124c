#include "communicator.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace emulated
{
/* While ranks are missing, and while other ranks' processes may have died. */
constexpr unsigned WAIT_MICROSECONDS = 200;

static std::map<ncclComm_t, communicator_ref> &communicators()
{
    static auto *only = new std::map<ncclComm_t, communicator_ref>();
    return *only;
}

struct group_state {
    int depth = 0;
    std::vector<communicator_ref> waits; /* blocking ones begun in the group */
    bool in_progress = false;
};
static group_state &group()
{
    static thread_local group_state state;
    return state;
}

communicator_ref communicator_find(ncclComm_t handle)
{
    auto found = communicators().find(handle);
    return found == communicators().end() ? nullptr : found->second;
}

void communicator_fail(ncclComm &of, ncclResult_t error)
{
    of.shared->failed = 1;
    if (of.error == ncclSuccess)
        of.error = error;
}

/* Whether a rank's process has ended, even if its parent has not asked yet. */
static bool has_died(ncclComm &of, int rank)
{
    int process = of.shared->seats[rank].process;
    if (process == 0 || process == getpid())
        return false;
    if (of.watches[rank] < 0) {
        of.watches[rank] = (int)syscall(SYS_pidfd_open, process, 0);
        if (of.watches[rank] < 0)
            return errno == ESRCH;
    }
    struct pollfd ended = {of.watches[rank], POLLIN, 0};
    return poll(&ended, 1, 0) > 0;
}

void communicator_look(ncclComm &of)
{
    if (of.error != ncclSuccess || of.aborted)
        return;
    if (of.shared->failed)
        of.error = ncclRemoteError;
    for (int i = 0; i < of.ranks; i++)
        if (has_died(of, i) && !of.shared->seats[i].left)
            communicator_fail(of, ncclRemoteError);
}

static bool everybody_joined(const ncclComm &of)
{
    return of.shared->joined >= of.ranks;
}

static bool segment_map(ncclComm &of)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t head = (sizeof(segment) + page - 1) / page * page;
    of.shared_bytes = head + (size_t)of.ranks * CHUNK_BYTES;
    int file = shm_open(of.name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    /* New memory is zero, which is how everything in it begins; whoever comes first makes it. */
    void *memory = MAP_FAILED;
    if (ftruncate(file, (off_t)of.shared_bytes) == 0)
        memory = mmap(nullptr, of.shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return false;
    of.shared = (segment *)memory;
    of.slots = (char *)memory + head;
    return true;
}

static ncclResult_t wait_for_everybody(const communicator_ref &of)
{
    while (!everybody_joined(*of)) {
        usleep(WAIT_MICROSECONDS);
        std::lock_guard<std::recursive_mutex> guard(the_world().lock);
        communicator_look(*of);
        if (of->error != ncclSuccess || of->aborted)
            return of->error == ncclSuccess ? ncclInternalError : of->error;
    }
    return ncclSuccess;
}

static ncclResult_t join(ncclComm_t *handle, int ranks, const ncclUniqueId &id, int rank, bool blocking)
{
    *handle = nullptr;
    if (ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks || id.internal[0] != '/')
        return ncclInvalidArgument;
    int device;
    if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        return ncclUnhandledCudaError;
    auto made = std::make_shared<ncclComm>();
    made->ranks = ranks;
    made->rank = rank;
    made->device = device;
    made->blocking = blocking;
    snprintf(made->name, sizeof made->name, "%s", id.internal);
    if (!segment_map(*made))
        return ncclSystemError;
    made->shared->seats[rank].process = getpid();
    if (++made->shared->joined == ranks)
        shm_unlink(made->name); /* nobody else comes */
    *handle = made.get();
    {
        std::lock_guard<std::recursive_mutex> guard(the_world().lock);
        communicators()[*handle] = made;
    }
    if (!blocking) {
        group().in_progress = group().depth > 0;
        return group().depth > 0 ? ncclSuccess : ncclInProgress;
    }
    if (group().depth > 0) {
        group().waits.push_back(made);
        return ncclSuccess;
    }
    return wait_for_everybody(made);
}

static ncclResult_t leave(ncclComm_t handle, bool abort)
{
    communicator_ref leaving;
    {
        std::lock_guard<std::recursive_mutex> guard(the_world().lock);
        leaving = communicator_find(handle);
        if (!leaving)
            return ncclInvalidArgument;
        if (abort) {
            leaving->aborted = true; /* lets queued work end */
            communicator_fail(*leaving, ncclInternalError);
        } else if (!device_broken(leaving->device)) {
            run_until(leaving->last);
            leaving->shared->seats[leaving->rank].left = 1;
        }
        if (!everybody_joined(*leaving))
            shm_unlink(leaving->name);
        communicators().erase(handle);
    }
    return ncclSuccess;
}
} // namespace emulated

ncclComm::ncclComm()
{
    for (int &watch : watches)
        watch = -1;
}

ncclComm::~ncclComm()
{
    if (shared)
        munmap(shared, shared_bytes);
    for (int watch : watches)
        if (watch >= 0)
            close(watch);
}

using namespace emulated;

extern "C" {
ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",         "unhandled CUDA error", "system error",          "internal error",
        "invalid argument", "invalid usage",        "error of another rank", "in progress"};
    return (unsigned)result < ncclNumResults ? texts[result] : "unknown result";
}

const char *ncclGetLastError(ncclComm_t)
{
    return the_world().report.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    unsigned long long bits[2];
    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return ncclSystemError;
    std::memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/emulated_nccl_%016llx%016llx", bits[0], bits[1]);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank)
{
    return join(communicator, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    return join(communicator, ranks, id, rank, !config || config->blocking != 0);
}

/* The state of a communicator: in progress while ranks are missing, or work is left to finalize. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    communicator_ref of = communicator_find(handle);
    if (!of)
        return ncclInvalidArgument;
    communicator_look(*of);
    *error = of->error;
    if (of->error == ncclSuccess && (of->in_progress || !everybody_joined(*of)))
        *error = ncclInProgress;
    of->in_progress = false;
    if (of->error == ncclSuccess && of->finalizing && of->last && !of->last->done) {
        run_one();
        *error = of->last->done ? ncclSuccess : ncclInProgress;
    }
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    communicator_ref of = communicator_find(handle);
    if (!of)
        return ncclInvalidArgument;
    of->finalizing = true;
    if (!of->blocking)
        return of->last && !of->last->done ? ncclInProgress : ncclSuccess;
    run_until(of->last);
    return of->error;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator)
{
    return leave(communicator, false);
}

ncclResult_t ncclCommAbort(ncclComm_t communicator)
{
    return leave(communicator, true);
}

ncclResult_t ncclCommCount(ncclComm_t communicator, int *count)
{
    *count = communicator->ranks;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t communicator, int *device)
{
    *device = communicator->device;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t communicator, int *rank)
{
    *rank = communicator->rank;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    group().depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (group().depth == 0)
        return ncclInvalidUsage;
    if (--group().depth > 0)
        return ncclSuccess;
    ncclResult_t result = group().in_progress ? ncclInProgress : ncclSuccess;
    group().in_progress = false;
    std::vector<communicator_ref> waits;
    waits.swap(group().waits);
    for (const communicator_ref &each : waits) {
        ncclResult_t waited = wait_for_everybody(each);
        result = waited == ncclSuccess ? result : waited;
    }
    return result;
}
}
