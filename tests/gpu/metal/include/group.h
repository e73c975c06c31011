// Runs the groups of a grid. A thread of a group with barriers is a fiber: it has a stack of its own, and at a barrier
// the next one goes on.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <memory>
#include <ucontext.h>

#include <metal_stdlib>

// A buffer, as the reference that a function expects.
struct Argument {
    void* at;
    template <class T> operator T&() const { return *static_cast<T*>(at); }
};

// Where a thread is.
struct Place {
    metal::uint3 group, in_group, in_grid;
    uint index;
};

typedef void Thread(const Place&, void* const* buffers);

static Place place(metal::uint3 group, metal::uint3 threads, uint index) {
    metal::uint3 at(index % threads.x, index / threads.x % threads.y, index / threads.x / threads.y);
    return {group, at, group * threads + at, index};
}

namespace fibers {

constexpr size_t STACK = 64 << 10;

static jmp_buf scheduler;
static jmp_buf* suspended;
static uint current;
static bool* is_done;
static Thread* entry;
static const Place* places;
static void* const* arguments;

static void start() {
    entry(places[current], arguments);
    is_done[current] = true;
    _longjmp(scheduler, 1);
}

static void suspend() {
    if (!_setjmp(suspended[current])) _longjmp(scheduler, 1);
}

// Runs all threads of a group up to their next barrier, again and again, in one order and then in the other, so that
// what is missing a barrier is likely to go wrong. False if only some threads have reached one.
static bool run(uint count, uint order, char* stacks) {
    // Not on the stack: nothing there is certain after a jump.
    static bool is_first;
    static uint left, ended, turn, i;
    static std::unique_ptr<ucontext_t> context;
    context = std::make_unique<ucontext_t>();
    for (is_first = true, left = count, turn = order; left > 0; is_first = false, turn++) {
        ended = 0;
        for (i = 0; i < count; i++) {
            current = turn % 2 == 0 ? i : count - 1 - i;
            if (_setjmp(scheduler) == 0) {
                if (!is_first) _longjmp(suspended[current], 1);
                getcontext(context.get());
                context->uc_stack.ss_sp = stacks + current * STACK;
                context->uc_stack.ss_size = STACK;
                context->uc_link = nullptr;
                makecontext(context.get(), start, 0);
                setcontext(context.get());
            }
            ended += is_done[current];
        }
        if (ended != 0 && ended != count) return false;
        left = count - ended;
    }
    return true;
}

}  // namespace fibers

// Runs a grid. False if a barrier was not reached by all threads of a group.
static bool run_grid(Thread* run, bool has_barriers, const uint* groups, const uint* size, void* const* buffers) {
    metal::uint3 threads(size[0], size[1], size[2]);
    uint count = threads.x * threads.y * threads.z;
    std::unique_ptr<char[]> stacks;
    auto suspended = std::make_unique<jmp_buf[]>(has_barriers ? count : 0);
    auto is_done = std::make_unique<bool[]>(count);
    auto places = std::make_unique<Place[]>(count);
    if (has_barriers) stacks.reset(new char[count * fibers::STACK]);
    for (uint z = 0; z < groups[2]; z++)
        for (uint y = 0; y < groups[1]; y++)
            for (uint x = 0; x < groups[0]; x++) {
                for (uint i = 0; i < count; i++) {
                    places[i] = place(metal::uint3(x, y, z), threads, i);
                    is_done[i] = false;
                }
                if (!has_barriers) {
                    for (uint i = 0; i < count; i++) run(places[i], buffers);
                    continue;
                }
                fibers::entry = run;
                fibers::suspended = suspended.get();
                fibers::is_done = is_done.get();
                fibers::places = places.get();
                fibers::arguments = buffers;
                if (!fibers::run(count, x + y + z, stacks.get())) return false;
            }
    return true;
}

static void reach_barrier() { fibers::suspend(); }
