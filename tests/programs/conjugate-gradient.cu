// Solves Poisson's equation on a square grid by conjugate gradients, with all iterations of a launch in one kernel: its blocks synchronize
// by cooperative groups after every sum and every step. The pause is between two launches; the iteration's state stays on the device.
#include "program.h"
#include "random-numbers.h"

#include <cooperative_groups.h>

#include <algorithm>

namespace groups = cooperative_groups;

constexpr int side = 24, unknowns = side * side, block = 96;

struct State {
  float solution[unknowns], residual[unknowns], direction[unknowns], image[unknowns];
  double sums[3];  // in rotation: the one being added to, the previous one, and the next one, already zero
  double norm;     // of the residual, squared
  int turn;
};

// Row i of the five-point operator times `v`.
__host__ __device__ float applyRow(const float* v, int i) {
  const int x = i % side, y = i / side;
  float sum = 4 * v[i];
  if (x > 0) sum -= v[i - 1];
  if (x < side - 1) sum -= v[i + 1];
  if (y > 0) sum -= v[i - side];
  if (y < side - 1) sum -= v[i + side];
  return sum;
}

// The sum of each thread's value over the whole grid, returned in every thread.
__device__ double sumOverGrid(groups::grid_group grid, State* state, int turn, double mine) {
  const auto warp = groups::tiled_partition<32>(groups::this_thread_block());
  for (int distance = 16; distance > 0; distance /= 2) mine += warp.shfl_down(mine, distance);
  if (warp.thread_rank() == 0) atomicAdd(&state->sums[turn % 3], mine);
  if (grid.thread_rank() == 0) state->sums[(turn + 1) % 3] = 0;
  grid.sync();
  return state->sums[turn % 3];
}

__global__ void iterate(State* state, int iterations) {
  const groups::grid_group grid = groups::this_grid();
  const int start = grid.thread_rank(), step = grid.size();
  int turn = state->turn;
  double norm = state->norm;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    double mine = 0;
    for (int i = start; i < unknowns; i += step) {
      state->image[i] = applyRow(state->direction, i);
      mine += double(state->direction[i]) * state->image[i];
    }
    const float length = norm / sumOverGrid(grid, state, turn++, mine);
    mine = 0;
    for (int i = start; i < unknowns; i += step) {
      state->solution[i] += length * state->direction[i];
      state->residual[i] -= length * state->image[i];
      mine += double(state->residual[i]) * state->residual[i];
    }
    const double newNorm = sumOverGrid(grid, state, turn++, mine);
    for (int i = start; i < unknowns; i += step) {
      state->direction[i] = state->residual[i] + float(newNorm / norm) * state->direction[i];
    }
    norm = newNorm;
    grid.sync();
  }
  if (start == 0) {
    state->turn = turn;
    state->norm = norm;
  }
}

void launch(State* state, int iterations) {
  int resident = 0, multiprocessors = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, iterate, block, 0));
  CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const int blocks = std::min(resident * multiprocessors, blocksFor(unknowns, block));
  void* parameters[] = {&state, &iterations};
  CHECK(cudaLaunchCooperativeKernel(iterate, dim3(blocks), dim3(block), parameters));
}

int main() {
  const auto wanted = randomFloats(unknowns, -1, 1, 1);
  std::vector<State> state(1, State{});
  for (int i = 0; i < unknowns; ++i) {
    const float right = applyRow(wanted.data(), i);
    state[0].residual[i] = state[0].direction[i] = right;
    state[0].norm += double(right) * right;
  }
  const double startNorm = state[0].norm;
  DeviceArray<State> device(state);
  launch(device, 20);
  const double halfway = device.download()[0].norm;
  pausePoint();
  launch(device, 50);

  const State end = device.download()[0];
  const std::vector<float> solution(end.solution, end.solution + unknowns);
  return verdict("conjugate-gradient", EXPECT(0 < halfway && halfway < startNorm) &
                                           EXPECT(end.norm < 1e-9 * startNorm) &
                                           close("solution", solution, wanted, 1e-3));
}
