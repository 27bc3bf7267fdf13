// vgpu-bench's command line.
#pragma once

#include <string>
#include <vector>

namespace vgpu::bench {

struct BenchOptions {
  std::vector<std::string> only, command;
  std::string node, device = "auto";
  std::string csvFile, jsonFile, chartDirectory;
  int rounds = 7;
  bool quick = false, list = false;
};

// Whether there is something to do; else `code` is what to return, and why is printed.
bool parseOptions(std::vector<std::string> arguments, BenchOptions& options, int& code);

}  // namespace vgpu::bench
