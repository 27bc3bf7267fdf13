// Kernels print more than their buffer holds: some output is lost, and the driver chooses which; the rest consists of whole lines and
// includes the last one. Where the driver wraps around in its buffer it may write one line twice; no other line is repeated.
#include <algorithm>
#include <sstream>
#include <string>

#include "captured-output.h"

__global__ void sayMuch(int lines) {
  for (int i = 0; i < lines; ++i) printf("line %06d\n", i);
}

int main() {
  constexpr int lines = 300'000;
  CapturedOutput output(CapturedOutput::Into::file);
  CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 64 << 10));
  sayMuch<<<1, 1>>>(lines);
  CHECK(cudaDeviceSynchronize());
  std::istringstream text(output.finish());

  std::vector<int> numbers;
  bool whole = true;
  size_t timesBack = 0;
  for (std::string line; std::getline(text, line);) {
    int number = -1, used = 0;
    whole &= std::sscanf(line.c_str(), "line %06d%n", &number, &used) == 1 && used == static_cast<int>(line.size()) &&
             line.size() == 11 && number < lines;
    timesBack += !numbers.empty() && number <= numbers.back();
    numbers.push_back(number);
  }
  bool ok = EXPECT(whole) & EXPECT(numbers.size() < lines) & EXPECT(!numbers.empty() && numbers.back() == lines - 1);
  std::sort(numbers.begin(), numbers.end());
  const size_t twice = numbers.end() - std::unique(numbers.begin(), numbers.end());
  ok &= EXPECT(twice <= timesBack);
  return verdict("print-overfull", ok);
}
