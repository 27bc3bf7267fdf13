// Matsumoto and Nishimura's MT19937, one block per generator, with its state kept in device memory between launches. Results are compared
// bit by bit with the C++ library's generator.
#include <random>

#include "bench.h"

constexpr int generators = 24, words = 624, middle = 397, batches = 4, block = 256;

struct Block {
  unsigned word[words];
};

__device__ unsigned twist(unsigned high, unsigned low) {
  const unsigned joined = (high & 0x80000000) | (low & 0x7fffffff);
  return (joined >> 1) ^ (low & 1 ? 0x9908b0df : 0);
}

__device__ unsigned temper(unsigned y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680;
  y ^= (y << 15) & 0xefc60000;
  return y ^ (y >> 18);
}

// A word depends on the new value of the word 227 before it, so up to 227 words are computed at once.
__device__ void advance(unsigned* state) {
  constexpr int together = words - middle;
  for (int start = 0; start < words; start += together) {
    const int i = start + threadIdx.x;
    const bool mine = threadIdx.x < together && i < words;
    unsigned next = 0;
    if (mine) next = state[(i + middle) % words] ^ twist(state[i], state[(i + 1) % words]);
    __syncthreads();
    if (mine) state[i] = next;
    __syncthreads();
  }
}

__global__ void seed(Block* states, const unsigned* seeds) {
  const int generator = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* const state = states[generator].word;
  state[0] = seeds[generator];
  for (int i = 1; i < words; ++i) state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
}

// The next 624 numbers of each generator.
__global__ void generate(Block* states, Block* numbers) {
  __shared__ unsigned state[words];
  for (int i = threadIdx.x; i < words; i += block) state[i] = states[blockIdx.x].word[i];
  __syncthreads();
  advance(state);
  for (int i = threadIdx.x; i < words; i += block) {
    states[blockIdx.x].word[i] = state[i];
    numbers[blockIdx.x].word[i] = temper(state[i]);
  }
}

std::vector<unsigned> seedsFor(int count) {
  std::vector<unsigned> seeds(count);
  for (int i = 0; i < count; ++i) seeds[i] = 5489 + 1000003u * i;
  return seeds;
}

// The SDK sample's 4,096 generators and 24 million numbers.
int measure(const Bench& bench) {
  const int count = bench.size(4096, 8), together = 8, batchCount = bench.size(10, 2);
  const auto seeds = seedsFor(count);
  DeviceArray<unsigned> deviceSeeds(count);
  DeviceArray<Block> states(count), numbers(count);
  std::vector<Block> drawn(count);
  bench.steady(15, [&] {
    deviceSeeds.copyIn(seeds);
    seed<<<count / together, together>>>(states, deviceSeeds);
    for (int batch = 0; batch < batchCount; ++batch) {
      generate<<<count, block>>>(states, numbers);
      numbers.copyOut(drawn);
    }
    CHECK(cudaGetLastError());
  });
  return bench.digest(drawn);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const auto seeds = seedsFor(generators);
  DeviceArray<unsigned> deviceSeeds(seeds);
  DeviceArray<Block> states(generators), numbers(generators);
  std::vector<std::mt19937> reference(seeds.begin(), seeds.end());

  seed<<<1, generators>>>(states, deviceSeeds);
  CHECK(cudaGetLastError());
  bool ok = true;
  for (int batch = 0; batch < batches; ++batch) {
    if (batch == batches / 2) pausePoint();
    generate<<<generators, block>>>(states, numbers);
    CHECK(cudaGetLastError());
    const auto drawn = numbers.download();
    for (int i = 0; i < generators; ++i) {
      std::vector<unsigned> expected(words);
      for (unsigned& number : expected) number = reference[i]();
      ok &= same("numbers", std::vector<unsigned>(drawn[i].word, drawn[i].word + words), expected);
    }
  }
  return verdict("mersenne-twister", ok);
}
