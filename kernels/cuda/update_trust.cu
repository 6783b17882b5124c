/* lamb and lars: each tensor of the decayed part moves by a rate of its own, from two of its norms. A first
 * kernel sums squares in parts of a tensor (and, of lamb, moves the moments), a second adds up the parts in
 * their order and moves the weights. What lies behind the decayed part is one more tensor, whose ratio is 1.
 */
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/update.cuh"

#define THREADS CUDA_REDUCE_THREADS
#define PART_ELEMENTS 4096
#define PARTS THREADS /* of a tensor, at most: a block adds them up in one go */

/* Tensors of one launch; they go with it by value, since the host's list may be gone when it runs. */
#define TENSORS 64
struct tensor_list {
    int64_t end[TENSORS + 1]; /* [0]: where the first one begins */
    int count;
    bool rest; /* the last one is what is not decayed */
};

__host__ __device__ static inline int64_t parts_of(int64_t elements)
{
    int64_t parts = (elements + PART_ELEMENTS - 1) / PART_ELEMENTS;

    return parts < PARTS ? parts : PARTS;
}

struct norms {
    double weight, step; /* squares: of w; of u (lamb) or g (lars) */
};

/* Of a lane's tensor: blocks (parts, tensors, lanes). */
struct tensor_place {
    int64_t begin, size, part, parts;
    bool trusted;
    norms *norm; // (parts)
};
__device__ static inline tensor_place place_of(const tensor_list &list, norms *all)
{
    const int tensor = blockIdx.y;
    const int64_t begin = list.end[tensor], size = list.end[tensor + 1] - begin;
    const int64_t first = ((int64_t)blockIdx.z * gridDim.y + tensor) * PARTS;

    return {begin, size, blockIdx.x, parts_of(size), !(list.rest && tensor == list.count - 1), all + first};
}

/* body(element of the lane's block, width) over this block's share of its tensor. */
template <typename F>
__device__ static inline void each_of_tensor(const tensor_place &place, bool aligned, F body)
{
    const cuda_span<CUDA_UPDATE_PACK> span =
        cuda_span_of<CUDA_UPDATE_PACK>(place.size, aligned && place.begin % CUDA_UPDATE_PACK == 0);

    cuda_each_of(span, place.part * THREADS + threadIdx.x, place.parts * THREADS,
                 [&](int64_t i, auto width) { body(place.begin + i, width); });
}

template <bool LAMB>
__global__ void trust_norms_kernel(cuda_update_tensors all, const struct lane_state *state, size_t stride,
                                   tensor_list list, norms *norm, int64_t first_lane)
{
    const int64_t lane = first_lane + blockIdx.z;
    const struct lane_state *own = cuda_lane(state, stride, lane);
    const tensor_place place = place_of(list, norm);
    const cuda_update_tensors t = cuda_update_of(all, stride, lane);
    norms sum = {0, 0};

    if (!own->finite || place.part >= place.parts)
        return; /* the whole block */
    const cuda_update_numbers a = cuda_update_read(own);
    const float decay = place.trusted ? a.decay : 0;
    each_of_tensor(place, t.aligned, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        const cuda_floats<n> w = cuda_load<n>(t.weight + i), g = cuda_load<n>(t.gradient + i);
        cuda_floats<n> m = {}, v = {};
        if (LAMB) {
            m = cuda_load<n>(t.moment[0] + i);
            v = cuda_load<n>(t.moment[1] + i);
        }
        for (int k = 0; k < n; k++) {
            float step = g.value[k] * a.factor;
            if (LAMB)
                step = cuda_adam_move(a, step, &m.value[k], &v.value[k]) + decay * w.value[k];
            sum.weight += (double)w.value[k] * (double)w.value[k];
            sum.step += (double)step * (double)step;
        }
        if (LAMB) {
            cuda_store_pack(t.moment[0] + i, m);
            cuda_store_pack(t.moment[1] + i, v);
        }
    });
    sum.weight = cuda_block_sum(sum.weight);
    sum.step = cuda_block_sum(sum.step);
    if (threadIdx.x == 0)
        place.norm[place.part] = sum;
}

/* All threads of the block must come. */
template <bool LAMB>
__device__ static inline float trust_ratio(const tensor_place &place, const cuda_update_numbers &a)
{
    const bool has = threadIdx.x < place.parts;
    const double weight = sqrt(cuda_block_sum(has ? place.norm[threadIdx.x].weight : 0));
    const double step = sqrt(cuda_block_sum(has ? place.norm[threadIdx.x].step : 0));

    if (!place.trusted || weight == 0 || (LAMB && step == 0))
        return 1;
    if (LAMB)
        return (float)(weight / step);
    return (float)(0.001 * weight / (step + (double)a.decay * weight + 1e-8));
}

template <typename T, bool LAMB>
__global__ void trust_update_kernel(cuda_update_tensors all, const struct lane_state *state, size_t stride,
                                    tensor_list list, norms *norm, int64_t first_lane)
{
    const int64_t lane = first_lane + blockIdx.z;
    const struct lane_state *own = cuda_lane(state, stride, lane);
    const tensor_place place = place_of(list, norm);
    const cuda_update_tensors t = cuda_update_of(all, stride, lane);

    if (!own->finite || place.part >= place.parts)
        return; /* the whole block */
    const cuda_update_numbers a = cuda_update_read(own);
    const float decay = place.trusted ? a.decay : 0;
    const float ratio = trust_ratio<LAMB>(place, a);
    each_of_tensor(place, t.aligned, [&](int64_t i, auto width) {
        const int n = decltype(width)::value;
        cuda_floats<n> w = cuda_load<n>(t.weight + i), m = {}, v = {}, g = {};
        if (t.moment[0])
            m = cuda_load<n>(t.moment[0] + i);
        if (LAMB)
            v = cuda_load<n>(t.moment[1] + i);
        else
            g = cuda_load<n>(t.gradient + i);
        for (int k = 0; k < n; k++) {
            float decayed = decay * w.value[k];
            float step = LAMB ? cuda_adam_direction(a, m.value[k], v.value[k]) + decayed
                              : g.value[k] * a.factor + decayed;
            step *= ratio;
            if (!LAMB && t.moment[0])
                step = cuda_sgd_move(a, step, &m.value[k]);
            w.value[k] -= a.rate * step;
        }
        cuda_store_pack(t.weight + i, w);
        if (!LAMB && t.moment[0])
            cuda_store_pack(t.moment[0] + i, m);
        if (t.stored)
            cuda_store_pack((T *)t.stored + i, w);
    });
}

template <bool LAMB>
static void launch(struct cuda_device *cuda, struct lanes lanes, cuda_update_tensors all,
                   const struct lane_state *state, const tensor_list &list)
{
    norms *norm = (norms *)cuda->workspace; // (lanes at once, tensors, PARTS)
    int64_t most = cuda_lanes_at_once(lanes, sizeof(norms) * PARTS * (size_t)list.count), parts = 1;

    for (int i = 0; i < list.count; i++) {
        int64_t own = parts_of(list.end[i + 1] - list.end[i]);
        parts = own > parts ? own : parts;
    }
    for (int64_t first = 0; first < lanes.count; first += most) {
        int64_t count = lanes.count - first < most ? lanes.count - first : most;
        dim3 grid((unsigned)parts, (unsigned)list.count, (unsigned)count);

        CUDA_LAUNCH(trust_norms_kernel<LAMB>, grid, THREADS, 0, cuda->stream, all, state, lanes.stride, list,
                    norm, first);
        cuda_note(cuda, cudaGetLastError(), "update");
        cuda_with_stored(lanes.precision, [&](auto stored) {
            typedef decltype(stored) T;
            CUDA_LAUNCH((trust_update_kernel<T, LAMB>), grid, THREADS, 0, cuda->stream, all, state,
                        lanes.stride, list, norm, first);
        });
        cuda_note(cuda, cudaGetLastError(), "update");
    }
}

/* Where the i-th tensor ends: those told, what is left of the decayed part, and the rest. */
static int64_t tensor_end(const struct device_parameters *parameters, int i)
{
    if (i < parameters->tensors)
        return parameters->tensor_end[i];
    return i == parameters->tensors ? parameters->decayed : parameters->count;
}

void cuda_update_trusted(struct cuda_device *cuda, struct lanes lanes, enum device_optimizer optimizer,
                         cuda_update_tensors all, const struct device_parameters *parameters,
                         const struct lane_state *state)
{
    int tensors = parameters->tensors + 2;

    for (int first = 0; first < tensors; first += TENSORS) {
        tensor_list list = {};

        list.count = tensors - first < TENSORS ? tensors - first : TENSORS;
        list.end[0] = first ? tensor_end(parameters, first - 1) : 0;
        for (int i = 0; i < list.count; i++)
            list.end[i + 1] = tensor_end(parameters, first + i);
        list.rest = first + list.count == tensors;
        if (optimizer == DEVICE_LAMB)
            launch<true>(cuda, lanes, all, state, list);
        else
            launch<false>(cuda, lanes, all, state, list);
    }
}
