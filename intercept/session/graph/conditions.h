// The conditions of a graph: numbers that its kernels set while it runs, and on which its conditional nodes decide. A graph and
// the bodies of its conditional nodes have them in common. They count from 1, as the driver's do: the program passes the number
// to its kernels, so the worker's graph must have the same (docs/graphs.md).
//
// Plain state of a graph (graph.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace vgpu::client {

struct Condition {
  unsigned value, flags;  // at the beginning of a launch, if the flags say so
  bool isUsed = false;    // by a node

  bool operator==(const Condition&) const = default;
};

class Conditions {
 public:
  uint64_t add(unsigned value, unsigned flags) {
    conditions.push_back({value, flags});
    return conditions.size();
  }
  // nullptr if there is none of that number.
  Condition* find(uint64_t number) { return number == 0 || number > conditions.size() ? nullptr : &conditions[number - 1]; }
  const std::vector<Condition>& all() const { return conditions; }

  // Whether an executable graph of them lives: CUDA makes no second one. It holds what claim() has returned.
  bool isClaimed() const { return !claimed.expired(); }
  std::shared_ptr<const void> claim() {
    auto made = std::make_shared<char>();
    claimed = made;
    return made;
  }

 private:
  std::vector<Condition> conditions;
  std::weak_ptr<const void> claimed;
};

}  // namespace vgpu::client
