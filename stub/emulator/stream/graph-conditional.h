// Conditions of graphs, and the nodes that run bodies depending on them.
//
// A graph's conditions, including those of its bodies, are numbered from 1, as by NVIDIA's driver. Their values during a launch belong to
// the executable graph, whose launches run one after another. A kernel sets a condition of the graph that launched it: a thread records
// which graph's step it runs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {

struct Driver;
struct Graph;

struct Condition {
  unsigned value, flags;  // at the beginning of a launch, if the flags say so
  bool used = false;      // by a node
};
using Conditions = std::vector<Condition>;

// The data of a conditional node: its bodies, which end with it.
struct Conditional {
  explicit Conditional(Driver& driver) : driver(driver) {}
  ~Conditional();
  Conditional(const Conditional&) = delete;

  Driver& driver;
  uint64_t number = 0;
  CUgraphConditionalNodeType type{};
  std::vector<std::shared_ptr<Graph>> bodies;
  std::vector<CUgraph> handles;
};

// The present values of an executable graph's conditions.
class ConditionValues {
 public:
  explicit ConditionValues(const Conditions& conditions);
  void begin();  // sets the initial values for a launch
  bool empty() const { return values.empty(); }
  unsigned get(uint64_t number) const { return values[number - 1].load(std::memory_order_relaxed); }
  // False if there is no such condition.
  bool set(uint64_t number, unsigned value);

  // The values of the graph whose step the calling thread runs; nullptr if it runs none.
  static ConditionValues* current() { return ofThread; }
  // Wraps `action` to run as a step of that graph.
  static Action inGraph(std::shared_ptr<ConditionValues> values, Action action);

 private:
  static thread_local ConditionValues* ofThread;
  const Conditions conditions;
  std::vector<std::atomic<unsigned>> values;
};

// Runs the bodies as the condition says, each by its function, until the context fails.
Operation conditionalOperation(const Domain& domain, const Conditional& node, std::shared_ptr<ConditionValues> values,
                               std::vector<std::function<void()>> bodies);

}  // namespace vgpu::emulator::api
