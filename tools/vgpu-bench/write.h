// Output formats for results. Each function returns text; none opens a file.
#pragma once

#include <string>

#include "tools/vgpu-bench/results.h"

namespace vgpu::bench {

// For people, and usable as Markdown.
std::string writeTable(const Results& results);

// For programs; both have the same fields. A missing figure is empty in CSV, and null in JSON.
std::string writeCsv(const Results& results);
std::string writeJson(const Results& results);

// A bar chart of the ratios of one group, with bars from 1 on a logarithmic axis. Its colours are readable on white and on black. Empty if
// the group has no ratio.
std::string writeChart(const Results& results, const std::string& group);

// The groups, in the order in which they were measured.
std::vector<std::string> groupsOf(const Results& results);

}  // namespace vgpu::bench
