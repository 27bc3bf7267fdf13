// Reads its memory in a loop, and rewrites a part of it each second, until a file appears: for migrations, which appear to it as a
// step that takes long. Every sum is checked.
//
//   working-set [MIB [PERCENT [FILE [READ]]]]    PERCENT of the memory is rewritten each second; without FILE it makes twenty steps,
//                                                with it at least one; each reads all of the memory, or its first READ MiB; at the
//                                                end all of it is read
#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "program.h"

using Clock = std::chrono::steady_clock;

constexpr uint32_t block = 256, grid = 1024;
constexpr size_t sliceWords = (size_t{1} << 20) / sizeof(uint32_t);

__global__ void write(uint32_t* slice, uint32_t value) {
  for (size_t i = blockIdx.x * size_t{block} + threadIdx.x; i < sliceWords; i += size_t{grid} * block) slice[i] = value;
}

__global__ void read(const uint32_t* words, size_t count, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (size_t i = blockIdx.x * size_t{block} + threadIdx.x; i < count; i += size_t{grid} * block) mine += words[i];
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(~0u, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

double secondsBetween(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

int main(int argc, char** argv) {
  const size_t slices = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 8;
  const double percent = argc > 2 ? std::atof(argv[2]) : 500;
  const char* file = argc > 3 ? argv[3] : nullptr;
  const size_t readSlices = argc > 4 ? std::min<size_t>(std::strtoull(argv[4], nullptr, 10), slices) : slices;
  DeviceArray<uint32_t> words(slices * sliceWords);
  DeviceArray<unsigned long long> sum(1);
  std::vector<uint32_t> values(slices);
  auto rewrite = [&](size_t slice, uint32_t value) {
    values[slice] = value;
    write<<<grid, block>>>(words + slice * sliceWords, value);
  };
  for (size_t slice = 0; slice < slices; ++slice) rewrite(slice, static_cast<uint32_t>(slice) * 2654435761u);

  auto isRight = [&](uint32_t step, size_t count) {
    unsigned long long expected = 0;
    for (size_t slice = 0; slice < count; ++slice) expected += static_cast<unsigned long long>(values[slice]) * sliceWords;
    CHECK(cudaMemset(sum, 0, sizeof(unsigned long long)));
    read<<<grid, block>>>(words, count * sliceWords, sum);
    const unsigned long long got = sum.download()[0];
    if (got != expected) std::printf("working-set: step %u: the sum is %llu, expected %llu\n", step, got, expected);
    return got == expected;
  };

  std::vector<double> steps;
  double due = 0;  // slices that are due to be rewritten by now
  size_t next = 0, rewritten = 0;
  auto began = Clock::now(), last = began;
  struct stat found;
  uint32_t step = 1;
  for (; step == 1 || (file == nullptr ? step <= 20 : stat(file, &found) != 0); ++step) {
    for (; due >= 1; due -= 1, next = (next + 1) % slices, ++rewritten) rewrite(next, step * 40503u + static_cast<uint32_t>(next));
    if (!isRight(step, readSlices)) return 1;
    if (step == 10) pausePoint();
    const auto now = Clock::now();
    steps.push_back(secondsBetween(last, now));
    due = std::min(due + secondsBetween(last, now) * static_cast<double>(slices) * percent / 100, static_cast<double>(slices));
    last = now;
  }
  if (!isRight(step, slices)) return 1;
  std::sort(steps.begin(), steps.end());
  std::printf("steps %zu, median %.3f ms, longest %.3f ms, rewritten %zu MiB in %.1f s\n", steps.size(), steps[steps.size() / 2] * 1e3,
              steps.back() * 1e3, rewritten, secondsBetween(began, last));
  std::printf("working-set: ok\n");
  return 0;
}
