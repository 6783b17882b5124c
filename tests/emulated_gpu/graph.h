/* Recorded graphs. */
#ifndef EMULATED_GPU_GRAPH_H
#define EMULATED_GPU_GRAPH_H

#include "world.h"

namespace emulated
{
cudaGraph_t graph_create(int device, std::vector<node> nodes);
} // namespace emulated

#endif
