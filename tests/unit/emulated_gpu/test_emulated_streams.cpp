/* Streams, events, capture and graphs: what is ordered stays ordered, what is not shows under some seed. */
#include "fixture.h"

/* x = 10 x + digit: the digits tell the order. */
__global__ static void append(double *x, int digit)
{
    *x = 10 * *x + digit;
}

struct streams {
    cudaStream_t a, b;
    cudaEvent_t event, other;
    double *x;
    explicit streams(unsigned flags = cudaStreamNonBlocking)
    {
        assert_cuda(cudaStreamCreateWithFlags(&a, flags));
        assert_cuda(cudaStreamCreateWithFlags(&b, flags));
        assert_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        assert_cuda(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
        assert_cuda(cudaMalloc(&x, sizeof *x));
        assert_cuda(cudaMemset(x, 0, sizeof *x));
    }
    ~streams()
    {
        cudaFree(x);
        cudaEventDestroy(event);
        cudaEventDestroy(other);
        cudaStreamDestroy(a);
        cudaStreamDestroy(b);
    }
    double get()
    {
        double value = -1;
        assert_cuda(cudaDeviceSynchronize());
        assert_cuda(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost));
        return value;
    }
};

static void test_a_stream_keeps_its_order(void **)
{
    for (unsigned long long seed : seeds(10)) {
        use_seed(seed);
        streams with;
        for (int digit = 1; digit <= 9; digit++)
            CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, digit);
        assert_true(with.get() == 123456789);
    }
}

static double two_streams(bool with_event)
{
    streams with;
    CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 1);
    assert_cuda(cudaEventRecord(with.event, with.a));
    if (with_event)
        assert_cuda(cudaStreamWaitEvent(with.b, with.event, 0));
    CUDA_LAUNCH(append, 1, 1, 0, with.b, with.x, 2);
    return with.get();
}

static void test_events_order_streams_and_a_missing_one_shows(void **)
{
    int wrong = 0;
    for (unsigned long long seed : seeds(20)) {
        use_seed(seed);
        assert_true(two_streams(true) == 12);
        wrong += two_streams(false) != 12;
    }
    print_message("a missing event: wrong order under %d of 21 seeds\n", wrong);
    assert_true(wrong > 0 || getenv("RUNG_EMULATED_SEED"));
}

/* The legacy default stream comes after the work of blocking streams, and before what they get next. */
static void test_the_legacy_stream(void **)
{
    int free_order = 0;
    for (unsigned long long seed : seeds(20)) {
        use_seed(seed);
        for (unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking}) {
            streams with(flags);
            CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 1);
            CUDA_LAUNCH(append, 1, 1, 0, nullptr, with.x, 2);
            CUDA_LAUNCH(append, 1, 1, 0, with.b, with.x, 3);
            if (flags == cudaStreamDefault)
                assert_true(with.get() == 123);
            else
                free_order += with.get() != 123;
        }
    }
    assert_true(free_order > 0 || getenv("RUNG_EMULATED_SEED"));
}

static void test_pinned_memory_is_read_when_the_copy_runs(void **)
{
    float *pinned, ordinary = 1;
    device_floats x(1), y(1);
    cudaStream_t stream;
    assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    assert_cuda(cudaMallocHost(&pinned, sizeof(float)));
    *pinned = 1;
    assert_cuda(cudaMemcpyAsync(x.data, pinned, sizeof(float), cudaMemcpyHostToDevice, stream));
    assert_cuda(cudaMemcpyAsync(y.data, &ordinary, sizeof(float), cudaMemcpyHostToDevice, stream));
    *pinned = ordinary = 2; /* too early for the first */
    assert_cuda(cudaStreamSynchronize(stream));
    assert_true(x.get()[0] == 2);
    assert_true(y.get()[0] == 1);
    assert_cuda(cudaMemcpyAsync(pinned, y.data, sizeof(float), cudaMemcpyDeviceToHost, stream));
    assert_true(*pinned == 2); /* has not run yet */
    assert_cuda(cudaStreamSynchronize(stream));
    assert_true(*pinned == 1);
    assert_cuda(cudaFreeHost(pinned));
    assert_cuda(cudaStreamDestroy(stream));
}

static void test_queries_get_on(void **)
{
    streams with;
    for (int i = 0; i < 3; i++)
        CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 1);
    assert_cuda(cudaEventRecord(with.event, with.a));
    int asked = 0;
    while (cudaEventQuery(with.event) == cudaErrorNotReady)
        asked++;
    assert_true(asked > 0 && asked < 10);
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    assert_cuda(cudaStreamQuery(with.a));
    assert_true(with.get() == 111);
}

static void count_up(void *count)
{
    ++*(int *)count;
}

static void test_host_functions_and_long_queues(void **)
{
    streams with;
    int count = 0;
    for (int i = 0; i < 3000; i++)
        assert_cuda(cudaLaunchHostFunc(with.a, count_up, &count));
    assert_true(count > 0 && count < 3000); /* the queue does not grow for ever */
    assert_cuda(cudaStreamSynchronize(with.a));
    assert_int_equal(count, 3000);
}

/* Records: a: 1, then b: 2 (a branch), joined, then a: 3. */
static cudaGraphExec_t record(streams &with, bool join)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable = nullptr;
    assert_cuda(cudaStreamBeginCapture(with.a, cudaStreamCaptureModeThreadLocal));
    CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 1);
    assert_cuda(cudaEventRecord(with.event, with.a));
    assert_cuda(cudaStreamWaitEvent(with.b, with.event, 0));
    CUDA_LAUNCH(append, 1, 1, 0, with.b, with.x, 2);
    assert_cuda(cudaEventRecord(with.other, with.b));
    if (join)
        assert_cuda(cudaStreamWaitEvent(with.a, with.other, 0));
    CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 3);
    assert_cuda(cudaGetLastError());
    cudaError_t error = cudaStreamEndCapture(with.a, &graph);
    assert_int_equal(error, join ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (error != cudaSuccess)
        return nullptr;
    size_t nodes = 0;
    assert_cuda(cudaGraphGetNodes(graph, nullptr, &nodes));
    assert_int_equal(nodes, 3);
    assert_cuda(cudaGraphInstantiate(&executable, graph, 0));
    assert_cuda(cudaGraphDestroy(graph));
    return executable;
}

static void test_graphs_replay_what_was_recorded(void **)
{
    for (unsigned long long seed : seeds(10)) {
        use_seed(seed);
        streams with;
        cudaGraphExec_t executable = record(with, true);
        assert_true(with.get() == 0); /* recording ran nothing */
        assert_cuda(cudaGraphLaunch(executable, with.a));
        assert_cuda(cudaGraphLaunch(executable, with.b)); /* one executable never overlaps itself */
        assert_cuda(cudaStreamSynchronize(with.b));
        assert_true(with.get() == 123123);
        assert_cuda(cudaGraphExecDestroy(executable));
        record(with, false);
        assert_int_equal(cudaGetLastError(), cudaErrorStreamCaptureUnjoined);
    }
}

static void test_child_graphs(void **)
{
    streams with;
    cudaGraph_t step, all;
    cudaGraphNode_t before = nullptr, node;
    assert_cuda(cudaStreamBeginCapture(with.a, cudaStreamCaptureModeThreadLocal));
    CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 4);
    CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 5);
    assert_cuda(cudaStreamEndCapture(with.a, &step));
    assert_cuda(cudaGraphCreate(&all, 0));
    for (int i = 0; i < 3; i++) {
        assert_cuda(cudaGraphAddChildGraphNode(&node, all, &before, before ? 1 : 0, step));
        before = node;
    }
    cudaGraphExec_t executable;
    assert_cuda(cudaGraphInstantiate(&executable, all, 0));
    assert_cuda(cudaGraphDestroy(step));
    assert_cuda(cudaGraphDestroy(all));
    emulated_set_seed(3);
    assert_cuda(cudaGraphLaunch(executable, with.a));
    assert_true(with.get() == 454545);
    assert_cuda(cudaGraphExecDestroy(executable));
}

/* What must not be called while capturing, and what it is refused with. */
static void test_illegal_calls_spoil_the_capture(void **)
{
    static const struct {
        cudaError_t (*call)(streams &with);
        cudaError_t expected;
    } calls[] = {
        {[](streams &) { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported},
        {[](streams &with) { return cudaStreamSynchronize(with.a); }, cudaErrorStreamCaptureUnsupported},
        {[](streams &with) { return cudaStreamQuery(with.a); }, cudaErrorStreamCaptureUnsupported},
        {[](streams &) {
             void *pointer;
             return cudaMalloc(&pointer, 4);
         },
         cudaErrorStreamCaptureUnsupported},
        {[](streams &with) { return cudaFree(with.x); }, cudaErrorStreamCaptureUnsupported},
        {[](streams &with) { return cudaMemcpy(with.x, with.x, 8, cudaMemcpyDeviceToDevice); },
         cudaErrorStreamCaptureUnsupported},
        {[](streams &with) {
             CUDA_LAUNCH(append, 1, 1, 0, nullptr, with.x, 1); /* the legacy stream */
             return cudaGetLastError();
         },
         cudaErrorStreamCaptureImplicit},
    };
    for (const auto &each : calls) {
        streams with(cudaStreamDefault);
        cudaGraph_t graph;
        assert_cuda(cudaStreamBeginCapture(with.a, cudaStreamCaptureModeThreadLocal));
        CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 1);
        assert_int_equal(each.call(with), each.expected);
        enum cudaStreamCaptureStatus status;
        assert_cuda(cudaStreamIsCapturing(with.a, &status));
        assert_int_equal(status, cudaStreamCaptureStatusInvalidated);
        assert_int_equal(cudaStreamEndCapture(with.a, &graph), cudaErrorStreamCaptureInvalidated);
        assert_null(graph);
        CUDA_LAUNCH(append, 1, 1, 0, with.a, with.x, 7); /* the stream is as before */
        assert_true(with.get() == 7);
        cudaGetLastError();
    }
}

static void test_relaxed_captures_allow_allocation(void **)
{
    streams with;
    cudaGraph_t graph;
    void *pointer;
    assert_cuda(cudaStreamBeginCapture(with.a, cudaStreamCaptureModeRelaxed));
    assert_cuda(cudaMalloc(&pointer, 4));
    assert_cuda(cudaStreamEndCapture(with.a, &graph));
    assert_cuda(cudaGraphDestroy(graph));
    assert_cuda(cudaFree(pointer));
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_stream_keeps_its_order, start_fresh),
        cmocka_unit_test_setup(test_events_order_streams_and_a_missing_one_shows, start_fresh),
        cmocka_unit_test_setup(test_the_legacy_stream, start_fresh),
        cmocka_unit_test_setup(test_pinned_memory_is_read_when_the_copy_runs, start_fresh),
        cmocka_unit_test_setup(test_queries_get_on, start_fresh),
        cmocka_unit_test_setup(test_host_functions_and_long_queues, start_fresh),
        cmocka_unit_test_setup(test_graphs_replay_what_was_recorded, start_fresh),
        cmocka_unit_test_setup(test_child_graphs, start_fresh),
        cmocka_unit_test_setup(test_illegal_calls_spoil_the_capture, start_fresh),
        cmocka_unit_test_setup(test_relaxed_captures_allow_allocation, start_fresh),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
