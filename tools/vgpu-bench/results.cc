#include "tools/vgpu-bench/results.h"

#include <fmt/format.h>

#include <algorithm>

#include "vgpu/base/fail.h"

namespace vgpu::bench {

std::optional<double> Row::ratio() const {
  if (meanRatio) return meanRatio;
  if (native.empty() || virtualized.empty()) return {};
  double divisor = spreadOf(native).median;
  if (divisor <= 0) return {};
  return spreadOf(virtualized).median / divisor;
}

std::optional<bool> Row::met() const {
  auto limit = wanted();
  if (limit && limit->kind == Wanted::Kind::least) {
    if (virtualized.empty()) return {};
    return spreadOf(virtualized).median >= limit->limit;
  }
  if (!limit || !ratio()) return {};
  if (limit->kind == Wanted::Kind::ratio) return *ratio() <= limit->limit;
  return spreadOf(virtualized).median - spreadOf(native).median <= limit->limit;
}

void Results::append(const Case& measured, Side side, const std::string& name, const std::string& unit, double value) {
  auto row = std::ranges::find_if(rows, [&](const Row& row) { return row.name == name; });
  if (row == rows.end()) row = rows.insert(rows.end(), Row{measured.group(), name, unit, {}, {}});
  (side == Side::native ? row->native : row->virtualized).push_back(value);
}

void Results::add(const Case& measured, Side side, const Run& run) {
  for (const Report& report : run.reports) {
    auto known = std::ranges::find(digests, measured.name, &Digest::caseName);
    if (known == digests.end()) known = digests.insert(digests.end(), {measured.name, report.digest});
    if (known->value != report.digest) {
      fail(fmt::format(
          "{}: this {} run had another result than the runs before it (digest {}, before {}): its times cannot be compared",
          measured.name, side == Side::native ? "native" : "virtual", report.digest, known->value));
    }
  }
  if (measured.ownFigures) {
    for (const Figure& figure : run.reports.front().figures) {
      append(measured, side, measured.prefix + figure.name, figure.unit, figure.value);
    }
  }
  const std::string rest = measured.name.substr(measured.group().size() + 1);
  if (run.folded) append(measured, side, "launches folded, " + rest, "%", *run.folded);
  if (!measured.wholeProcess.empty()) append(measured, side, measured.wholeProcess, "us", run.microseconds);
  if (!measured.memory.empty()) append(measured, side, measured.memory, "KiB", run.residentKiB);
}

const Row* Results::find(const std::string& name) const {
  auto row = std::ranges::find(rows, name, &Row::name);
  return row == rows.end() ? nullptr : &*row;
}

void Results::addMeans(const std::string& suffix, bool withWorst) {
  std::vector<double> ratios;
  for (const Row& row : rows) {
    if (row.group == "programs" && row.name.ends_with(", " + suffix) && row.ratio()) ratios.push_back(*row.ratio());
  }
  if (ratios.empty()) return;
  std::string name = fmt::format("{} programs, {}, ", ratios.size(), suffix);
  rows.push_back({"programs", name + "geometric mean", "", {}, {}, geometricMean(ratios)});
  if (withWorst) rows.push_back({"programs", name + "worst", "", {}, {}, std::ranges::max(ratios)});
}

void Results::conclude() {
  // Compared with the program natively before its first CUDA call, without any CUDA library's data.
  const Row* before = find("resident before the first call");
  const Row* after = find("resident after 1,000 launches");
  if (before && after && !before->native.empty()) {
    rows.push_back(
        {before->group, "memory of a program that copies nothing", "KiB", before->native, after->virtualized});
  }
  addMeans("steady", true);
  addMeans("whole process", false);
}

}  // namespace vgpu::bench
