// Numbers for programs to work on. Not in program.h: <random> takes as long to compile as all that is there.
#pragma once

#include <random>
#include <vector>

// `count` numbers drawn evenly from [low, high], the same in every run.
inline std::vector<float> randomFloats(size_t count, float low, float high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

inline std::vector<int> randomInts(size_t count, int low, int high, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> distribution(low, high);
  std::vector<int> values(count);
  for (int& value : values) value = distribution(generator);
  return values;
}
