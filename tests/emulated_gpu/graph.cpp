/* Graphs and their launches. A launch queues each node as an operation of its own, after those it depends on:
 * the order among the others is the seed's. */
#include "graph.h"

struct CUgraphNode_st {
    CUgraph_st *graph;
    std::vector<int> parts; /* its nodes: several for a child graph */
    cudaGraphNodeType type;
    std::vector<int> ends; /* those of the parts that others come after */
};

struct CUgraph_st {
    int device;
    std::vector<emulated::node> nodes;
    std::vector<std::unique_ptr<CUgraphNode_st>> handles;
};

struct CUgraphExec_st {
    int device;
    std::vector<emulated::node> nodes;
    std::vector<bool> is_end; /* no other node comes after it */
    emulated::operation_ref last;
};

namespace emulated
{
cudaGraph_t graph_create(int device, std::vector<node> nodes)
{
    auto *made = new CUgraph_st();
    made->device = device;
    made->nodes = std::move(nodes);
    for (size_t i = 0; i < made->nodes.size(); i++)
        made->handles.push_back(std::unique_ptr<CUgraphNode_st>(
            new CUgraphNode_st{made, {(int)i}, made->nodes[i].type, {(int)i}}));
    return made;
}

static std::vector<bool> ends_of(const std::vector<node> &nodes)
{
    std::vector<bool> is_end(nodes.size(), true);
    for (const node &each : nodes)
        for (int before : each.after)
            is_end[(size_t)before] = false;
    return is_end;
}

static cudaError_t graph_launch(cudaGraphExec_t executable, cudaStream_t handle)
{
    stream_state *stream;
    cudaError_t error = stream_find(handle, &stream);
    if (error != cudaSuccess)
        return error;
    if (stream->captured_by) { /* as part of the graph that is being recorded */
        int offset = (int)stream->captured_by->nodes.size();
        std::vector<int> tail;
        for (size_t i = 0; i < executable->nodes.size(); i++) {
            node copy = executable->nodes[i];
            for (int &before : copy.after)
                before += offset;
            if (copy.after.empty())
                copy.after = stream->tail;
            if (executable->is_end[i])
                tail.push_back(offset + (int)i);
            stream->captured_by->nodes.push_back(std::move(copy));
        }
        if (!tail.empty())
            stream->tail = tail;
        return cudaSuccess;
    }
    /* Launches of one executable never overlap. */
    std::vector<operation_ref> before = stream_before(stream), ends = {executable->last}, queued;
    before.push_back(executable->last);
    for (size_t i = 0; i < executable->nodes.size(); i++) {
        const node &each = executable->nodes[i];
        std::vector<operation_ref> after;
        for (int other : each.after)
            after.push_back(queued[(size_t)other]);
        queued.push_back(
            operation_queue(stream->device, each.stream, each.run, each.after.empty() ? before : after));
        if (executable->is_end[i])
            ends.push_back(queued.back());
    }
    executable->last = stream_queue(
        stream, [] { return WORK_DONE; }, ends);
    return cudaSuccess;
}

static cudaError_t add_child(cudaGraphNode_t *handle, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                             size_t count, cudaGraph_t child)
{
    std::vector<int> before;
    for (size_t i = 0; i < count; i++) {
        if (dependencies[i]->graph != graph)
            return cudaErrorInvalidValue;
        before.insert(before.end(), dependencies[i]->ends.begin(), dependencies[i]->ends.end());
    }
    auto made = std::make_unique<CUgraphNode_st>();
    made->graph = graph;
    made->type = cudaGraphNodeTypeGraph;
    int offset = (int)graph->nodes.size();
    std::vector<bool> is_end = ends_of(child->nodes);
    for (size_t i = 0; i < child->nodes.size(); i++) {
        node copy = child->nodes[i];
        for (int &other : copy.after)
            other += offset;
        if (copy.after.empty())
            copy.after = before;
        made->parts.push_back(offset + (int)i);
        if (is_end[i])
            made->ends.push_back(offset + (int)i);
        graph->nodes.push_back(std::move(copy));
    }
    if (child->nodes.empty())
        made->ends = before;
    *handle = made.get();
    graph->handles.push_back(std::move(made));
    return cudaSuccess;
}
} // namespace emulated

using namespace emulated;

extern "C" {
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int)
{
    return call(CALL_ANYWHERE, [&] {
        *graph = graph_create(current_device(), {});
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *dependencies, size_t count, cudaGraph_t child)
{
    return call(CALL_ANYWHERE, [&] { return add_child(node, graph, dependencies, count, child); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return call(CALL_ANYWHERE, [&] {
        size_t room = nodes ? *count : 0;
        for (size_t i = 0; i < room; i++)
            nodes[i] = i < graph->handles.size() ? graph->handles[i].get() : nullptr;
        if (!nodes || *count > graph->handles.size())
            *count = graph->handles.size();
        return cudaSuccess;
    });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    return call(CALL_ANYWHERE, [&] {
        *type = node->type;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long)
{
    return call(CALL_ANYWHERE, [&] {
        auto *made = new CUgraphExec_st();
        made->device = graph->device;
        made->nodes = graph->nodes;
        made->is_end = ends_of(graph->nodes);
        *executable = made;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return call(CALL_ANYWHERE, [&] { return cudaSuccess; });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    return call(CALL_ANYWHERE, [&] { return graph_launch(executable, stream); });
}

/* What it has queued holds copies of the work. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    std::lock_guard<std::recursive_mutex> guard(the_world().lock);
    delete executable;
    return cudaSuccess;
}
}
