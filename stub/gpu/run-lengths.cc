#include "stub/gpu/run-lengths.h"

#include <utility>

namespace vgpu::stub {

void Period::add(uint64_t hash) {
  if (history == nullptr) history = std::make_unique<History>();
  Seen& place = history->seen[hash % places];
  Seen before = std::exchange(place, {hash, count + 1});  // 0: not seen
  if (candidate != 0 && history->latest[(count - candidate) % longestPeriod] == hash) {
    repeats = std::min(repeats + 1, longestPeriod);
  } else {
    bool isNear = before.index != 0 && before.hash == hash && count + 1 - before.index < longestPeriod;
    candidate = isNear ? static_cast<size_t>(count + 1 - before.index) : 0;
    repeats = isNear ? 1 : 0;
    inPeriod = 0;
  }
  history->latest[count % longestPeriod] = hash;
  ++count;
}

size_t Period::next() const {
  size_t whole = length();
  if (whole == 0) return longestRun;
  if (whole <= longestRun) return longestRun / whole * whole;
  size_t part = (whole + runs() - 1) / runs();
  return std::min(part, whole - inPeriod);
}

// If a period fits into one run, it starts anew after each cut, wherever that was; the place within a period matters only if several runs
// make one.
void Period::cut(size_t pieces) {
  size_t whole = length();
  inPeriod = whole <= longestRun ? 0 : (inPeriod + pieces) % whole;
}

}  // namespace vgpu::stub
