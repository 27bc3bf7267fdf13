// Where the work of one stream is cut into runs. A program that repeats itself gives the same work again after a period: cut at the
// period, its runs are the same again too, and their graphs are launched as they are. Other work is cut into runs of a few lengths,
// so that there are few shapes.
//
// The thread's of that GPU. Knows work by its hash. Nothing of it survives a suspend.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace vgpu::stub {

// In a graph of 8 kernels one costs 0.8 µs, in one of 64 or more 0.5 to 0.7, launched alone 3.3 (H200; docs/folding.md).
constexpr size_t longestRun = 64;

class RunLengths {
 public:
  // The next piece of the stream's work.
  void add(uint64_t hash);

  // How many pieces after the last one that was add()ed make the next run. At most longestRun.
  size_t next() const;
  // A run of so many pieces has been cut off, or they were executed one by one.
  void cut(size_t pieces);

  // After how many pieces the work has come again; 0 if it is not known to.
  size_t period() const { return repeats >= std::max<size_t>(candidate, leastRepeats) ? candidate : 0; }
  // Into how many runs of equal length a period is cut.
  size_t runsInPeriod() const { return (period() + longestRun - 1) / longestRun; }

 private:
  static constexpr size_t longestPeriod = 1024;
  static constexpr size_t leastRepeats = 8;
  static constexpr size_t places = 2 * longestPeriod;
  struct Seen {
    uint64_t hash = 0, index = 0;
  };
  struct History {
    std::array<uint64_t, longestPeriod> latest{};  // hashes, by index
    std::array<Seen, places> seen{};               // where a hash came last, by hash
  };

  std::unique_ptr<History> history;
  uint64_t count = 0;
  size_t candidate = 0;  // a period that has held for `repeats` pieces
  size_t repeats = 0;
  size_t inPeriod = 0;  // pieces of the period that have been cut off
};

}  // namespace vgpu::stub
