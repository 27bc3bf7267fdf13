// Measurements as rows: the input for all output formats.
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
  std::string group, name, unit;            // unit: us, KiB; "" for a row that is only a ratio
  std::vector<double> native, virtualized;  // one per round; native is empty if there is no native driver
  std::optional<double> meanRatio = {};     // for a row that summarizes others

  // Virtual ÷ native, of the medians. Nothing if a side is missing, or the native figure is 0.
  std::optional<double> ratio() const;
  std::optional<Wanted> wanted() const { return wantedOf(name); }
  // Whether the figure meets its target; nothing if it has none, or there is nothing to compare.
  std::optional<bool> met() const;
};

struct Results {
  std::string node;  // as the daemon describes itself: "(cuda, 1 device: NVIDIA H200)"
  int rounds = 0;
  bool quick = false;
  bool hasNative = false;
  std::vector<Row> rows;

  // Adds a run's figures to their rows. Throws kj::Exception if its copies, or the two sides, computed different results, because the times
  // are meaningless then.
  void add(const Case& measured, Side side, const Run& run);
  // Adds the rows that are computed from others: the programs' means, and the memory that a session adds.
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
