// Prices American puts on Cox-Ross-Rubinstein binomial trees: one block per option, which walks its tree back from the last step in shared
// memory. The CPU does the same in double precision; the rounding errors of 256 steps in single precision stay within one part in ten
// thousand.
#include "bench.h"
#include "random-numbers.h"

constexpr int options = 48, steps = 256, block = 128;
constexpr double tolerance = 1e-4;

struct Option {
  float price, strike, years, rate, volatility;
};

// Parameters of a tree that are the same at every node.
template <typename Real>
struct Tree {
  Real logUp, up, down;  // the logarithm of an up step; the discounted probabilities of an up and a down step

  __host__ __device__ explicit Tree(const Option& option) {
    const Real step = Real(option.years) / steps;
    logUp = Real(option.volatility) * sqrt(step);
    const Real discount = exp(-Real(option.rate) * step);
    const Real probability = (1 / discount - exp(-logUp)) / (exp(logUp) - exp(-logUp));
    up = discount * probability;
    down = discount * (1 - probability);
  }
};

// The payoff of exercising the option at the node with `rises` up steps out of `step`.
template <typename Real>
__host__ __device__ Real exercise(const Option& option, const Tree<Real>& tree, int step, int rises) {
  const Real gain = Real(option.strike) - Real(option.price) * exp(tree.logUp * Real(2 * rises - step));
  return gain > 0 ? gain : 0;
}

__global__ void price(const Option* all, float* prices) {
  __shared__ float values[2][steps + 1];
  const Option option = all[blockIdx.x];
  const Tree<float> tree(option);
  for (int i = threadIdx.x; i <= steps; i += block) values[steps % 2][i] = exercise(option, tree, steps, i);
  for (int step = steps - 1; step >= 0; --step) {
    __syncthreads();
    const float* later = values[(step + 1) % 2];
    for (int i = threadIdx.x; i <= step; i += block) {
      values[step % 2][i] = fmaxf(tree.up * later[i + 1] + tree.down * later[i], exercise(option, tree, step, i));
    }
  }
  if (threadIdx.x == 0) prices[blockIdx.x] = values[0][0];
}

double priceOnHost(const Option& option) {
  const Tree<double> tree(option);
  std::vector<double> values(steps + 1);
  for (int i = 0; i <= steps; ++i) values[i] = exercise(option, tree, steps, i);
  for (int step = steps - 1; step >= 0; --step) {
    for (int i = 0; i <= step; ++i) {
      values[i] = std::fmax(tree.up * values[i + 1] + tree.down * values[i], exercise(option, tree, step, i));
    }
  }
  return values[0];
}

std::vector<Option> randomOptions(int count) {
  const auto draw = randomFloats(5 * count, 0, 1, 1);
  std::vector<Option> all(count);
  for (int i = 0; i < count; ++i) {
    const float* random = &draw[5 * i];
    all[i] = {5 + 25 * random[0], 5 + 25 * random[1], 0.25f + 2 * random[2], 0.01f + 0.05f * random[3],
              0.1f + 0.4f * random[4]};
  }
  return all;
}

// Eight times the SDK sample's options, although its trees have eight times as many steps.
int measure(const Bench& bench) {
  const auto all = randomOptions(bench.size(8192, 16));
  DeviceArray<Option> device(all.size());
  DeviceArray<float> prices(all.size());
  std::vector<float> result(all.size());
  bench.steady(60, [&] {
    device.copyIn(all);
    price<<<all.size(), block>>>(device, prices);
    CHECK(cudaGetLastError());
    prices.copyOut(result);
  });
  return bench.digest(result);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const auto all = randomOptions(options);
  DeviceArray<Option> device(all);
  DeviceArray<float> prices(options);
  price<<<options / 2, block>>>(device, prices);
  CHECK(cudaGetLastError());
  pausePoint();
  price<<<options / 2, block>>>(device + options / 2, prices + options / 2);
  CHECK(cudaGetLastError());

  std::vector<double> expected;
  for (const Option& option : all) expected.push_back(priceOnHost(option));
  return verdict("binomial-options", close("prices", prices.download(), expected, tolerance));
}
