// Prices European calls by simulation: each path draws Box-Muller normal numbers from a generator that hashes the path's number. The mean
// must agree with the Black-Scholes formula within four of its own standard errors, and the sum with the CPU's, which computes the same
// paths in double precision.
#include "bench.h"

constexpr int options = 8, paths = 1 << 14, block = 256, blocksPerOption = 8;
constexpr float rate = 0.03f, volatility = 0.25f;
constexpr double tolerance = 1e-4;

struct Option {
  float price, strike, years;
};

struct Sums {
  double payoff, square;
};

// The `index`-th number of a uniform distribution on (0, 1): a counter, mixed as in Steele, Lea and Flood's splitmix64.
__host__ __device__ double uniform(unsigned long long index) {
  unsigned long long z = index * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return ((z >> 41) + 0.5) / (1 << 23);
}

template <typename Real>
__host__ __device__ Real normal(unsigned long long index) {
  const Real radius = sqrt(-2 * log(Real(uniform(2 * index + 1))));
  return radius * cos(Real(6.283185307179586) * Real(uniform(2 * index + 2)));
}

template <typename Real>
__host__ __device__ Real payoff(const Option& option, unsigned long long path) {
  const Real drift = (Real(rate) - Real(0.5) * volatility * volatility) * option.years;
  const Real end = option.price * exp(drift + Real(volatility) * sqrt(Real(option.years)) * normal<Real>(path));
  return end > option.strike ? end - option.strike : Real(0);
}

__global__ void simulate(const Option* all, Sums* sums, unsigned long long firstPath, int count) {
  __shared__ Sums shared[block];
  const Option option = all[blockIdx.y];
  Sums mine{0, 0};
  for (int i = blockIdx.x * block + threadIdx.x; i < count; i += gridDim.x * block) {
    const float value = payoff<float>(option, firstPath + i);
    mine.payoff += value;
    mine.square += double(value) * value;
  }
  shared[threadIdx.x] = mine;
  for (int distance = block / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (threadIdx.x >= distance) continue;
    shared[threadIdx.x].payoff += shared[threadIdx.x + distance].payoff;
    shared[threadIdx.x].square += shared[threadIdx.x + distance].square;
  }
  if (threadIdx.x != 0) return;
  atomicAdd(&sums[blockIdx.y].payoff, shared[0].payoff);
  atomicAdd(&sums[blockIdx.y].square, shared[0].square);
}

double formula(const Option& option) {
  const auto distribution = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  const double deviation = volatility * std::sqrt(double(option.years));
  const double d1 = (std::log(option.price / double(option.strike)) + rate * option.years) / deviation + deviation / 2;
  return option.price * distribution(d1) -
         option.strike * std::exp(-double(rate) * option.years) * distribution(d1 - deviation);
}

std::vector<Option> exampleOptions(int count) {
  std::vector<Option> all(count);
  for (int i = 0; i < count; ++i) all[i] = {90.0f + 5 * (i % 8), 100, 0.5f + 0.25f * (i % 8)};
  return all;
}

// The SDK sample's 256 options with 262,144 paths each.
int measure(const Bench& bench) {
  const auto all = exampleOptions(bench.size(256, 4));
  const std::vector<Sums> none(all.size(), Sums{0, 0});
  std::vector<Sums> result(all.size());
  DeviceArray<Option> device(all.size());
  DeviceArray<Sums> sums(all.size());
  bench.steady(40, [&] {
    device.copyIn(all);
    sums.copyIn(none);
    simulate<<<dim3(blocksPerOption, all.size()), block>>>(device, sums, 0, bench.size(1 << 18, 1 << 10));
    CHECK(cudaGetLastError());
    sums.copyOut(result);
  });
  std::vector<float> means;  // rounded, because atomic additions happen in any order
  for (const Sums& sum : result) means.push_back(std::round(sum.payoff));
  return bench.digest(means);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const auto all = exampleOptions(options);
  DeviceArray<Option> device(all);
  DeviceArray<Sums> sums(std::vector<Sums>(options, Sums{0, 0}));
  const dim3 grid(blocksPerOption, options);
  simulate<<<grid, block>>>(device, sums, 0, paths);
  CHECK(cudaGetLastError());
  pausePoint();
  simulate<<<grid, block>>>(device, sums, paths, paths);
  CHECK(cudaGetLastError());

  const auto got = sums.download();
  std::vector<double> means, expected;
  bool ok = true;
  for (int i = 0; i < options; ++i) {
    double sum = 0;
    for (int path = 0; path < 2 * paths; ++path) sum += payoff<double>(all[i], path);
    expected.push_back(sum / (2 * paths));
    means.push_back(got[i].payoff / (2 * paths));
    const double discount = std::exp(-double(rate) * all[i].years);
    const double variance = got[i].square / (2 * paths) - means[i] * means[i];
    const double standardError = discount * std::sqrt(variance / (2 * paths));
    ok &= EXPECT(std::fabs(discount * means[i] - formula(all[i])) < 4 * standardError);
  }
  return verdict("monte-carlo", ok & close("mean payoff", means, expected, tolerance));
}
