// What was measured, as rows: the same for every way of writing them down.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/vgpu-bench/cases.h"
#include "tools/vgpu-bench/run.h"
#include "tools/vgpu-bench/statistics.h"

namespace vgpu::bench {

enum class Side { native, virtualized };

struct Row {
  std::string group, name, unit;            // unit: us, KiB; "" for a row that is a ratio and nothing else
  std::vector<double> native, virtualized;  // one a round; native is empty if there is no native driver
  std::optional<double> meanRatio = {};     // of a row that sums up others

  // Virtual ÷ native, of the medians. Nothing if a side is missing, or natively the figure is 0.
  std::optional<double> ratio() const;
  std::optional<Wanted> wanted() const { return wantedOf(name); }
  // Whether the figure is as wanted; nothing if nothing is wanted or there is nothing to compare.
  std::optional<bool> met() const;
};

struct Results {
  std::string node;  // the daemon's own words: "(cuda, 1 device: NVIDIA H200)"
  int rounds = 0;
  bool quick = false;
  bool hasNative = false;
  std::vector<Row> rows;

  // Adds a run's figures to their rows. Throws kj::Exception if its copies, or the two sides, computed different
  // results: then the times mean nothing.
  void add(const Case& measured, Side side, const Run& run);
  // Adds the rows that follow from others: the programs' means, and the memory that a session adds.
  void conclude();

 private:
  void append(const Case& measured, Side side, const std::string& name, const std::string& unit, double value);
  void addMeans(const std::string& suffix, bool withWorst);
  const Row* find(const std::string& name) const;

  struct Digest {
    std::string caseName, value;
  };
  std::vector<Digest> digests;
};

}  // namespace vgpu::bench
