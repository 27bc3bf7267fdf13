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

// Returns whether to go on; if not, `code` is the exit code, and the reason has been printed.
bool parseOptions(std::vector<std::string> arguments, BenchOptions& options, int& code);

}  // namespace vgpu::bench
