#include "tools/vgpu-bench/cases.h"

#include <fnmatch.h>

#include <algorithm>

namespace vgpu::bench {
namespace {

// The groups of tests/programs/calls.cu, with the chart that each belongs to.
struct CallGroup {
  const char *chart, *name;
  bool wholeProcess;
};
constexpr CallGroup callGroups[] = {
    {"calls", "start", false},
    {"calls", "launches", false},
    {"calls", "allocation", false},
    {"calls", "queries", false},
    {"calls", "two-gpus", false},
    {"calls", "libraries", false},
    {"copies", "pageable", false},
    {"copies", "pinned", false},
    {"extremes", "many-calls", true},
    {"extremes", "much-data", true},
};

// The groups of tests/programs/posted-calls.cu.
constexpr const char* postedGroups[] = {"posted", "graphs"};

// The groups of tests/programs/small-launches.cu, which measure folding.
constexpr const char* foldingGroups[] = {"repeating", "changing", "four-streams", "in-turn", "jacobi", "chain", "long"};

// The eight kinds of SDK samples with which vCUDA was measured, and the three of GVirtuS.
constexpr const char* programs[] = {
    "aligned-types",   "binomial-options", "black-scholes", "convolution-separable",
    "walsh-transform", "mersenne-twister", "monte-carlo",   "scan",
    "vector-add",      "matrix-multiply",  "sort-bitonic",
};

constexpr int togetherCounts[] = {1, 2, 4, 8};
constexpr const char* togetherProgram = "black-scholes";

struct Target {
  const char* pattern;  // the first matching pattern counts
  Wanted wanted;
};
constexpr auto ratio = Wanted::Kind::ratio;
constexpr auto least = Wanted::Kind::least;
constexpr Target targets[] = {
    {"a launch of *, parameters repeating every 50", {ratio, 0.20}},
    {"a launch of *, parameters changing every time", {ratio, 0.27}},
    {"a launch of *, over 4 streams, *", {ratio, 0.35}},
    {"a launch, copy or fill of *, in turn", {ratio, 0.4}},
    {"a sweep of * on 256 x 256, Jacobi", {ratio, 0.33}},
    {"a kernel of * steps of ten", {ratio, 0.33}},
    {"a kernel of * that take 20 us", {ratio, 1.01}},
    {"launches folded, repeating", {least, 90}},
    {"launches folded, changing", {least, 90}},
    {"launches folded, four-streams", {least, 90}},
    {"launches folded, in-turn", {least, 90}},
    {"call that launches a graph of *", {ratio, 0.2}},
    {"execution of a graph of *", {ratio, 1.02}},
    {"kernel over * of managed memory", {ratio, 1.02}},
    {"posted launch", {ratio, 0.05}},
    {"a launch of *, two GPUs at once", {ratio, 1.05}},
    {"launch + wait, * queued on the other GPU", {ratio, 1.1}},
    {"a launch of *, the other GPU computing", {ratio, 1.05}},
    {"sustained launches, *", {ratio, 1.02}},
    {"launch + wait", {ratio, 1.05}},
    {"GEMM of 64 x 64", {ratio, 0.3}},
    {"GEMM of 64 x 64 + wait", {ratio, 1.1}},
    {"idle synchronize", {ratio, 0.2}},
    {"query of a finished event", {ratio, 0.2}},
    {"event record + synchronize", {ratio, 1.1}},
    {"copy to device, pageable, * MiB", {ratio, 0.5}},
    {"copy from device, pageable, * MiB", {ratio, 0.6}},
    {"copy *, pageable, *", {ratio, 0.9}},
    {"copy *, pinned, * MiB", {ratio, 1.02}},
    {"copy *, pinned, *", {ratio, 1.1}},
    {"malloc + free, *", {ratio, 0.1}},
    {"two vectors of * in a fresh thread", {ratio, 1.0}},
    {"first CUDA call", {ratio, 0.05}},
    {"* programs, steady, geometric mean", {ratio, 1.0}},
    {"* programs, steady, worst", {ratio, 1.03}},
    {"* programs, whole process, geometric mean", {ratio, 0.8}},
    {"8 programs at once", {ratio, 1.0}},
    {"memory of a program that copies nothing", {Wanted::Kind::difference, 32 * 1024}},
};

}  // namespace

std::vector<Case> installedCases(bool quick) {
  const std::string size = quick ? "quick" : "full";
  std::vector<Case> cases;
  for (auto [chart, name, wholeProcess] : callGroups) {
    cases.push_back({std::string(chart) + "/" + name, {"calls", "--bench", size, name}});
    if (wholeProcess) cases.back().wholeProcess = std::string(name) + ", whole process";
  }
  for (const std::string name : postedGroups) cases.push_back({"calls/" + name, {"posted-calls", "--bench", size, name}});
  cases.push_back({"copies/managed", {"managed-figures", "--bench", size, "managed"}});
  for (const std::string name : foldingGroups) {
    cases.push_back({"folding/" + name, {"small-launches", "--bench", size, name}});
    cases.back().countsLaunches = true;
  }
  for (const std::string program : programs) {
    cases.push_back({"programs/" + program, {program, "--bench", size}, program + ", ", program + ", whole process"});
  }
  for (int copies : togetherCounts) {
    Case together{"together/" + std::to_string(copies), {togetherProgram, "--bench", size}};
    together.wholeProcess = std::to_string(copies) + (copies == 1 ? " program" : " programs at once");
    together.copies = copies;
    together.ownFigures = false;
    cases.push_back(together);
  }
  return cases;
}

std::vector<Case> matching(const std::vector<Case>& cases, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return cases;
  std::vector<Case> chosen;
  std::ranges::copy_if(cases, std::back_inserter(chosen), [&](const Case& each) {
    const std::string group = each.group(), rest = each.name.substr(group.size() + 1);
    return std::ranges::any_of(patterns, [&](const std::string& pattern) {
      return std::ranges::any_of(std::initializer_list{&each.name, &group, &rest}, [&](const std::string* name) {
        return fnmatch(pattern.c_str(), name->c_str(), 0) == 0;
      });
    });
  });
  return chosen;
}

Case commandCase(const std::vector<std::string>& command) {
  return {"command/given", command, "", "whole process", "memory, at its highest"};
}

std::optional<Wanted> wantedOf(const std::string& name) {
  for (auto& [pattern, wanted] : targets) {
    if (fnmatch(pattern, name.c_str(), 0) == 0) return wanted;
  }
  return {};
}

}  // namespace vgpu::bench
