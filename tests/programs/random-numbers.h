// Random numbers for programs. Not in program.h: <random> takes as long to compile as everything there.
#pragma once

#include <random>
#include <vector>

// `count` numbers uniformly from [low, high], the same in every run.
template <typename Distribution, typename Number>
std::vector<Number> randomNumbers(size_t count, Number low, Number high, unsigned seed) {
  std::mt19937 generator(seed);
  Distribution distribution(low, high);
  std::vector<Number> values(count);
  for (Number& value : values) value = distribution(generator);
  return values;
}
inline std::vector<float> randomFloats(size_t count, float low, float high, unsigned seed) {
  return randomNumbers<std::uniform_real_distribution<float>>(count, low, high, seed);
}
inline std::vector<int> randomInts(size_t count, int low, int high, unsigned seed) {
  return randomNumbers<std::uniform_int_distribution<int>>(count, low, high, seed);
}
