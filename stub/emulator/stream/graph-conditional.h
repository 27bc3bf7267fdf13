// Conditions of graphs and the nodes that run bodies by them.
//
// A graph's conditions are numbered from 1, as NVIDIA's driver numbers them, for all of its bodies too. What they are during a
// launch belongs to the executable graph, whose launches run one after another. A kernel sets the one of the graph that it is
// launched by: its thread knows, while it runs a step, which that is.
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

// Of a conditional node: its bodies, which end with it.
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

// What the conditions of an executable graph are.
class ConditionValues {
 public:
  explicit ConditionValues(const Conditions& conditions);
  void begin();  // of a launch
  bool empty() const { return values.empty(); }
  unsigned get(uint64_t number) const { return values[number - 1].load(std::memory_order_relaxed); }
  // False if there is no such condition.
  bool set(uint64_t number, unsigned value);

  // Of the graph whose step the calling thread runs; nullptr: of none.
  static ConditionValues* current() { return ofThread; }
  // The same work, as a step of that graph.
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
