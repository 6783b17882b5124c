/* Collectives between processes and within one, and what happens when a rank is missing. */
#include "fixture.h"

#include <csignal>

#include <cuda_bf16.h>
#include <nccl.h>

static ncclUniqueId id;

/* What a rank finds wrong ends its process; the parent sees it. */
static void expect(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "in a rank: %s\n", what);
    _exit(1);
}
#define EXPECT(condition) expect(condition, #condition)

/* Runs `body(rank)` in a process for each rank; all must end well, but the rank that is to be killed. */
static void in_ranks(int ranks, const std::function<void(int)> &body, int killed = -1)
{
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    std::vector<pid_t> children;
    fflush(nullptr);
    for (int rank = 0; rank < ranks; rank++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            emulated_reset();
            EXPECT(cudaSetDevice(rank) == cudaSuccess);
            body(rank);
            _exit(0);
        }
        children.push_back(child);
    }
    int failed = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int status;
        assert_int_equal(waitpid(children[(size_t)rank], &status, 0), children[(size_t)rank]);
        failed += rank == killed ? !WIFSIGNALED(status) : status != 0;
    }
    assert_int_equal(failed, 0);
}

static void test_sums_between_processes(void **)
{
    const int ranks = 3;
    const size_t count = 200000; /* several chunks, the last one short */
    in_ranks(ranks, [&](int rank) {
        std::vector<float> host(count), expected(count);
        for (size_t i = 0; i < count; i++) {
            host[i] = (float)(i % 1000) + 0.1f * (float)rank;
            expected[i] =
                ((float)(i % 1000) + ((float)(i % 1000) + 0.1f)) + ((float)(i % 1000) + 0.1f * 2.0f);
        }
        float *x;
        cudaStream_t stream;
        ncclComm_t communicator;
        EXPECT(cudaMalloc(&x, count * sizeof(float)) == cudaSuccess);
        EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
        EXPECT(ncclCommInitRank(&communicator, ranks, id, rank) == ncclSuccess);
        for (ncclRedOp_t operation : {ncclSum, ncclAvg}) {
            EXPECT(cudaMemcpy(x, host.data(), count * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess);
            EXPECT(ncclAllReduce(x, x, count, ncclFloat32, operation, communicator, stream) == ncclSuccess);
            EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
            std::vector<float> got(count);
            EXPECT(cudaMemcpy(got.data(), x, count * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
            for (size_t i = 0; i < count; i++)
                EXPECT(got[i] == (operation == ncclSum ? expected[i] : expected[i] / 3));
        }
        EXPECT(ncclCommFinalize(communicator) == ncclSuccess);
        EXPECT(ncclCommDestroy(communicator) == ncclSuccess);
    });
}

static void test_broadcast_gather_and_narrow_sums(void **)
{
    in_ranks(2, [](int rank) {
        ncclComm_t communicator;
        char *x, *all;
        __nv_bfloat16 *y, host[2] = {__nv_bfloat16(rank ? 0.00390625f : 1.0f), __nv_bfloat16(3)};
        char text[4] = {(char)('a' + rank), (char)('b' + rank), 0, 0}, got[4];
        EXPECT(cudaMalloc(&x, 2) == cudaSuccess);
        EXPECT(cudaMalloc(&all, 4) == cudaSuccess);
        EXPECT(cudaMalloc(&y, sizeof host) == cudaSuccess);
        EXPECT(cudaMemcpy(x, text, 2, cudaMemcpyHostToDevice) == cudaSuccess);
        EXPECT(cudaMemcpy(y, host, sizeof host, cudaMemcpyHostToDevice) == cudaSuccess);
        EXPECT(ncclCommInitRank(&communicator, 2, id, rank) == ncclSuccess);
        EXPECT(ncclAllGather(x, all, 2, ncclInt8, communicator, nullptr) == ncclSuccess);
        EXPECT(ncclBroadcast(x, x, 2, ncclInt8, 1, communicator, nullptr) == ncclSuccess);
        EXPECT(ncclAllReduce(y, y, 2, ncclBfloat16, ncclSum, communicator, nullptr) == ncclSuccess);
        EXPECT(cudaMemcpy(got, all, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
        EXPECT(memcmp(got, "abbc", 4) == 0);
        EXPECT(cudaMemcpy(got, x, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
        EXPECT(memcmp(got, "bc", 2) == 0);
        EXPECT(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
        EXPECT((float)host[0] == 1.0f && (float)host[1] == 6.0f); /* 1 + 2^-8: a tie, to even */
        EXPECT(ncclCommDestroy(communicator) == ncclSuccess);
    });
}

static void test_two_devices_of_one_process(void **)
{
    for (unsigned long long seed : seeds(5)) {
        use_seed(seed);
        ncclComm_t communicators[2];
        float *x[2], got;
        assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
        assert_int_equal(ncclGroupStart(), ncclSuccess);
        for (int i = 0; i < 2; i++) {
            assert_cuda(cudaSetDevice(i));
            assert_int_equal(ncclCommInitRank(&communicators[i], 2, id, i), ncclSuccess);
        }
        assert_int_equal(ncclGroupEnd(), ncclSuccess);
        assert_int_equal(ncclGroupStart(), ncclSuccess);
        for (int i = 0; i < 2; i++) {
            float value = (float)(i + 1);
            assert_cuda(cudaSetDevice(i));
            assert_cuda(cudaMalloc(&x[i], sizeof(float)));
            assert_cuda(cudaMemcpy(x[i], &value, sizeof value, cudaMemcpyHostToDevice));
            assert_int_equal(ncclAllReduce(x[i], x[i], 1, ncclFloat32, ncclSum, communicators[i], nullptr),
                             ncclSuccess);
        }
        assert_int_equal(ncclGroupEnd(), ncclSuccess);
        for (int i = 0; i < 2; i++) {
            assert_cuda(cudaSetDevice(i));
            assert_cuda(cudaMemcpy(&got, x[i], sizeof got, cudaMemcpyDeviceToHost));
            assert_true(got == 3);
            assert_cuda(cudaFree(x[i]));
            assert_int_equal(ncclCommDestroy(communicators[i]), ncclSuccess);
        }
        assert_cuda(cudaSetDevice(0));
    }
}

/* A communicator of two that does not block, and one float. */
struct pair_member {
    ncclComm_t communicator;
    cudaStream_t stream;
    float *x;
    explicit pair_member(int rank)
    {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
        EXPECT(cudaMalloc(&x, sizeof *x) == cudaSuccess && cudaMemset(x, 0, sizeof *x) == cudaSuccess);
        EXPECT(ncclCommInitRankConfig(&communicator, 2, id, rank, &config) == ncclInProgress);
        while (error() == ncclInProgress)
            usleep(100);
    }
    ncclResult_t error()
    {
        ncclResult_t found;
        EXPECT(ncclCommGetAsyncError(communicator, &found) == ncclSuccess);
        return found;
    }
    ncclResult_t sum(size_t count = 1)
    {
        return ncclAllReduce(x, x, count, ncclFloat32, ncclSum, communicator, stream);
    }
    /* As a program must wait: until done, failed, or too late. */
    ncclResult_t wait(int milliseconds)
    {
        for (int i = 0; i < milliseconds * 10; i++) {
            cudaError_t state = cudaStreamQuery(stream);
            if (state == cudaSuccess)
                return ncclSuccess;
            EXPECT(state == cudaErrorNotReady);
            if (error() != ncclSuccess)
                return error();
            usleep(100);
        }
        return ncclInProgress;
    }
    void abort()
    {
        EXPECT(ncclCommAbort(communicator) == ncclSuccess);
        EXPECT(cudaStreamSynchronize(stream) == cudaSuccess); /* what hung has ended */
    }
};

static void test_a_rank_that_hangs_is_given_up(void **)
{
    in_ranks(2, [](int rank) {
        EXPECT(emulated_set_faults("rank_hangs:rank=1:call=2") == 0);
        pair_member member(rank);
        EXPECT(member.sum() == ncclSuccess);
        EXPECT(member.wait(5000) == ncclSuccess);
        ncclResult_t ended = member.sum();
        if (ended == ncclSuccess)
            ended = member.wait(200);
        EXPECT(ended == ncclInProgress || ended == ncclRemoteError); /* the other may have given up first */
        member.abort();
    });
}

static void test_a_rank_that_fails_is_told_to_the_others(void **)
{
    in_ranks(2, [](int rank) {
        EXPECT(emulated_set_faults("rank_fails:rank=1:call=1") == 0);
        pair_member member(rank);
        ncclResult_t ended = member.sum();
        if (ended == ncclSuccess)
            ended = member.wait(5000);
        EXPECT(ended == (rank == 1 ? ncclSystemError : ncclRemoteError));
        EXPECT(ncclAllReduce(member.x, member.x, 1, ncclFloat32, ncclSum, member.communicator,
                             member.stream) != ncclSuccess);
        member.abort();
    });
}

static void test_a_rank_that_dies_is_noticed(void **)
{
    in_ranks(
        2,
        [](int rank) {
            pair_member member(rank);
            if (rank == 1)
                raise(SIGKILL);
            ncclResult_t ended = member.sum();
            if (ended == ncclSuccess)
                ended = member.wait(5000);
            EXPECT(ended == ncclRemoteError);
            member.abort();
        },
        1);
}

static void test_different_calls_are_reported(void **)
{
    in_ranks(2, [](int rank) {
        pair_member member(rank);
        EXPECT(cudaMalloc(&member.x, 2 * sizeof(float)) == cudaSuccess);
        EXPECT(member.sum(1 + (size_t)rank) == ncclSuccess);
        ncclResult_t ended = member.wait(5000);
        EXPECT(ended == ncclInvalidUsage || ended == ncclRemoteError);
        member.abort();
    });
}

static void test_what_is_refused(void **)
{
    ncclComm_t communicator;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    assert_int_equal(ncclCommInitRank(&communicator, 2, id, 2), ncclInvalidArgument);
    assert_int_equal(ncclCommInitRank(&communicator, 1, id, 0), ncclSuccess); /* alone */
    float *x;
    assert_cuda(cudaMalloc(&x, 4));
    assert_int_equal(ncclAllReduce(x, x, 1, (ncclDataType_t)77, ncclSum, communicator, nullptr),
                     ncclInvalidArgument);
    assert_int_equal(ncclBroadcast(x, x, 1, ncclFloat32, 1, communicator, nullptr), ncclInvalidArgument);
    assert_int_equal(ncclAllReduce(x, x, 2, ncclFloat32, ncclSum, communicator, nullptr), ncclSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress); /* more than is there */
    assert_int_equal(ncclCommAbort(communicator), ncclSuccess);
    assert_int_equal(ncclCommAbort(communicator), ncclInvalidArgument);
    emulated_reset();
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sums_between_processes, start_fresh),
        cmocka_unit_test_setup(test_broadcast_gather_and_narrow_sums, start_fresh),
        cmocka_unit_test_setup(test_two_devices_of_one_process, start_fresh),
        cmocka_unit_test_setup(test_a_rank_that_hangs_is_given_up, start_fresh),
        cmocka_unit_test_setup(test_a_rank_that_fails_is_told_to_the_others, start_fresh),
        cmocka_unit_test_setup(test_a_rank_that_dies_is_noticed, start_fresh),
        cmocka_unit_test_setup(test_different_calls_are_reported, start_fresh),
        cmocka_unit_test_setup(test_what_is_refused, start_fresh),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
