#undef _FORTIFY_SOURCE /* its longjmp takes a change of stacks for a mistake */
#include "tests/emulated/threads.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated {

constexpr size_t STACK_BYTES = 256 << 10;
constexpr int RUBBISH = 0x5a;

struct copy {
    void *to;
    const void *from;
    unsigned bytes;
};

struct fiber {
    jmp_buf at;
    bool begun, ended;
    const unsigned *gate; /* it goes on when this is no longer seen */
    unsigned seen;
    std::vector<copy> copies;
};

struct warp {
    unsigned live, arrived, n_meetings;
    meeting meetings[2]; /* by turns */
};

static std::vector<fiber> fibers(MAX_THREADS);
static warp warps[MAX_THREADS / LANES];
static jmp_buf scheduler;
static unsigned running, n_live, n_at_barrier, n_true, n_barriers, barrier_result;
static const std::function<void()> *kernel;
alignas(128) static char shared[MAX_SHARED];
static size_t shared_size;
static std::vector<void *> begun_shared;

void fail(const char *what)
{
    fprintf(stderr, "emulated GPU: %s: block %u,%u thread %u\n", what, blockIdx.x, blockIdx.y, running);
    abort();
}

static unsigned random_below(unsigned n)
{
    static uint32_t x = 2463534242u; /* Marsaglia's xorshift */
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x % n;
}

/* ---- fibers ---- */

static void live();

/* A warp's turn: each of its lanes that can go on does so once, all of them in one direction. */
static struct {
    unsigned first, n, at;
    bool down;
} turn;

/* The next of the turn's fibers that can go on, or MAX_THREADS. */
static unsigned next_of_turn()
{
    while (turn.at < turn.n) {
        const unsigned j = turn.at++, i = turn.first + (turn.down ? turn.n - 1 - j : j);
        const fiber &f = fibers[i];
        if (!f.ended && !(f.gate && *f.gate == f.seen))
            return i;
    }
    return MAX_THREADS;
}

[[noreturn]] static void go_on(unsigned i)
{
    fiber &f = fibers[i];
    running = i;
    threadIdx = {i, 0, 0};
    if (f.begun)
        _longjmp(f.at, 1);
    f.begun = true;
    ucontext_t c;
    getcontext(&c);
    c.uc_stack.ss_sp = malloc(STACK_BYTES); /* for as long as the program runs */
    /* The ends of the lanes' stacks lie at different offsets, so that they do not compete for a few
     * lines of the cache. */
    c.uc_stack.ss_size = STACK_BYTES - i % LANES * 128;
    c.uc_link = NULL;
    if (!c.uc_stack.ss_sp)
        fail("no memory for stacks");
    makecontext(&c, live, 0);
    setcontext(&c);
    abort();
}

/* False: no lane can go on. */
static bool take_turn(unsigned first, unsigned n)
{
    turn = {first, n, 0, random_below(2) != 0};
    const unsigned i = next_of_turn();
    if (i == MAX_THREADS)
        return false;
    if (!_setjmp(scheduler))
        go_on(i);
    return true;
}

void let_others_run()
{
    if (_setjmp(fibers[running].at))
        return;
    const unsigned i = next_of_turn();
    if (i != MAX_THREADS)
        go_on(i);
    _longjmp(scheduler, 1);
}

static void wait_at(const unsigned *gate, unsigned seen)
{
    fibers[running].gate = gate;
    fibers[running].seen = seen;
    let_others_run();
    fibers[running].gate = NULL;
}

/* ---- meetings ---- */

static void end_meeting(warp &w)
{
    w.arrived = 0;
    ++w.n_meetings;
}

const meeting &meet(const char *collective, uint32_t mask, uint64_t value)
{
    warp &w = warps[running / LANES];
    const unsigned number = w.n_meetings;
    meeting &m = w.meetings[number % 2];
    if (mask != ~0u)
        fail("a collective of some lanes, which this does not do");
    if (w.arrived == 0)
        m = {collective, 0, {}};
    else if (m.collective != collective && strcmp(m.collective, collective) != 0)
        fail("lanes of a warp are at different collectives");
    m.of[running % LANES] = value;
    m.lanes |= 1u << running % LANES;
    if (++w.arrived == w.live)
        end_meeting(w);
    else
        wait_at(&w.n_meetings, number);
    return m;
}

static void end_barrier()
{
    barrier_result = n_true;
    n_at_barrier = n_true = 0;
    ++n_barriers;
}

unsigned meet_block(bool value)
{
    const unsigned number = n_barriers;
    n_true += value;
    if (++n_at_barrier == n_live)
        end_barrier();
    else
        wait_at(&n_barriers, number);
    return barrier_result;
}

/* ---- a block ---- */

/* A fiber's life: its thread of one block after another. */
static void live()
{
    for (;;) {
        fiber &f = fibers[running];
        warp &w = warps[running / LANES];
        (*kernel)();
        f.ended = true;
        --w.live;
        --n_live;
        if (w.arrived && w.arrived == w.live)
            end_meeting(w);
        if (n_at_barrier && n_at_barrier == n_live)
            end_barrier();
        let_others_run();
    }
}

static void run_block(unsigned n_threads)
{
    const unsigned n_warps = (n_threads + LANES - 1) / LANES;
    memset(shared, RUBBISH, shared_size);
    begun_shared.clear();
    n_live = n_threads;
    n_at_barrier = n_true = 0;
    for (unsigned i = 0; i < n_threads; ++i) {
        fibers[i].ended = false;
        fibers[i].gate = NULL;
        fibers[i].copies.clear();
    }
    for (unsigned w = 0; w < n_warps; ++w) {
        warps[w].arrived = 0;
        warps[w].live = std::min(LANES, n_threads - LANES * w);
    }
    while (n_live) {
        bool any = false;
        const unsigned begin = random_below(n_warps);
        for (unsigned j = 0; j < n_warps; ++j) {
            const unsigned w = (begin + j) % n_warps, first = w * LANES;
            for (unsigned turns = 1 + random_below(16); turns && take_turn(first, std::min(LANES, n_threads - first));
                 --turns)
                any = true;
        }
        if (!any)
            fail("all threads wait, and not for the same");
    }
}

void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body)
{
    kernel = &body;
    gridDim = grid;
    blockDim = block;
    shared_size = shared_bytes;
    for (unsigned z = 0; z < grid.z; ++z) {
        for (unsigned y = 0; y < grid.y; ++y) {
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = {x, y, z};
                run_block(block.x);
            }
        }
    }
}

/* ---- shared memory ---- */

void *dynamic_shared()
{
    return shared;
}

size_t shared_address(const void *p)
{
    return (size_t)((const char *)p - shared);
}

void begin_shared(void *variable, size_t bytes)
{
    for (void *v : begun_shared) {
        if (v == variable)
            return;
    }
    begun_shared.push_back(variable);
    memset(variable, RUBBISH, bytes);
}

void copy_async(uint32_t to, const void *from, unsigned bytes)
{
    if (to >= shared_size || bytes > shared_size - to)
        fail("a copy to where there is no shared memory");
    if (to % bytes || (uintptr_t)from % bytes)
        fail("a copy that is not aligned");
    memset(shared + to, RUBBISH, bytes);
    fibers[running].copies.push_back({shared + to, from, bytes});
}

void wait_copies()
{
    for (const copy &c : fibers[running].copies)
        memcpy(c.to, c.from, c.bytes);
    fibers[running].copies.clear();
}

} // namespace emulated
