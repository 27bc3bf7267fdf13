#include "stub/emulator/stream/graph-conditional.h"

#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/graph.h"
#include "stub/emulator/stream/replaced.h"

namespace vgpu::emulator::api {

thread_local ConditionValues* ConditionValues::ofThread = nullptr;

Conditional::~Conditional() {
  driver.graphs.removeIf([this](const Graph& graph) {
    return std::any_of(bodies.begin(), bodies.end(), [&](auto& body) { return body.get() == &graph; });
  });
}

ConditionValues::ConditionValues(const Conditions& conditions) : conditions(conditions), values(conditions.size()) {}

void ConditionValues::begin() {
  for (size_t i = 0; i < conditions.size(); ++i)
    if ((conditions[i].flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) set(i + 1, conditions[i].value);
}

bool ConditionValues::set(uint64_t number, unsigned value) {
  if (number == 0 || number > values.size()) return false;
  values[number - 1].store(value, std::memory_order_relaxed);
  return true;
}

Action ConditionValues::inGraph(std::shared_ptr<ConditionValues> values, Action action) {
  return [values = std::move(values), action = std::move(action)] {
    const Replaced here(ofThread, values.get());
    return action();
  };
}

Operation conditionalOperation(const Domain& domain, const Conditional& node, std::shared_ptr<ConditionValues> values,
                               std::vector<std::function<void()>> bodies) {
  auto run = [&domain, type = node.type, number = node.number, values = std::move(values), bodies = std::move(bodies)] {
    switch (type) {
      case CU_GRAPH_COND_TYPE_IF:
        if (values->get(number) != 0) bodies[0]();
        else if (bodies.size() > 1) bodies[1]();
        break;
      case CU_GRAPH_COND_TYPE_WHILE:
        while (values->get(number) != 0 && !domain.failed()) bodies[0]();
        break;
      case CU_GRAPH_COND_TYPE_SWITCH:
        if (unsigned value = values->get(number); value < bodies.size()) bodies[value]();
        break;
    }
    return Outcome::finished;
  };
  return {.weight = Weight::heavy, .action = std::move(run), .type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graphHandle, CUcontext owner,
                                                unsigned value, unsigned flags) {
  return enterDriver([&](Driver& driver) {
    require(handle != nullptr && (flags & ~unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT}) == 0);
    driver.contexts.get(owner)->check();
    std::lock_guard lock(driver.graphMutex);
    Conditions& conditions = *driver.graphs.get(graphHandle)->conditions;
    conditions.push_back({value, flags});
    *handle = conditions.size();
  });
}
