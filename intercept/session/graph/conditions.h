// The conditions of a graph: numbers that its kernels set while it runs, and that its conditional nodes test. A graph shares them with the
// bodies of its conditional nodes. They are numbered from 1, as in the driver: the program passes the number to its kernels, so the
// worker's graph must use the same (docs/graphs.md).
//
// Plain state of a graph (graph.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace vgpu::client {

struct Condition {
  unsigned value, flags;  // at the start of a launch, if the flags say so
  bool isUsed = false;    // by a node

  bool operator==(const Condition&) const = default;
};

class Conditions {
 public:
  uint64_t add(unsigned value, unsigned flags) {
    conditions.push_back({value, flags});
    return conditions.size();
  }
  // nullptr if there is no condition with that number.
  Condition* find(uint64_t number) { return number == 0 || number > conditions.size() ? nullptr : &conditions[number - 1]; }
  const std::vector<Condition>& all() const { return conditions; }

  // Whether an executable graph with these conditions exists: CUDA allows only one. It holds the result of claim().
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
