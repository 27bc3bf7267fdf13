// Summaries of several measurements of the same quantity.
#pragma once

#include <vector>

namespace vgpu::bench {

struct Spread {
  double least = 0, median = 0, most = 0;
};

// The median of an even number of values is the mean of the two in the middle. `values` is not empty.
Spread spreadOf(std::vector<double> values);

// `values` are positive, and not empty.
double geometricMean(const std::vector<double>& values);

}  // namespace vgpu::bench
