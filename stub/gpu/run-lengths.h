// Decides where the work of one stream is cut into runs. A program in a loop gives the same work again after a period: if cut at the
// period, its runs repeat too, and their graphs are launched unchanged. If only the parameters of the same functions change, parts of each
// graph stay unchanged. Other work is cut into runs of a few lengths, so that there are few shapes.
//
// Used by the thread of that GPU. Identifies work by hashes. Nothing of it survives a suspend.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace vgpu::stub {

// A kernel costs 0.8 µs in a graph of 8, 0.5 to 0.7 µs in a graph of 64 or more, and 3.3 µs launched alone (H200; docs/folding.md).
constexpr size_t longestRun = 64;

// Finds the distance at which a stream's work repeats, and cuts runs there.
class Period {
 public:
  // Adds the next piece of the stream's work.
  void add(uint64_t hash);

  // The length of the next run, in pieces after the last one that was add()ed. At most longestRun.
  size_t next() const;
  // A run of that many pieces has been cut off, or executed piece by piece.
  void cut(size_t pieces);

  // The period, in pieces; 0 if the work is not known to repeat.
  size_t length() const { return repeats >= std::max<size_t>(candidate, leastRepeats) ? candidate : 0; }
  // The number of runs of equal length into which a period is cut.
  size_t runs() const { return (length() + longestRun - 1) / longestRun; }
  // The number of pieces so far.
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
  size_t candidate = 0;  // a possible period, which has held for `repeats` pieces
  size_t repeats = 0;
  size_t inPeriod = 0;  // pieces of the current period that have been cut off
};

class RunLengths {
 public:
  // Adds the next piece of the stream's work: `hash` covers all of it, `kind` only what FoldedWork::kind does.
  void add(uint64_t hash, uint64_t kind) { same.add(hash), alike.add(kind); }
  // Like Period::next(): by identical work if that repeats, else by work of the same kind.
  size_t next() const { return same.length() != 0 ? same.next() : alike.next(); }
  void cut(size_t pieces) { same.cut(pieces), alike.cut(pieces); }

  // Whether the runs have the same shapes as earlier runs.
  bool repeats() const { return same.length() != 0 || alike.length() != 0; }
  uint64_t pieces() const { return same.pieces(); }
  // The number of graphs for a run's shape: two in turn; if a period has several runs, one for each and one more.
  unsigned copies() const { return same.length() > longestRun ? static_cast<unsigned>(same.runs()) + 1 : 2; }

 private:
  Period same, alike;
};

}  // namespace vgpu::stub
