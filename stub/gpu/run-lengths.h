// Where the work of one stream is cut into runs. A program that repeats itself gives the same work again after a period: cut at
// the period, its runs are the same again too, and their graphs are launched as they are. If it gives other parameters to the
// same functions, then a part of each graph stays as it is. Other work is cut into runs of a few lengths, so that there are few
// shapes.
//
// The thread's of that GPU. Knows work by hashes. Nothing of it survives a suspend.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace vgpu::stub {

// In a graph of 8 kernels one costs 0.8 µs, in one of 64 or more 0.5 to 0.7, launched alone 3.3 (H200; docs/folding.md).
constexpr size_t longestRun = 64;

// The distance at which what is given to it comes again, and runs that are cut there.
class Period {
 public:
  // The next piece of the stream's work.
  void add(uint64_t hash);

  // How many pieces after the last one that was add()ed make the next run. At most longestRun.
  size_t next() const;
  // A run of so many pieces has been cut off, or they were executed one by one.
  void cut(size_t pieces);

  // After how many pieces the work has come again; 0 if it is not known to.
  size_t length() const { return repeats >= std::max<size_t>(candidate, leastRepeats) ? candidate : 0; }
  // Into how many runs of equal length it is cut.
  size_t runs() const { return (length() + longestRun - 1) / longestRun; }
  // How many pieces there were.
  uint64_t pieces() const { return count; }

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

class RunLengths {
 public:
  // The next piece of the stream's work: a hash of all of it, and one of what kind it is.
  void add(uint64_t hash, uint64_t kind) { same.add(hash), alike.add(kind); }
  // As Period: of the same work if that comes again, else of like work.
  size_t next() const { return same.length() != 0 ? same.next() : alike.next(); }
  void cut(size_t pieces) { same.cut(pieces), alike.cut(pieces); }

  // Whether the runs have the shapes that runs before them had.
  bool repeats() const { return same.length() != 0 || alike.length() != 0; }
  uint64_t pieces() const { return same.pieces(); }
  // How many graphs a run's shape needs: two in turn; if a period has several parts, one of each and another one.
  unsigned copies() const { return same.length() > longestRun ? static_cast<unsigned>(same.runs()) + 1 : 2; }

 private:
  Period same, alike;
};

}  // namespace vgpu::stub
