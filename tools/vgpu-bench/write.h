// The ways of writing results down. Each returns text; nobody here opens a file.
#pragma once

#include <string>

#include "tools/vgpu-bench/results.h"

namespace vgpu::bench {

// For people, and for a Markdown page as it is.
std::string writeTable(const Results& results);

// For programs; the same fields in both. A figure that is not there is empty in CSV, and null in JSON.
std::string writeCsv(const Results& results);
std::string writeJson(const Results& results);

// A chart of the ratios of one group, as bars from 1 on a logarithmic axis. Its colours can be read on white and on
// black. Empty if the group has no ratio.
std::string writeChart(const Results& results, const std::string& group);

// The groups in the order in which they were measured.
std::vector<std::string> groupsOf(const Results& results);

}  // namespace vgpu::bench
