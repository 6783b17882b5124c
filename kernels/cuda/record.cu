/* Recordings: what is captured from the stream becomes a graph. A step of a small net is over before the host
 * has launched the next one, so short graphs are also kept several times in a row as one. */
#include "kernels/cuda/core.cuh"

#include <stdlib.h>

/* Repetitions in one graph: as many as keep it below NODES_MOST, since instantiation costs memory and time
 * per node; 16 at most, where a launch costs little beside what it starts. */
enum { REPETITIONS_MOST = 16, NODES_MOST = 1024 };

struct device_recording {
    cudaGraphExec_t once, several;
    int64_t repetitions; /* of `several`; 1: there is none */
};

extern "C" int cuda_record_begin(struct device *device, struct error *err)
{
    struct cuda_device *cuda = cuda_of(device);
    cudaError_t code;

    if (cuda->failure.code != ERROR_NONE) /* so that what fails from here on is the recording's */
        return cuda_synchronize(device, err);
    /* Thread-local: what other threads of the process do with CUDA is not this recording's business. */
    code = cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal);
    if (code != cudaSuccess)
        return cuda_error(err, cuda->number, code, "beginning to record");
    cuda->recording = true;
    return 0;
}

/* One graph that does `graph` several times, one after the other. */
static cudaError_t instantiate_several(cudaGraphExec_t *several, cudaGraph_t graph, int64_t repetitions)
{
    cudaGraph_t row = NULL;
    cudaGraphNode_t node = NULL, before;
    cudaError_t code = cudaGraphCreate(&row, 0);

    for (int64_t i = 0; i < repetitions && code == cudaSuccess; i++) {
        before = node;
        code = cudaGraphAddChildGraphNode(&node, row, i ? &before : NULL, i ? 1 : 0, graph);
    }
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(several, row, 0);
    if (row)
        (void)cudaGraphDestroy(row);
    return code;
}

static cudaError_t instantiate(struct device_recording *recording, cudaGraph_t graph)
{
    size_t nodes = 0;
    cudaError_t code = cudaGraphGetNodes(graph, NULL, &nodes);

    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&recording->once, graph, 0);
    recording->repetitions = nodes ? (int64_t)(NODES_MOST / nodes) : 1;
    if (recording->repetitions > REPETITIONS_MOST)
        recording->repetitions = REPETITIONS_MOST;
    if (recording->repetitions <= 1) {
        recording->repetitions = 1;
        return code;
    }
    return code == cudaSuccess ? instantiate_several(&recording->several, graph, recording->repetitions)
                               : code;
}

static void recording_release(struct device_recording *recording)
{
    if (recording->once)
        (void)cudaGraphExecDestroy(recording->once);
    if (recording->several)
        (void)cudaGraphExecDestroy(recording->several);
    free(recording);
}

extern "C" int cuda_record_end(struct device *device, struct device_recording **recording, struct error *err)
{
    struct cuda_device *cuda = cuda_of(device);
    struct device_recording *made = (struct device_recording *)calloc(1, sizeof *made);
    cudaGraph_t graph = NULL;
    cudaError_t code = cudaStreamEndCapture(cuda->stream, &graph);

    cuda->recording = false;
    if (code == cudaSuccess && made && cuda->failure.code == ERROR_NONE)
        code = instantiate(made, graph);
    if (graph)
        (void)cudaGraphDestroy(graph);
    if (code == cudaSuccess && made && cuda->failure.code == ERROR_NONE) {
        *recording = made;
        return 0;
    }
    if (made)
        recording_release(made);
    if (cuda->failure.code != ERROR_NONE) { /* of an operation that could not be recorded: it did nothing */
        error_set(err, cuda->failure.code, "%s", cuda->failure.message);
        (void)cudaGetLastError();
        if (!cuda->unusable)
            cuda->failure.code = ERROR_NONE;
        return error_prefix(err, "recording");
    }
    if (code == cudaSuccess)
        return error_set(err, ERROR_MEMORY, "no memory for a recording");
    cuda->unusable |= cuda_is_lost(code);
    return cuda_error(err, cuda->number, code, "recording");
}

extern "C" void cuda_replay(struct device *device, const struct device_recording *recording, int64_t times)
{
    struct cuda_device *cuda = cuda_of(device);
    cudaError_t code = cudaSuccess;

    while (times > 0 && code == cudaSuccess) {
        bool several = recording->repetitions > 1 && times >= recording->repetitions;
        code = cudaGraphLaunch(several ? recording->several : recording->once, cuda->stream);
        times -= several ? recording->repetitions : 1;
    }
    cuda_note(cuda, code, "replaying a recording");
}

extern "C" void cuda_forget(struct device *device, struct device_recording *recording)
{
    struct cuda_device *cuda = cuda_of(device);

    if (!recording)
        return;
    cuda_note(cuda, cudaStreamSynchronize(cuda->stream), "its work"); /* it may still be running */
    recording_release(recording);
}
