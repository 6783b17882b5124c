/* A fiber takes one thread after the other until one of them has to wait; then it stays with that thread, and
 * another fiber goes on with the next. So a kernel without barriers runs on a single fiber, in a loop.
 *
 *                      +--- waits (barrier, warp) ---> at_barrier / at_warp
 *   not begun --> running                                    |
 *                      ^---------- ready <-- the last one arrives
 */
#include "block.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "block_memory.h"
#include "fault_signal.h"
#include "fiber.h"
#include "random.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated
{
constexpr unsigned MOST_THREADS = 1024, WARP = 32;

enum thread_state : unsigned char { NOT_BEGUN, RUNNING, READY, AT_BARRIER, AT_WARP, ENDED };

struct warp_slot { /* what a thread brought to a warp operation, and got */
    warp_operation operation;
    unsigned mask;
    int argument, width;
    unsigned long long value, result;
};

/* The block that runs. */
static struct {
    const std::function<void()> *thread;
    unsigned threads, begun, ended;
    unsigned short order[MOST_THREADS]; /* in which threads begin */
    unsigned short ready[MOST_THREADS]; /* a queue */
    unsigned ready_first, ready_count;
    thread_state state[MOST_THREADS];
    fiber *fiber_of[MOST_THREADS]; /* of a thread that waits */
    warp_slot slot[MOST_THREADS];
    unsigned arrived[MOST_THREADS / WARP]; /* lanes at a warp operation */
    unsigned at_barrier;
    int barrier_sum, barrier_result;
    unsigned running; /* the running thread */
    char *shared;
    bool shuffled;
    random dice;
    kernel_end end;
} block;

/* Never destroyed, so that the stacks stay reachable until the very end. */
static std::vector<fiber *> &fibers = *new std::vector<fiber *>(), &idle = *new std::vector<fiber *>();
static fiber *host;

static void fiber_loop();

static fiber *idle_fiber()
{
    if (idle.empty()) {
        fibers.push_back(fiber_create(fiber_loop, (unsigned)fibers.size()));
        return fibers.back();
    }
    fiber *taken = idle.back();
    idle.pop_back();
    return taken;
}

static uint3 index_of(unsigned thread)
{
    uint3 index;
    index.x = thread % blockDim.x;
    index.y = thread / blockDim.x % blockDim.y;
    index.z = thread / (blockDim.x * blockDim.y);
    return index;
}

static void make_ready(unsigned thread)
{
    block.state[thread] = READY;
    block.ready[(block.ready_first + block.ready_count++) % MOST_THREADS] = (unsigned short)thread;
}

/* Whether a ready thread goes on before another begins: threads that run far ahead of others are what a
 * missing barrier shows with. */
static bool prefers_ready()
{
    return block.ready_count > 0 &&
           (block.begun == block.threads || (block.shuffled && block.dice.next() & 1));
}

static fiber *take_ready()
{
    unsigned thread = block.ready[block.ready_first];
    block.ready_first = (block.ready_first + 1) % MOST_THREADS;
    block.ready_count--;
    return block.fiber_of[thread];
}

/* The running thread waits; comes back when it has been made ready. */
static void wait_as(thread_state state)
{
    unsigned thread = block.running;
    uint3 index = threadIdx;
    block.state[thread] = state;
    block.fiber_of[thread] = fiber_current();
    fiber *next = host; /* nothing can run: a deadlock */
    if (prefers_ready())
        next = take_ready();
    else if (block.begun < block.threads)
        next = idle_fiber();
    else if (block.ready_count > 0)
        next = take_ready();
    fiber_switch(next);
    block.running = thread;
    block.state[thread] = RUNNING;
    threadIdx = index;
}

static void fiber_loop()
{
    for (;;) {
        while (block.begun < block.threads && !prefers_ready()) {
            unsigned thread = block.order[block.begun++];
            block.running = thread;
            block.state[thread] = RUNNING;
            threadIdx = index_of(thread);
            (*block.thread)();
            block.state[thread] = ENDED;
            block.ended++;
        }
        idle.push_back(fiber_current());
        fiber_switch(block.ready_count > 0 ? take_ready() : host);
    }
}

static void shuffle_order(unsigned short *order, unsigned count)
{
    for (unsigned i = count - 1; i > 0; i--) {
        unsigned j = block.dice.below(i + 1);
        unsigned short other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
}

int block_barrier(int value)
{
    block.barrier_sum += value;
    if (++block.at_barrier < block.threads) {
        wait_as(AT_BARRIER);
        return block.barrier_result;
    }
    block.barrier_result = block.barrier_sum;
    block.barrier_sum = 0;
    block.at_barrier = 0;
    if (block.shuffled)
        shuffle_order(block.order, block.threads);
    for (unsigned i = 0; i < block.threads; i++)
        if (block.order[i] != block.running)
            make_ready(block.order[i]);
    return block.barrier_result;
}

/* Which lanes of the warp there are. */
static unsigned lanes_of(unsigned warp)
{
    unsigned left = block.threads - warp * WARP;
    return left >= WARP ? 0xffffffffu : (1u << left) - 1;
}

unsigned active_mask()
{
    unsigned warp = block.running / WARP, active = 0;
    for (unsigned lane = 0; lane < WARP && warp * WARP + lane < block.threads; lane++)
        if (block.state[warp * WARP + lane] != ENDED)
            active |= 1u << lane;
    return active;
}

/* The lane that `lane` reads from; its own where the segment ends. */
static int source_lane(int lane, const warp_slot &slot)
{
    int first = lane & ~(slot.width - 1), last = lane | (slot.width - 1), from = lane;
    switch (slot.operation) {
    case WARP_SHUFFLE:
        return first | (slot.argument & (slot.width - 1));
    case WARP_SHUFFLE_UP:
        from = lane - slot.argument;
        return from < first ? lane : from;
    case WARP_SHUFFLE_DOWN:
        from = lane + slot.argument;
        return from > last ? lane : from;
    case WARP_SHUFFLE_XOR:
        from = lane ^ slot.argument;
        return from > last ? lane : from;
    default:
        return lane;
    }
}

/* All of `lanes` have come. A lane that is not among them has nothing to give: poison. */
static void exchange(unsigned warp, unsigned lanes)
{
    warp_slot *slots = block.slot + warp * WARP;
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < WARP; lane++)
        if (lanes >> lane & 1 && slots[lane].value)
            ballot |= 1u << lane;
    for (unsigned lane = 0; lane < WARP; lane++) {
        if (!(lanes >> lane & 1))
            continue;
        warp_slot *slot = &slots[lane];
        int from = source_lane((int)lane, *slot);
        if (slot->operation == WARP_BALLOT)
            slot->result = ballot;
        else if (from >= 0 && from < (int)WARP && lanes >> from & 1)
            slot->result = slots[from].value;
        else
            slot->result = 0xfffdfffdfffdfffdull;
    }
    block.arrived[warp] &= ~lanes;
}

unsigned long long warp_exchange(warp_operation operation, unsigned mask, unsigned long long value,
                                 int argument, int width)
{
    unsigned thread = block.running, warp = thread / WARP, lane = thread % WARP;
    unsigned lanes = mask & lanes_of(warp);
    if (!(lanes >> lane & 1)) {
        block.end = KERNEL_MASK;
        fiber_switch(host);
    }
    block.slot[thread] = {operation, mask, argument, width, value, 0};
    block.arrived[warp] |= 1u << lane;
    bool complete = (block.arrived[warp] & lanes) == lanes;
    for (unsigned other = 0; complete && other < WARP; other++) {
        const warp_slot &slot = block.slot[warp * WARP + other];
        if (lanes >> other & 1)
            complete = slot.mask == mask && slot.operation == operation;
    }
    if (!complete) {
        wait_as(AT_WARP);
        return block.slot[thread].result;
    }
    exchange(warp, lanes);
    for (unsigned other = 0; other < WARP; other++)
        if (lanes >> other & 1 && other != lane)
            make_ready(warp * WARP + other);
    return block.slot[thread].result;
}

void *block_shared()
{
    return block.shared;
}

void kernel_trap()
{
    block.end = KERNEL_TRAP;
    fiber_switch(host);
    __builtin_unreachable();
}

void kernel_fault()
{
    block.end = KERNEL_FAULT;
    fiber_switch(host);
}

static std::string print(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

static std::string where_it_waits()
{
    unsigned barrier = 0, warp = 0, at_warp = 0;
    for (unsigned i = 0; i < block.threads; i++) {
        barrier += block.state[i] == AT_BARRIER;
        if (block.state[i] == AT_WARP && at_warp++ == 0)
            warp = i / WARP;
    }
    std::string text =
        print("block (%u, %u, %u): of %u threads", blockIdx.x, blockIdx.y, blockIdx.z, block.threads);
    if (barrier)
        text += print(", %u wait at __syncthreads", barrier);
    if (at_warp)
        text += print(", %u wait at a warp operation (first in warp %u)", at_warp, warp);
    return text + print(", %u have ended", block.ended);
}

/* Stacks that are in the middle of something are given up. */
static void fibers_recover()
{
    for (fiber *each : fibers)
        fiber_restart(each);
    idle = fibers;
}

static kernel_end block_run(const launch_shape &shape)
{
    block.begun = block.ended = 0;
    block.ready_first = block.ready_count = 0;
    block.at_barrier = 0;
    block.barrier_sum = 0;
    block.end = KERNEL_DONE;
    std::memset(block.arrived, 0, sizeof block.arrived);
    std::memset(block.state, NOT_BEGUN, block.threads);
    if (block.shuffled)
        shuffle_order(block.order, block.threads);
    shared_prepare(shape);
    fiber_switch(idle_fiber());
    if (block.end == KERNEL_DONE && block.ended < block.threads)
        block.end = KERNEL_DIVERGED;
    if (block.end == KERNEL_DONE && !shared_intact(shape))
        block.end = KERNEL_SHARED;
    return block.end;
}

/* i -> (offset + i * step) mod blocks with step coprime to it: an order without a table, for any grid. */
static uint64_t coprime_step(uint64_t blocks)
{
    for (;;) {
        uint64_t step = 1 + block.dice.next() % blocks, a = blocks, b = step;
        while (b) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return step;
    }
}

kernel_result kernel_run(const launch_shape &shape, const std::function<void()> &thread, uint64_t seed)
{
    host = fiber_of_thread();
    gridDim = shape.grid;
    blockDim = shape.block;
    block.thread = &thread;
    block.threads = shape.block.x * shape.block.y * shape.block.z;
    block.shared = shared_begin();
    block.shuffled = seed != 0;
    block.dice.state = seed;
    for (unsigned i = 0; i < block.threads; i++)
        block.order[i] = (unsigned short)i;
    uint64_t blocks = (uint64_t)gridDim.x * gridDim.y * gridDim.z;
    uint64_t step = 1, at = 0;
    if (block.shuffled) {
        step = coprime_step(blocks);
        at = block.dice.next() % blocks;
    }
    kernel_result result = {KERNEL_DONE, "", nullptr};
    fault_watch_begin();
    for (uint64_t i = 0; i < blocks && result.end == KERNEL_DONE; i++) {
        blockIdx.x = (unsigned)(at % gridDim.x);
        blockIdx.y = (unsigned)(at / gridDim.x % gridDim.y);
        blockIdx.z = (unsigned)(at / ((uint64_t)gridDim.x * gridDim.y));
        result.end = block_run(shape);
        at = (at + step) % blocks;
    }
    fault_watch_end();
    if (result.end != KERNEL_DONE) {
        uint3 index = index_of(block.running);
        result.where = result.end == KERNEL_DIVERGED
                           ? where_it_waits()
                           : print("block (%u, %u, %u), thread (%u, %u, %u)", blockIdx.x, blockIdx.y,
                                   blockIdx.z, index.x, index.y, index.z);
        result.address = fault_address();
        fibers_recover();
    }
    return result;
}
} // namespace emulated
