// vgpu-bench: measures what a virtual GPU costs or saves.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "tools/vgpu-bench/campaign.h"
#include "tools/vgpu-bench/write.h"
#include "vgpu/base/fail.h"

namespace vgpu::bench {
namespace {

void writeFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text << std::flush;
  if (!file) fail("cannot write " + path.string() + ": " + strerror(errno));
}

void writeCharts(const Results& results, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) fail("cannot make the directory " + directory + ": " + error.message());
  for (const std::string& group : groupsOf(results)) {
    std::string chart = writeChart(results, group);
    if (!chart.empty()) writeFile(std::filesystem::path(directory) / (group + ".svg"), chart);
  }
}

// The cases that the options select.
std::vector<Case> casesOf(const BenchOptions& options, bool quick) {
  if (!options.command.empty()) return {commandCase(options.command)};
  return matching(installedCases(quick), options.only);
}

int measure(const BenchOptions& options) {
  Campaign campaign(options);
  if (!campaign.hasNative()) {
    if (!options.chartDirectory.empty()) {
      fail(
          "--svg draws ratios of virtual to native runs: it needs an NVIDIA driver here, and a node that uses it, not " +
          campaign.node());
    }
    fmt::print(stderr, "vgpu-bench: native runs are not possible here (node {}): virtual runs only, without ratios\n",
               campaign.node());
  }
  bool quick = options.quick || campaign.isEmulated();
  Results results = campaign.measure(casesOf(options, quick), quick);
  fmt::print("{} rounds; node {}\n\n{}", results.rounds, results.node, writeTable(results));
  if (!options.csvFile.empty()) writeFile(options.csvFile, writeCsv(results));
  if (!options.jsonFile.empty()) writeFile(options.jsonFile, writeJson(results));
  if (!options.chartDirectory.empty()) writeCharts(results, options.chartDirectory);
  return 0;
}

int run(std::vector<std::string> arguments) {
  BenchOptions options;
  int code = 0;
  if (!parseOptions(std::move(arguments), options, code)) return code;
  auto cases = casesOf(options, options.quick);
  if (cases.empty()) {
    fmt::print(stderr, "vgpu-bench: --only matches no case; --list prints all names\n");
    return 2;
  }
  if (options.list) {
    for (const Case& each : cases) fmt::print("{}\n", each.name);
    return 0;
  }
  LogToSpdlog log;
  return exitCodeOf("vgpu-bench", [&] { return measure(options); });
}

}  // namespace
}  // namespace vgpu::bench

int main(int argc, char** argv) {
  vgpu::rememberIgnoredSignals();
  return vgpu::bench::run({argv + 1, argv + argc});
}
