#include "tools/vgpu-bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace vgpu::bench {

Spread spreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  size_t count = values.size();
  return {values.front(), (values[(count - 1) / 2] + values[count / 2]) / 2, values.back()};
}

double geometricMean(const std::vector<double>& values) {
  double logarithms = 0;
  for (double value : values) logarithms += std::log(value);
  return std::exp(logarithms / static_cast<double>(values.size()));
}

}  // namespace vgpu::bench
